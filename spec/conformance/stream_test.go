package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"weir/model/jsapi"
	"weir/spec/oracle"
)

// streamCount numbers the streams of all runs, so that no name is used twice.
var streamCount atomic.Uint64

// uniqueName is also unique among the processes that have used the target.
func uniqueName(prefix string) string {
	return fmt.Sprintf("%s%d_%d", prefix, os.Getpid(), streamCount.Add(1))
}

// streamRun is one stream on the server and its oracle.
type streamRun struct {
	t    *rapid.T
	name string
	// mirrors is the name of the stream of which it is a mirror; "" for others.
	mirrors string
	config  map[string]any
	oracle  *oracle.Stream
	// now is the oracle's clock. It only has to grow: nothing expires within a run.
	now int64
	// trace is what was done so far.
	trace []string
}

func newStreamRun(t *rapid.T) *streamRun {
	r := &streamRun{t: t, name: uniqueName("S"), now: 1}
	r.config = drawStreamConfig(t)
	r.config["name"] = r.name
	r.config["subjects"] = []string{r.name + ".>"}
	r.oracle = oracle.New(createStream(t, r.config))
	return r
}

func (r *streamRun) close() { mustCall(r.t, "STREAM.DELETE."+r.name, nil, nil) }

// oneOf draws one of the values; the first is the simplest.
func oneOf[V any](t *rapid.T, label string, values ...V) V {
	return rapid.SampledFrom(values).Draw(t, label)
}

func drawStreamConfig(t *rapid.T) map[string]any {
	config := map[string]any{
		"retention": "limits",
		"storage":   oneOf(t, "storage", "memory", "file"),
		"discard":   oneOf(t, "discard", "old", "new"),
	}
	limits := map[string]any{
		"max_msgs":             oneOf(t, "max_msgs", -1, 1, 4, 8),
		"max_bytes":            oneOf(t, "max_bytes", -1, 150, 400),
		"max_msgs_per_subject": oneOf(t, "max_msgs_per_subject", -1, 1, 2, 3),
		"max_msg_size":         oneOf(t, "max_msg_size", -1, 30, 90),
		"allow_rollup_hdrs":    oneOf(t, "allow_rollup", false, true),
		"deny_delete":          oneOf(t, "deny_delete", false, false, false, true),
	}
	for key, value := range limits { // order-free: a map is filled
		config[key] = value
	}
	if limits["allow_rollup_hdrs"] == false {
		config["deny_purge"] = oneOf(t, "deny_purge", false, false, true)
	}
	if config["discard"] == "new" && limits["max_msgs_per_subject"].(int) > 0 {
		config["discard_new_per_subject"] = oneOf(t, "discard_new_per_subject", false, true)
	}
	if oneOf(t, "first_seq", false, false, false, true) {
		config["first_seq"] = 100
	}
	return config
}

func (r *streamRun) drawSubject() string {
	return r.name + "." + oneOf(r.t, "subject", "a", "b", "a.b", "c.b", "c")
}

// prefix is what subjects begin with.
func (r *streamRun) prefix() string {
	if r.mirrors != "" {
		return r.mirrors
	}
	return r.name
}

func (r *streamRun) drawFilter() string {
	filter := oneOf(r.t, "filter", "", ">", "a", "b", "*", "*.b", "a.>", "none")
	if filter == "" || filter == ">" {
		return filter
	}
	return r.prefix() + "." + filter
}

// drawSeq draws a sequence, most often one near what the stream has.
func (r *streamRun) drawSeq(label string) uint64 {
	near := int(r.oracle.Last) + rapid.IntRange(-6, 2).Draw(r.t, label)
	return uint64(max(near, 0))
}

// drawFields draws the header fields of a publish: none, or a few that the stream may act on.
func (r *streamRun) drawFields() [][2]string {
	var fields [][2]string
	for range oneOf(r.t, "fields", 0, 0, 1, 1, 2, 3) {
		seq := fmt.Sprint(r.drawSeq("expected"))
		if last := r.oracle.LastBySubject(r.drawSubject()); last != nil && oneOf(r.t, "last", false, true) {
			seq = fmt.Sprint(last.Seq)
		}
		fields = append(fields, oneOf(r.t, "field",
			[2]string{"Nats-Msg-Id", oneOf(r.t, "id", "i1", "i2", "i3", "i4")},
			[2]string{"Plain", "value"},
			[2]string{"Nats-Expected-Last-Sequence", seq},
			[2]string{"Nats-Expected-Last-Subject-Sequence", seq},
			[2]string{"Nats-Expected-Last-Subject-Sequence-Subject", r.name + "." + oneOf(r.t, "of", "a", "*", "*.b", "none", "c.>")},
			[2]string{"Nats-Expected-Stream", oneOf(r.t, "stream", r.name, "other")},
			[2]string{"Nats-Expected-Last-Msg-Id", oneOf(r.t, "last id", "i1", "i2", "i3", "i4")},
			[2]string{"Nats-Rollup", oneOf(r.t, "rollup", "sub", "all", "SUB", "bad")},
			[2]string{"Nats-Msg-Id", oneOf(r.t, "id", "i5", "i6")},
			[2]string{oneOf(r.t, "refused", "Nats-TTL", "Nats-Incr", "Nats-Batch-Id", "Nats-Schedule", "Nats-Stream-Source"), "1"},
			[2]string{"Nats-TTL", oneOf(r.t, "ttl", "0", "never", "5s", "x", "1ms", "-1")},
		))
	}
	return fields
}

func (r *streamRun) publish() {
	subject, fields := r.drawSubject(), r.drawFields()
	payload := string(make([]byte, oneOf(r.t, "size", 0, 1, 10, 40, 80)))
	r.publishMsg(subject, fields, payload)
}

func (r *streamRun) publishMsg(subject string, fields [][2]string, payload string) {
	msg := nats.NewMsg(subject)
	for _, f := range fields {
		msg.Header[f[0]] = append(msg.Header[f[0]], f[1])
	}
	msg.Data = []byte(payload)
	answer, err := conn.RequestMsg(msg, requestTimeout)
	if err != nil {
		r.t.Fatalf("publish to %s with %v: %v", subject, fields, err)
	}
	var ack struct {
		Seq       uint64
		Duplicate bool
		Error     *jsapi.Error
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		r.t.Fatalf("publish ack %s: %v", answer.Data, err)
	}
	r.now++
	want, refused := r.oracle.Publish(r.now, subject, block(fields), payload)
	r.compare(fmt.Sprintf("publish %s %v %d bytes", subject, fields, len(payload)),
		text(ack.Error, "seq %d duplicate %v", ack.Seq, ack.Duplicate),
		text(refused, "seq %d duplicate %v", want.Seq, want.Duplicate))
}

// sortedLines puts the fields of a block in order, as the client library sends them in the order of a map.
func sortedLines(header string) string {
	lines := strings.Split(header, "\r\n")
	slices.Sort(lines)
	return strings.Join(lines, "|")
}

func (r *streamRun) compare(what, got, want string) {
	r.t.Helper()
	r.trace = append(r.trace, what+" -> "+want)
	if got != want {
		r.t.Fatalf("%s\nserver: %s\noracle: %s\nstream: %v\n%s", what, got, want, r.config, strings.Join(r.trace, "\n"))
	}
}

func (r *streamRun) purge() {
	filter, seq, keep := r.drawFilter(), uint64(0), uint64(0)
	switch oneOf(r.t, "form", "all", "seq", "keep", "both") {
	case "seq":
		seq = r.drawSeq("below")
	case "keep":
		keep = uint64(rapid.IntRange(1, 3).Draw(r.t, "keep"))
	case "both":
		seq, keep = 2, 1
	}
	r.purgeForm(filter, seq, keep)
}

func (r *streamRun) purgeForm(filter string, seq, keep uint64) {
	request := map[string]any{"filter": filter, "seq": seq, "keep": keep}
	var answer struct{ Purged uint64 }
	failed := call(r.t, "STREAM.PURGE."+r.name, request, &answer)
	want, refused := r.oracle.Purge(filter, seq, keep)
	r.compare(fmt.Sprint("purge ", request), text(failed, "%d", answer.Purged), text(refused, "%d", want))
}

func (r *streamRun) delete() {
	seq := max(r.drawSeq("delete"), 1)
	failed := call(r.t, "STREAM.MSG.DELETE."+r.name, map[string]any{"seq": seq, "no_erase": true}, nil)
	outside := seq > r.oracle.Last || seq < r.oracle.First
	want := text(r.oracle.Delete(seq), "ok")
	if outside && failed != nil && differs("the answer about a missing sequence does not depend on the kind of storage") {
		return
	}
	r.compare(fmt.Sprint("delete ", seq), text(failed, "ok"), want)
}

func (r *streamRun) get() {
	seq, filter := max(r.drawSeq("get"), 1), r.drawFilter()
	if filter == "" {
		filter = ">"
	}
	r.getForm(map[string]any{"seq": seq}, r.oracle.Get(seq))
	r.getForm(map[string]any{"last_by_subj": filter}, r.oracle.LastBySubject(filter))
	r.getForm(map[string]any{"seq": seq, "next_by_subj": filter}, r.oracle.NextBySubject(filter, seq))
}

func (r *streamRun) getForm(request map[string]any, want *oracle.Message) {
	var answer struct{ Message jsapi.StoredMsg }
	failed := call(r.t, "STREAM.MSG.GET."+r.name, request, &answer)
	if request["last_by_subj"] == ">" && r.oracle.Get(r.oracle.Last) == nil &&
		differs("the last message of all is found although the last sequence was deleted") {
		return
	}
	m := answer.Message
	expected := text(jsapi.CodeNoMessageFound.Err(), "")
	if want != nil {
		expected = fmt.Sprintf("%d %s %q %d bytes", want.Seq, want.Subject, sortedLines(want.Header), len(want.Payload))
	}
	r.compare(fmt.Sprint("get ", request), text(failed, "%d %s %q %d bytes", m.Seq, m.Subject, sortedLines(string(m.Header)), len(m.Data)), expected)
}

// update changes limits, and seals now and then. The limit per subject goes first and alone: where both kinds are lowered
// at once, the reference server enforces the totals first and so drops more than the limits ask for. Weir has one order,
// that of a publish.
func (r *streamRun) update() {
	if r.oracle.Config.Sealed {
		return
	}
	fresh := drawStreamConfig(r.t)
	delete(r.config, "discard_new_per_subject")
	r.updateFrom(fresh, "max_msgs_per_subject")
	r.check()
	if oneOf(r.t, "seal", false, false, false, false, true) {
		fresh["sealed"] = true
	}
	r.updateFrom(fresh, "max_msgs", "max_bytes", "max_msg_size", "discard", "sealed")
}

func (r *streamRun) updateFrom(fresh map[string]any, keys ...string) {
	for _, key := range keys {
		r.config[key] = fresh[key]
	}
	var updated struct{ Config *jsapi.StreamConfig }
	mustCall(r.t, "STREAM.UPDATE."+r.name, r.config, &updated)
	r.oracle.Update(updated.Config)
	r.trace = append(r.trace, fmt.Sprint("update ", r.config))
}

// check compares the whole state.
func (r *streamRun) check() {
	var info jsapi.StreamInfo
	request := map[string]any{"deleted_details": true, "subjects_filter": ">"}
	mustCall(r.t, "STREAM.INFO."+r.name, request, &info)
	s := info.State
	if s.LastSeq == 0 && differs("a file stream that never held a message has no deleted sequence 0") {
		s.Deleted = nil
	}
	got := fmt.Sprintf("messages %d bytes %d first %d last %d subjects %v deleted %v", s.Msgs, s.Bytes, s.FirstSeq, s.LastSeq,
		s.Subjects, s.Deleted)
	o := r.oracle
	want := fmt.Sprintf("messages %d bytes %d first %d last %d subjects %v deleted %v", len(o.Messages), o.Bytes(), o.First,
		o.Last, o.PerSubject(""), o.Deleted())
	r.compare("state", got, want)
}

func TestStreamAgreesWithOracle(t *testing.T) {
	bound := newBudget()
	rapid.Check(t, func(t *rapid.T) {
		if bound.spent() {
			return
		}
		r := newStreamRun(t)
		defer r.close()
		for range rapid.IntRange(5, 30).Draw(t, "steps") {
			switch oneOf(t, "step", "publish", "publish", "publish", "publish", "publish", "publish", "get", "delete", "purge", "update") {
			case "publish":
				r.publish()
			case "get":
				r.get()
			case "delete":
				r.delete()
			case "purge":
				r.purge()
			case "update":
				r.update()
			}
			r.check()
		}
	})
}

// budget ends a test's runs after some seconds, unless -long is given.
type budget struct{ end time.Time }

func newBudget() budget { return budget{time.Now().Add(budgetSeconds * time.Second)} }

func (b budget) spent() bool { return !*long && time.Now().After(b.end) }
