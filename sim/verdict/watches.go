package verdict

import (
	"weir/linearizability/history"
	"weir/linearizability/models"
	"weir/sim/plan"
	"weir/sim/workload"
)

// watch judges one ordered push consumer: its deliveries are numbered without gaps, ascend in the stream, hold what was
// written, and skip nothing that was there to be delivered. A message that is removed between the recording of its
// delivery and the reading of its bytes leaves a gap in the numbers; clients then begin anew.
func watch(p *plan.Plan, o *workload.Observations, w *workload.Watch) []Finding {
	var found []Finding
	name := p.Streams[w.Stream].Name
	fail := func(at int64, format string, args ...any) {
		found = append(found, Finding{Class: "watch", At: at, Detail: name + " " + w.Filter + ": " + sprintf(format, args...)})
	}
	known := writers(p, o, w.Stream)
	removed := removes(p, o, w.Stream)
	last, number := uint64(0), uint64(0)
	seen := make(map[uint64]bool, len(w.Seen))
	for i := range w.Seen {
		d := &w.Seen[i]
		if d.ConsumerSeq <= number || d.ConsumerSeq != number+1 && !removed {
			fail(d.At, "the delivery with the number %d came after that with %d", d.ConsumerSeq, number)
		}
		number = d.ConsumerSeq
		if d.StreamSeq <= last {
			fail(d.At, "sequence %d came after %d", d.StreamSeq, last)
		}
		if id, ok := known[d.StreamSeq]; d.Value == 0 || ok && id != d.Value {
			fail(d.At, "sequence %d was delivered with value #%d, it holds #%d", d.StreamSeq, d.Value, id)
		}
		if !models.Covers(w.Filter, d.Subject) {
			fail(d.At, "sequence %d is on %s", d.StreamSeq, d.Subject)
		}
		last = d.StreamSeq
		seen[d.StreamSeq] = true
	}
	final := o.Finals[w.Stream]
	if final == nil || final.Down != "" || len(final.Unread) > 0 {
		return found // A watch stops at a message that cannot be read.
	}
	for i := range final.Messages {
		m := &final.Messages[i]
		if seen[m.Seq] || !models.Covers(w.Filter, m.Subject) || !owed(o, w, m, last) {
			continue
		}
		fail(w.Ended, "sequence %d on %s is stored and was skipped; the last one seen is %d", m.Seq, m.Subject, last)
		break
	}
	return found
}

// owed says whether a watch must have seen a message that is still stored in the end: one with a higher sequence was
// seen, or the watch was there until the end. A watch that began with the last message of each subject owes what was
// published after it was created.
func owed(o *workload.Observations, w *workload.Watch, m *history.Message, last uint64) bool {
	if m.Seq > last && w.Ended != 0 {
		return false
	}
	if w.All {
		return true
	}
	for i := range o.History.Records {
		r := &o.History.Records[i]
		if r.Kind == history.Publish && r.ID == m.Value {
			return r.Call > w.Created
		}
	}
	return false
}
