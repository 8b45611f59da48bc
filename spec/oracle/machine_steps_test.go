package oracle_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"weir/model/command"
	"weir/model/jsapi"
	"weir/spec/oracle"
)

// oneOf draws one of the values; the first is the simplest.
func oneOf[V any](t *rapid.T, label string, values ...V) V {
	return rapid.SampledFrom(values).Draw(t, label)
}

func drawConfig(t *rapid.T) *jsapi.StreamConfig {
	c := &jsapi.StreamConfig{
		Name: "S", Subjects: []string{"S.>"},
		Storage:           oneOf(t, "storage", jsapi.FileStorage, jsapi.MemoryStorage),
		Discard:           oneOf(t, "discard", jsapi.DiscardOld, jsapi.DiscardNew),
		MaxMsgs:           oneOf[int64](t, "max_msgs", -1, 1, 4, 9),
		MaxBytes:          oneOf[int64](t, "max_bytes", -1, -1, 150, 400),
		MaxMsgsPerSubject: oneOf[int64](t, "max_msgs_per_subject", -1, 1, 2, 3),
		MaxMsgSize:        oneOf[int32](t, "max_msg_size", -1, -1, 30, 90),
		MaxAge:            oneOf(t, "max_age", 0, 0, 10*time.Second),
		DuplicateWindow:   oneOf(t, "duplicate_window", 0, 5*time.Second),
		AllowRollup:       oneOf(t, "allow_rollup", true, false),
		DenyDelete:        oneOf(t, "deny_delete", false, false, false, true),
		FirstSeq:          oneOf[uint64](t, "first_seq", 0, 0, 50, 1000, 65500),
	}
	if oneOf(t, "mirror", false, false, false, true) {
		c.Mirror, c.Subjects, c.FirstSeq, c.DuplicateWindow = &jsapi.StreamSource{Name: "O"}, nil, 0, 0
	}
	if !c.AllowRollup {
		c.DenyPurge = oneOf(t, "deny_purge", false, false, true)
	}
	if c.Discard == jsapi.DiscardNew && c.MaxMsgsPerSubject > 0 {
		c.DiscardNewPerSubject = oneOf(t, "discard_new_per_subject", false, true)
	}
	return c
}

// step draws one thing to do. Commands gather in a batch; time passes between batches.
func (r *machineRun) step() {
	steps := map[string]func(){
		"publish": r.publish, "delete": r.delete, "purge": r.purge, "update": r.update, "tick": r.tick,
		"consumer": r.putConsumer, "delete consumer": r.deleteConsumer, "deliver": r.deliver, "ack": r.ack,
		"flush": r.pass, "bulk": r.bulk, "checkpoint": func() { r.flush(); r.checkpoint() }, "restart": func() { r.flush(); r.restart() },
	}
	if r.config.Mirror != nil {
		steps["publish"] = r.copy
	}
	name := oneOf(r.t, "step", "publish", "publish", "publish", "publish", "publish", "deliver", "deliver", "deliver", "ack", "ack",
		"ack", "flush", "flush", "tick", "consumer", "consumer", "delete", "purge", "update", "delete consumer", "checkpoint", "restart", "bulk")
	steps[name]()
	if len(r.batch) >= 4 {
		r.flush()
	}
}

// pass applies the batch and lets time pass.
func (r *machineRun) pass() {
	r.flush()
	r.now += int64(oneOf(r.t, "pass", time.Nanosecond, time.Millisecond, 900*time.Millisecond, 3*time.Second, 6*time.Second))
}

func (r *machineRun) drawSubject() string {
	return "S." + oneOf(r.t, "subject", "a", "b", "a.b", "c.b", "c", "a.*")
}

func (r *machineRun) drawFilter() string {
	return oneOf(r.t, "filter", "S.>", "S.a", "S.b", "S.*", "S.*.b", "S.a.>", "S.none")
}

func (r *machineRun) drawSeq(label string) uint64 {
	return uint64(max(int(r.oracle.Last)+rapid.IntRange(-7, 2).Draw(r.t, label), 1))
}

func text(err *jsapi.Error, format string, args ...any) string {
	if err != nil {
		return fmt.Sprintf("error %d %q", err.ErrCode, err.Description)
	}
	return fmt.Sprintf(format, args...)
}

func (r *machineRun) drawHeader() string {
	header := oneOf(r.t, "start", "NATS/1.0\r\n", "NATS/1.0\r\n", "NATS/1.0 200 OK\r\n")
	n := oneOf(r.t, "fields", 0, 0, 1, 1, 2)
	for range n {
		seq := fmt.Sprint(r.drawSeq("expected") - 1)
		if last := r.oracle.LastBySubject(r.drawSubject()); last != nil && oneOf(r.t, "last", false, true) {
			seq = fmt.Sprint(last.Seq)
		}
		header += oneOf(r.t, "field",
			"Nats-Msg-Id: "+oneOf(r.t, "id", "i1", "i2", "i3", "i4"),
			"Nats-Msg-Id: "+oneOf(r.t, "id", "i5", "i6"),
			"Plain: value",
			"Nats-Expected-Last-Sequence: "+seq,
			"Nats-Expected-Last-Subject-Sequence: "+seq,
			"Nats-Expected-Last-Subject-Sequence-Subject: "+r.drawFilter(),
			"Nats-Expected-Stream: "+oneOf(r.t, "stream", "S", "T"),
			"Nats-Expected-Last-Msg-Id: "+oneOf(r.t, "last id", "i1", "i2", "i3"),
			"Nats-Rollup: "+oneOf(r.t, "rollup", "sub", "all", "ALL", "bad"),
			oneOf(r.t, "refused", "Nats-TTL", "Nats-Incr", "Nats-Batch-Id", "Nats-Schedule", "Nats-Stream-Source")+": 1",
		) + "\r\n"
	}
	if n == 0 && oneOf(r.t, "no header", true, true, false) {
		return ""
	}
	return header + "\r\n"
}

func (r *machineRun) publish() {
	subject, header := r.drawSubject(), r.drawHeader()
	payload := string(make([]byte, oneOf(r.t, "size", 0, 1, 10, 40, 80)))
	ack, err := r.oracle.Publish(r.now, subject, header, payload)
	r.do(command.Command{Kind: command.Publish, Subject: []byte(subject), Header: []byte(header), Payload: []byte(payload)},
		fmt.Sprintf("publish %s %q %d", subject, header, len(payload)), text(err, "seq %d duplicate %v", ack.Seq, ack.Duplicate))
}

// copy has a mirror copy: most often what comes next, sometimes what was copied, what is not next, or another stream.
func (r *machineRun) copy() {
	has := r.oracle.Copied
	if has.Incarnation == 0 || oneOf(r.t, "another", false, false, false, false, false, false, false, true) {
		next, before := has.Incarnation+uint64(rapid.IntRange(0, 1).Draw(r.t, "next")), has.Incarnation
		if oneOf(r.t, "stale", false, false, false, true) {
			before = uint64(rapid.IntRange(0, 2).Draw(r.t, "before"))
		}
		after := oneOf[uint64](r.t, "after", 0, 0, 3, has.Through+1, 500)
		r.do(command.Command{Kind: command.Follow, Version: next, Keep: before, StreamSeq: after},
			fmt.Sprintf("follow %d after %d behind %d", next, before, after), text(r.oracle.Follow(next, before, after), ""))
		return
	}
	incarnation := has.Incarnation + oneOf[uint64](r.t, "other", 0, 0, 0, 0, 0, 0, 0, 1)
	from := has.Through - min(has.Through, oneOf[uint64](r.t, "again", 0, 0, 0, 0, 0, 0, 1))
	m := oracle.Message{
		Seq: from + oneOf[uint64](r.t, "gap", 1, 1, 1, 1, 2, 3, 40, 0), Subject: r.drawSubject(), Header: r.drawHeader(),
		Payload: string(make([]byte, oneOf(r.t, "size", 0, 1, 10, 40, 80))),
		Time:    r.now + int64(oneOf(r.t, "written", -time.Hour, -time.Second, 0, time.Second)),
	}
	if strings.HasPrefix(m.Header, "NATS/1.0 ") {
		m.Header = "" // nothing is stored with a status
	}
	if oneOf(r.t, "nothing", false, false, false, false, false, false, true) {
		m = oracle.Message{Seq: m.Seq}
	}
	r.do(command.Command{
		Kind: command.Copy, Version: incarnation, From: from, StreamSeq: m.Seq, Time: m.Time, Subject: []byte(m.Subject),
		Header: []byte(m.Header), Payload: []byte(m.Payload),
	}, fmt.Sprintf("copy %d of %d behind %d: %s %q", m.Seq, incarnation, from, m.Subject, m.Header), text(r.oracle.Copy(incarnation, from, m), ""))
}

// bulk publishes enough to cross the borders of sections.
func (r *machineRun) bulk() {
	r.flush()
	if r.config.Mirror != nil {
		return
	}
	for i := range 50 {
		subject := fmt.Sprintf("S.bulk.%d", i%7)
		ack, err := r.oracle.Publish(r.now, subject, "", "")
		r.do(command.Command{Kind: command.Publish, Subject: []byte(subject)}, "publish "+subject,
			text(err, "seq %d duplicate %v", ack.Seq, ack.Duplicate))
	}
	r.flush()
}

func (r *machineRun) delete() {
	seq := r.drawSeq("delete")
	r.do(command.Command{Kind: command.DeleteMsg, StreamSeq: seq}, fmt.Sprint("delete ", seq), text(r.oracle.Delete(seq), ""))
}

func (r *machineRun) purge() {
	filter, seq, keep := r.drawFilter(), uint64(0), uint64(0)
	if oneOf(r.t, "whole", true, false) {
		filter = oneOf(r.t, "all", "", ">")
	}
	switch oneOf(r.t, "form", "all", "seq", "keep", "both") {
	case "seq":
		seq = r.drawSeq("below") + oneOf[uint64](r.t, "ahead", 0, 0, 0, 20, 70_000)
	case "keep":
		keep = uint64(rapid.IntRange(1, 3).Draw(r.t, "keep"))
	case "both":
		seq, keep = 2, 1
	}
	n, err := r.oracle.Purge(filter, seq, keep)
	r.do(command.Command{Kind: command.Purge, Text: []byte(filter), StreamSeq: seq, Keep: keep},
		fmt.Sprintf("purge %q seq %d keep %d", filter, seq, keep), text(err, "purged %d", n))
}

func (r *machineRun) update() {
	fresh := drawConfig(r.t)
	next := r.config.Clone()
	next.MaxMsgs, next.MaxBytes, next.MaxMsgSize, next.MaxAge = fresh.MaxMsgs, fresh.MaxBytes, fresh.MaxMsgSize, fresh.MaxAge
	next.MaxMsgsPerSubject, next.Discard, next.DiscardNewPerSubject = fresh.MaxMsgsPerSubject, fresh.Discard, false
	next.AllowRollup, next.DenyPurge, next.DenyDelete = fresh.AllowRollup, fresh.DenyPurge, fresh.DenyDelete
	next.DuplicateWindow = fresh.DuplicateWindow
	if next.Mirror != nil {
		next.DuplicateWindow = 0
		if oneOf(r.t, "promote", false, false, false, false, true) {
			next.Mirror, next.Subjects = nil, []string{"S.>"}
		}
	}
	if err := next.Normalize(&limits, false); err != nil {
		return
	}
	// A window that grows could find ids again that were out of it: whether they are still known is not promised.
	if r.config.Mirror == nil {
		next.DuplicateWindow = min(next.DuplicateWindow, r.config.DuplicateWindow)
	}
	r.config = next
	r.version++
	r.oracle.Update(next)
	config := next.AppendJSON(nil)
	r.do(command.Command{Kind: command.PutStream, Config: config, Version: r.version}, "update "+brief(next), "")
}

func (r *machineRun) tick() {
	r.flush()
	r.oracle.Tick(r.now)
	r.do(command.Command{Kind: command.Tick}, "tick", "")
	r.flush()
}

func (r *machineRun) drawConsumerConfig(name string) *jsapi.ConsumerConfig {
	t := r.t
	c := &jsapi.ConsumerConfig{
		Name: name, Durable: name,
		DeliverPolicy: oneOf(t, "deliver_policy", jsapi.DeliverAll, jsapi.DeliverAll, jsapi.DeliverNew, jsapi.DeliverLast,
			jsapi.DeliverLastPerSubject, jsapi.DeliverByStartSequence, jsapi.DeliverByStartTime),
		AckPolicy:     oneOf(t, "ack_policy", jsapi.AckExplicit, jsapi.AckExplicit, jsapi.AckAll, jsapi.AckNone),
		AckWait:       oneOf(t, "ack_wait", 2*time.Second, 10*time.Second),
		MaxDeliver:    oneOf(t, "max_deliver", -1, 1, 2, 3),
		MaxAckPending: oneOf(t, "max_ack_pending", 1000, 1, 3),
	}
	if c.MaxDeliver > 1 && oneOf(t, "backoff", false, true) {
		c.BackOff = []time.Duration{time.Second, 4 * time.Second}
	}
	switch oneOf(t, "filters", "none", "one", "one", "two") {
	case "one":
		c.FilterSubject = r.drawFilter()
	case "two":
		c.FilterSubjects = oneOf(t, "pair", []string{"S.a", "S.b"}, []string{"S.a.>", "S.c"}, []string{"S.*.b", "S.*"})
	case "none":
		if c.DeliverPolicy == jsapi.DeliverLastPerSubject {
			c.FilterSubject = ">"
		}
	}
	switch c.DeliverPolicy {
	case jsapi.DeliverByStartSequence:
		c.OptStartSeq = r.drawSeq("opt_start_seq")
	case jsapi.DeliverByStartTime:
		at := jsapi.Time(r.now - int64(oneOf(t, "before", time.Duration(0), time.Second, 5*time.Second, time.Hour, -time.Hour)))
		c.OptStartTime = &at
	}
	return c
}

func (r *machineRun) putConsumer() {
	name := oneOf(r.t, "name", "c1", "c2", "c3")
	config := r.drawConsumerConfig(name)
	action := oneOf(r.t, "action", command.Upsert, command.Upsert, command.CreateOnly, command.UpdateOnly)
	existing := r.oracle.Consumer(name)
	if existing != nil {
		old := existing.Config
		config.DeliverPolicy, config.OptStartSeq, config.OptStartTime = old.DeliverPolicy, old.OptStartSeq, old.OptStartTime
		config.AckPolicy = old.AckPolicy
	}
	if err := config.Normalize(r.config, &limits, false); err != nil {
		return
	}
	want := ""
	switch {
	case existing == nil && action == command.UpdateOnly:
		want = text(jsapi.CodeConsumerDoesNotExist.Err(), "")
	case existing == nil:
		r.oracle.AddConsumer(name, config)
		r.ids[name] = r.nextID
		r.nextID++
	case existing.Config.Equal(config):
	case action == command.CreateOnly:
		want = text(jsapi.CodeConsumerAlreadyExists.Err(), "")
	default:
		existing.UpdateConfig(config)
	}
	text := config.AppendJSON(nil)
	r.do(command.Command{Kind: command.PutConsumer, Action: action, Name: []byte(name), Config: text},
		fmt.Sprintf("put consumer %s action %d %s", name, action, text[bytes.Index(text, []byte("deliver_policy")):]), want)
}

func (r *machineRun) deleteConsumer() {
	name := oneOf(r.t, "name", "c1", "c2", "c3")
	want := ""
	if !r.oracle.DeleteConsumer(name) {
		want = text(jsapi.CodeConsumerNotFound.Err(), "")
	}
	delete(r.ids, name)
	r.handoffs = slices.DeleteFunc(r.handoffs, func(d delivered) bool { return d.name == name })
	r.do(command.Command{Kind: command.DeleteConsumer, Name: []byte(name)}, "delete consumer "+name, want)
}

func (r *machineRun) deliver() {
	if len(r.oracle.Consumers) == 0 {
		return
	}
	c := rapid.SampledFrom(r.oracle.Consumers).Draw(r.t, "consumer")
	count := rapid.IntRange(1, 5).Draw(r.t, "count")
	maxBytes := oneOf[uint64](r.t, "max_bytes", 0, 0, 0, 100, 200)
	handoffs, stop := c.Deliver(r.now, count, maxBytes)
	want := ""
	for _, h := range handoffs {
		want += fmt.Sprintf("%d/%d x%d pending %d, ", h.Seq, h.ConsumerSeq, h.Deliveries, h.Pending)
		r.handoffs = append(r.handoffs, delivered{c.Name, h.Seq, h.ConsumerSeq, h.Deliveries})
	}
	want += fmt.Sprintf("%d delivered, stop %d", len(handoffs), stop)
	r.do(command.Command{Kind: command.Deliver, Consumer: r.ids[c.Name], Token: 1, Count: uint64(count), MaxBytes: maxBytes},
		fmt.Sprintf("deliver %s %d max %d bytes", c.Name, count, maxBytes), want)
}

// ack draws an acknowledgement of something delivered, seldom of something that never was.
func (r *machineRun) ack() {
	if len(r.handoffs) == 0 {
		return
	}
	from := max(0, len(r.handoffs)-6)
	d := rapid.SampledFrom(r.handoffs[from:]).Draw(r.t, "delivery")
	if oneOf(r.t, "made up", false, false, false, false, false, false, false, true) {
		d.seq, d.cseq = r.drawSeq("seq"), r.drawSeq("cseq")
	}
	c := r.oracle.Consumer(d.name)
	cmd := command.Command{Consumer: r.ids[d.name], StreamSeq: d.seq, ConsumerSeq: d.cseq, Deliveries: d.deliveries}
	want := ""
	switch kind := oneOf(r.t, "kind", "ack", "ack", "ack", "nak", "nak", "term", "progress", "release"); kind {
	case "ack", "term":
		cmd.Kind = command.Ack
		if kind == "term" {
			cmd.Kind, cmd.Text = command.Term, []byte("why")
		}
		want = fmt.Sprintf("answered %v", c.Ack(d.seq))
	case "nak":
		cmd.Kind, cmd.Delay = command.Nak, int64(oneOf(r.t, "delay", 0, 0, time.Second, 20*time.Second))
		c.Nak(r.now, d.seq, d.cseq, cmd.Delay)
	case "progress":
		cmd.Kind = command.Progress
		c.Progress(r.now, d.seq)
	case "release":
		cmd.Kind = command.Release
		c.Release(d.seq, d.deliveries)
	}
	r.do(cmd, fmt.Sprintf("kind %d of %s %d/%d x%d delay %d", cmd.Kind, d.name, d.seq, d.cseq, d.deliveries, cmd.Delay), want)
}

// brief prints what drawConfig draws.
func brief(c *jsapi.StreamConfig) string {
	return fmt.Sprintf("storage %v discard %v per subject %v msgs %d bytes %d per subject %d size %d age %v window %v rollup %v deny %v %v first %d",
		c.Storage, c.Discard, c.DiscardNewPerSubject, c.MaxMsgs, c.MaxBytes, c.MaxMsgsPerSubject, c.MaxMsgSize, c.MaxAge,
		c.DuplicateWindow, c.AllowRollup, c.DenyDelete, c.DenyPurge, c.FirstSeq)
}
