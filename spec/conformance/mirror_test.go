package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"weir/model/jsapi"
	"weir/spec/oracle"
)

// mirrorRun is a stream with a mirror on the server, and an oracle for each. A consumer of the mirror tells when something
// has been copied.
type mirrorRun struct {
	*streamRun            // the stream
	mirror     *streamRun // its mirror
	filter     string     // "" for all
	copied     *nats.Subscription
}

func drawMirrorConfig(t *rapid.T) map[string]any {
	return map[string]any{
		"storage": oneOf(t, "mirror storage", "memory", "file"), "retention": "limits", "discard": "old",
		"max_msgs":             oneOf(t, "mirror max_msgs", -1, -1, 2, 4),
		"max_msgs_per_subject": oneOf(t, "mirror max_msgs_per_subject", -1, -1, 1, 2),
		"allow_rollup_hdrs":    oneOf(t, "mirror allow_rollup", false, true),
	}
}

// newMirrorRun makes a stream with a few messages, and then its mirror.
func newMirrorRun(t *rapid.T) *mirrorRun {
	r := &mirrorRun{streamRun: &streamRun{t: t, name: uniqueName("O"), now: 1}}
	r.config = map[string]any{
		"name": r.name, "subjects": []string{r.name + ".>"}, "retention": "limits", "storage": oneOf(t, "storage", "memory", "file"),
		"allow_rollup_hdrs": true, "max_msgs_per_subject": oneOf(t, "max_msgs_per_subject", -1, -1, 2),
	}
	if oneOf(t, "first_seq", false, false, true) {
		r.config["first_seq"] = 50
	}
	r.oracle = oracle.New(createStream(t, r.config))
	for range oneOf(t, "before", 0, 1, 5) {
		r.streamRun.publish()
	}
	if oneOf(t, "gap", false, true) {
		r.streamRun.delete()
	}
	r.mirror = &streamRun{t: t, name: uniqueName("M"), mirrors: r.name, now: 1, config: drawMirrorConfig(t)}
	copied := map[string]any{"name": r.name}
	if oneOf(t, "filtered", false, false, true) {
		r.filter = r.name + "." + oneOf(t, "mirror filter", "a", "*", "*.b")
		copied["filter_subject"] = r.filter
	}
	start := max(r.oracle.First, 1)
	if oneOf(t, "start", false, false, true) {
		at := max(r.drawSeq("start at"), 1)
		copied["opt_start_seq"] = at
		start = max(start, at)
	}
	r.mirror.config["name"], r.mirror.config["mirror"] = r.mirror.name, copied
	r.mirror.oracle = oracle.New(createStream(t, r.mirror.config))
	r.trace = append(r.trace, fmt.Sprint("mirror ", r.mirror.config))
	r.listen()
	if refused := r.mirror.oracle.Follow(1, 0, start-1); refused != nil {
		t.Fatalf("follow: %v", refused)
	}
	for _, m := range r.oracle.Messages {
		r.copy(m)
	}
	// What the reference has of an empty mirror depends on whether it has begun: there is something to be copied at once.
	for r.mirror.oracle.LastTime == 0 {
		r.publishMsg(r.drawMatching(), nil, "x")
		r.copy(r.oracle.Messages[len(r.oracle.Messages)-1])
	}
	r.await()
	return r
}

func (r *mirrorRun) drawMatching() string {
	if r.filter == "" {
		return r.drawSubject()
	}
	return strings.ReplaceAll(r.filter, "*", "a")
}

// listen makes the consumer of the mirror.
func (r *mirrorRun) listen() {
	inbox := nats.NewInbox()
	var err error
	if r.copied, err = conn.SubscribeSync(inbox); err != nil {
		r.t.Fatalf("subscribe: %v", err)
	}
	config := map[string]any{"deliver_subject": inbox, "deliver_policy": "all", "ack_policy": "none"}
	mustCall(r.t, "CONSUMER.CREATE."+r.mirror.name, map[string]any{"stream_name": r.mirror.name, "config": config}, nil)
}

// copy has the oracle of the mirror copy a message of the stream, if it is one that it copies.
func (r *mirrorRun) copy(m oracle.Message) {
	o := r.mirror.oracle
	if m.Seq <= o.Copied.Through || r.filter != "" && r.oracle.PerSubject(r.filter)[m.Subject] == 0 {
		return
	}
	m.Header, m.Time = withoutExpectations(m.Header), int64(m.Seq)
	if refused := o.Copy(1, o.Copied.Through, m); refused != nil {
		r.t.Fatalf("copy %d: %v", m.Seq, refused)
	}
}

// withoutExpectations is a header as mirrors store it.
func withoutExpectations(header string) string {
	var kept []string
	for line := range strings.SplitSeq(header, "\r\n") {
		if !strings.HasPrefix(line, "Nats-Expected-") && !strings.HasPrefix(line, "Nats-Batch-") {
			kept = append(kept, line)
		}
	}
	if len(kept) == len([]string{"NATS/1.0", "", ""}) {
		return ""
	}
	return strings.Join(kept, "\r\n")
}

// await waits until the mirror has what its oracle has.
func (r *mirrorRun) await() {
	r.t.Helper()
	for seq := uint64(0); seq < r.mirror.oracle.Last; {
		m, err := r.copied.NextMsg(requestTimeout)
		if err != nil {
			r.t.Fatalf("wait for %d to be copied: %v\n%s", r.mirror.oracle.Last, err, strings.Join(r.trace, "\n"))
		}
		meta, err := m.Metadata()
		if err != nil {
			r.t.Fatalf("metadata of %q: %v", m.Reply, err)
		}
		seq = meta.Sequence.Stream
	}
	r.mirror.check()
}

// publish publishes to the stream and, if that is stored and copied, waits for it.
func (r *mirrorRun) publish() {
	before := r.oracle.Last
	r.streamRun.publish()
	last := r.mirror.oracle.Last
	if m := r.oracle.Get(r.oracle.Last); m != nil && m.Seq > before {
		r.copy(*m)
	}
	if r.mirror.oracle.Last > last {
		r.await()
	}
}

// compareTimes compares the times of what both hold.
func (r *mirrorRun) compareTimes() {
	for _, m := range r.mirror.oracle.Messages {
		var there, here struct{ Message jsapi.StoredMsg }
		if r.oracle.Get(m.Seq) == nil || call(r.t, "STREAM.MSG.GET."+r.name, map[string]any{"seq": m.Seq}, &there) != nil {
			continue
		}
		mustCall(r.t, "STREAM.MSG.GET."+r.mirror.name, map[string]any{"seq": m.Seq}, &here)
		if here.Message.Time != there.Message.Time {
			r.t.Fatalf("message %d is of %d, in the mirror of %d", m.Seq, there.Message.Time, here.Message.Time)
		}
	}
}

func (r *mirrorRun) close() {
	if err := r.copied.Unsubscribe(); err != nil {
		r.t.Fatalf("unsubscribe: %v", err)
	}
	r.mirror.close()
	r.streamRun.close()
}

// TestMirrorAgreesWithOracle changes a stream and its mirror, and compares what the mirror holds.
func TestMirrorAgreesWithOracle(t *testing.T) {
	bound := newBudget()
	rapid.Check(t, func(t *rapid.T) {
		if bound.spent() {
			return
		}
		r := newMirrorRun(t)
		defer r.close()
		for range rapid.IntRange(3, 25).Draw(t, "steps") {
			switch oneOf(t, "step", "publish", "publish", "publish", "publish", "delete", "purge", "get", "purge of mirror", "delete of mirror") {
			case "publish":
				r.publish()
			case "delete":
				r.streamRun.delete()
			case "purge":
				r.streamRun.purge()
			case "get":
				r.mirror.get()
			case "purge of mirror":
				r.mirror.purge()
			case "delete of mirror":
				r.mirror.delete()
			}
			r.mirror.check()
		}
		r.compareTimes()
	})
}
