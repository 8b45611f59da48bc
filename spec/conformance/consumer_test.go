package conformance

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/model/effect"
	"weir/model/jsapi"
	"weir/spec/oracle"
)

// handed is a delivery by the server, with the subject that acknowledges it.
type handed struct {
	consumer string
	reply    string
	seq      uint64
	cseq     uint64
}

// consumerRun adds consumers to a stream.
type consumerRun struct {
	*streamRun
	handed []handed
}

func newConsumerRun(t *rapid.T) *consumerRun {
	r := &streamRun{t: t, name: uniqueName("S"), now: 1}
	r.config = map[string]any{
		"name": r.name, "subjects": []string{r.name + ".>"}, "retention": "limits",
		"storage":              oneOf(t, "storage", "memory", "file"),
		"max_msgs_per_subject": oneOf(t, "max_msgs_per_subject", -1, 1),
		"allow_rollup_hdrs":    true,
	}
	r.oracle = oracle.New(createStream(t, r.config))
	return &consumerRun{streamRun: r}
}

func (r *consumerRun) drawConsumer() *oracle.Consumer {
	if len(r.oracle.Consumers) == 0 {
		return nil
	}
	return rapid.SampledFrom(r.oracle.Consumers).Draw(r.t, "consumer")
}

func (r *consumerRun) create() {
	name := oneOf(r.t, "name", "c1", "c2")
	if r.oracle.Consumer(name) != nil {
		return
	}
	t := r.t
	policy := oneOf(t, "deliver_policy", "all", "all", "new", "last", "last_per_subject", "by_start_sequence")
	config := map[string]any{
		"durable_name": name, "deliver_policy": policy, "ack_wait": int64(3600e9),
		"ack_policy": oneOf(t, "ack_policy", "explicit", "explicit", "all", "none"),
	}
	if config["ack_policy"] == "all" && r.config["max_msgs_per_subject"] == 1 &&
		differs("a message that its stream drops does not acknowledge those before it") {
		config["ack_policy"] = "explicit"
	}
	if config["ack_policy"] != "none" {
		config["max_deliver"] = oneOf(t, "max_deliver", -1, 1, 2, 3)
		config["max_ack_pending"] = oneOf(t, "max_ack_pending", 1000, 1, 3)
	}
	switch oneOf(t, "filters", "none", "one", "one", "two") {
	case "one":
		config["filter_subject"] = r.name + "." + oneOf(t, "filter", "a", "b", "*", "*.b", "a.>", "none", ">")
	case "two":
		config["filter_subjects"] = []string{r.name + ".a", r.name + "." + oneOf(t, "second", "b", "a.>", "*.b")}
	case "none":
		if policy == "last_per_subject" {
			config["filter_subject"] = ">"
		}
	}
	if policy == "by_start_sequence" {
		start := max(r.drawSeq("opt_start_seq"), 1)
		if start > r.oracle.Last && differs("messages below a start that lies ahead are never counted as pending") {
			start = max(r.oracle.Last, 1)
		}
		config["opt_start_seq"] = start
	}
	var info jsapi.ConsumerInfo
	mustCall(t, "CONSUMER.DURABLE.CREATE."+r.name+"."+name, map[string]any{"stream_name": r.name, "config": config}, &info)
	r.oracle.AddConsumer(name, info.Config)
	r.trace = append(r.trace, fmt.Sprint("create ", config))
}

// fetch asks for messages that are there and compares each.
func (r *consumerRun) fetch() {
	c := r.drawConsumer()
	if c == nil {
		return
	}
	count := min(rapid.IntRange(1, 4).Draw(r.t, "count"), room(c))
	if count == 0 {
		return
	}
	inbox := conn.NewInbox()
	sub, err := conn.SubscribeSync(inbox)
	if err != nil {
		r.t.Fatalf("subscribe: %v", err)
	}
	defer func() {
		if err := sub.Unsubscribe(); err != nil {
			r.t.Fatalf("unsubscribe: %v", err)
		}
	}()
	request := fmt.Sprintf(`{"batch":%d,"no_wait":true}`, count)
	if err := conn.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+r.name+"."+c.Name, inbox, []byte(request)); err != nil {
		r.t.Fatalf("request: %v", err)
	}
	var got []string
	for len(got) < count {
		msg, err := sub.NextMsg(requestTimeout)
		if err != nil {
			r.fatal("fetch from %s: %v", c.Name, err)
		}
		if status := msg.Header.Get("Status"); status != "" {
			got = append(got, status)
			break
		}
		reply, ok := jsapi.ParseAckReply(msg.Reply)
		if !ok {
			r.t.Fatalf("ack reply %q", msg.Reply)
		}
		r.handed = append(r.handed, handed{c.Name, msg.Reply, reply.StreamSeq, reply.ConsumerSeq})
		got = append(got, fmt.Sprintf("%d/%d x%d pending %d", reply.StreamSeq, reply.ConsumerSeq, reply.Delivered, reply.Pending))
	}
	want := []string{}
	handoffs, stop := c.Deliver(r.now, count, 0)
	for _, h := range handoffs {
		want = append(want, fmt.Sprintf("%d/%d x%d pending %d", h.Seq, h.ConsumerSeq, h.Deliveries, h.Pending))
	}
	if stop != effect.StopCount {
		want = append(want, "404")
	}
	r.compare(fmt.Sprintf("fetch %d from %s", count, c.Name), strings.Join(got, ", "), strings.Join(want, ", "))
}

// room is how many messages fit below max_ack_pending: beyond, a request waits even when it asks not to.
func room(c *oracle.Consumer) int {
	if c.Config.AckPolicy == jsapi.AckNone {
		return 4
	}
	free := c.Config.MaxAckPending - len(c.Pending)
	for _, p := range c.Pending {
		if p.Queued {
			free++
		}
	}
	return max(free, 0)
}

func (r *consumerRun) fatal(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("%s\nstream: %v\n%s", fmt.Sprintf(format, args...), r.config, strings.Join(r.trace, "\n"))
}

// ack sends an acknowledgement and waits until the server has processed it.
func (r *consumerRun) ack() {
	if len(r.handed) == 0 {
		return
	}
	d := rapid.SampledFrom(r.handed[max(0, len(r.handed)-6):]).Draw(r.t, "delivery")
	c := r.oracle.Consumer(d.consumer)
	if c.Config.AckPolicy == jsapi.AckNone {
		return
	}
	body := oneOf(r.t, "body", "", "+ACK", "+ACK", "-NAK", "-NAK", "+TERM", "+TERM because", "+WPI", "+OK", "other")
	if c.Config.AckPolicy == jsapi.AckAll && strings.HasPrefix(body, "+TERM") {
		return
	}
	if body == "-NAK" && exhausted(c, d.seq) && differs("the refused last delivery ends at once, not when somebody asks for messages") {
		return
	}
	for _, p := range c.Pending {
		if body == "-NAK" && p.Queued && p.Seq > d.seq && differs("messages that are due again come in the order of the stream") {
			return
		}
	}
	if _, err := conn.Request(d.reply, []byte(body), requestTimeout); err != nil {
		r.fatal("acknowledge %s with %q: %v", d.reply, body, err)
	}
	r.trace = append(r.trace, fmt.Sprintf("%q for %d/%d of %s", body, d.seq, d.cseq, d.consumer))
	switch kind := jsapi.ParseAckBody([]byte(body)); kind.Kind {
	case jsapi.AckAck, jsapi.AckTerm:
		c.Ack(d.seq)
	case jsapi.AckNak:
		c.Nak(r.now, d.seq, d.cseq, 0)
	}
}

// exhausted says that the message had its last delivery.
func exhausted(c *oracle.Consumer, seq uint64) bool {
	for _, p := range c.Pending {
		if p.Seq == seq {
			return c.Config.MaxDeliver > 0 && p.Deliveries >= uint64(c.Config.MaxDeliver)
		}
	}
	return false
}

// deleteMsg deletes a message.
func (r *consumerRun) deleteMsg() {
	seq := max(r.drawSeq("delete"), 1)
	for _, c := range r.oracle.Consumers {
		if c.Config.DeliverPolicy == jsapi.DeliverLastPerSubject && differs("the rest of the selection is there at once") {
			return
		}
		for _, p := range c.Pending {
			if p.Seq == seq && differs("consumers know of a deleted message when the answer is sent") {
				return
			}
		}
	}
	if r.oracle.Get(seq) == nil {
		return
	}
	mustCall(r.t, "STREAM.MSG.DELETE."+r.name, map[string]any{"seq": seq}, nil)
	r.oracle.Delete(seq)
	r.trace = append(r.trace, fmt.Sprint("delete ", seq))
}

func (r *consumerRun) purgeSubject(filter string) {
	for _, c := range r.oracle.Consumers {
		if c.Config.DeliverPolicy == jsapi.DeliverLastPerSubject &&
			differs("a purge does not make a consumer forget the other messages that it selected") {
			return
		}
		for _, p := range c.Pending {
			if p.Queued && differs("a purge does not delay messages that are due again") {
				return
			}
			if filter != "" && r.oracle.Get(p.Seq).Subject == filter && differs("the ack floor stays below pending messages") {
				return
			}
		}
	}
	r.purgeForm(filter, 0, 0)
}

func (r *consumerRun) deleteConsumer() {
	c := r.drawConsumer()
	if c == nil {
		return
	}
	mustCall(r.t, "CONSUMER.DELETE."+r.name+"."+c.Name, nil, nil)
	r.oracle.DeleteConsumer(c.Name)
	var kept []handed
	for _, d := range r.handed {
		if d.consumer != c.Name {
			kept = append(kept, d)
		}
	}
	r.handed = kept
	r.trace = append(r.trace, "delete consumer "+c.Name)
}

// countAttempts bounds how often the reference server is asked for a number that it counts in its own time.
const countAttempts = 5000

// checkConsumers compares what the server says of the consumers.
func (r *consumerRun) checkConsumers() {
	for _, c := range r.oracle.Consumers {
		floor := c.Floor.Consumer
		if c.Config.AckPolicy == jsapi.AckAll && differs("the ack floor is a matter of messages, not of which delivery was acknowledged") {
			floor = 0
		}
		want := fmt.Sprintf("delivered %d floor %d acks %d redelivered %d pending %d", c.Delivered.Consumer, floor,
			len(c.Pending), c.NumRedelivered(), c.NumPending())
		got := r.consumerState(c.Name)
		for attempt := 0; got != want && attempt < countAttempts && differs("an answer counts all that was acknowledged before"); attempt++ {
			got = r.consumerState(c.Name)
		}
		r.compare("info of "+c.Name, got, want)
	}
}

func (r *consumerRun) consumerState(name string) string {
	var info jsapi.ConsumerInfo
	mustCall(r.t, "CONSUMER.INFO."+r.name+"."+name, nil, &info)
	if info.Config.AckPolicy == jsapi.AckAll && *target == "" {
		info.AckFloor.Consumer = 0
	}
	return fmt.Sprintf("delivered %d floor %d acks %d redelivered %d pending %d", info.Delivered.Consumer, info.AckFloor.Consumer,
		info.NumAckPending, info.NumRedelivered, info.NumPending)
}

func TestConsumersAgreeWithOracle(t *testing.T) {
	bound := newBudget()
	rapid.Check(t, func(t *rapid.T) {
		if bound.spent() {
			return
		}
		r := newConsumerRun(t)
		defer r.close()
		for range rapid.IntRange(5, 30).Draw(t, "steps") {
			r.now++
			switch oneOf(t, "step", "publish", "publish", "publish", "create", "fetch", "fetch", "fetch", "ack", "ack", "ack", "delete", "purge", "drop") {
			case "publish":
				r.publishMsg(r.drawSubject(), nil, "x")
			case "create":
				r.create()
			case "fetch":
				r.fetch()
			case "ack":
				r.ack()
			case "delete":
				r.deleteMsg()
			case "purge":
				r.purgeSubject(oneOf(t, "purge", "", r.name+".a"))
			case "drop":
				r.deleteConsumer()
			}
			r.checkConsumers()
		}
	})
}
