package verdict

import (
	"weir/linearizability/history"
	"weir/linearizability/models"
	"weir/sim/plan"
	"weir/sim/workload"
	"weir/sim/world"
)

// expirySlack is by how much a message that is too old may outlive its time while nothing fails.
const expirySlack = 5_000_000_000

// limits: a stream never says that it holds more bytes than it may, and in the end it holds nothing that is too old.
func limits(p *plan.Plan, o *workload.Observations, stream int) []Finding {
	var found []Finding
	s, final := &p.Streams[stream], o.Finals[stream]
	if s.MaxBytes != 0 && stream < len(o.Bytes) && o.Bytes[stream] > uint64(s.MaxBytes) {
		found = append(found, Finding{Class: "over-limit", Detail: sprintf("%s said that it holds %d bytes, max_bytes is %d",
			s.Name, o.Bytes[stream], s.MaxBytes)})
	}
	if s.MaxAgeMillis == 0 || stepsClock(p) || p.Drifts() {
		return found
	}
	for i := range final.Messages {
		m := &final.Messages[i]
		if until := m.Time - world.Epoch + s.MaxAgeMillis*1_000_000; until+expirySlack < final.At {
			found = append(found, Finding{Class: "not-expired", At: final.At, Detail: sprintf("%s holds message %d, whose time was over at %d",
				s.Name, m.Seq, until)})
			break
		}
	}
	if f := early(p, o, stream); f != nil {
		found = append(found, *f)
	}
	return found
}

// early finds a read that did not find a message whose time was not over, in a stream from which nothing else removes any.
func early(p *plan.Plan, o *workload.Observations, stream int) *Finding {
	s := &p.Streams[stream]
	var written, reads []*history.Record
	for i := range o.History.Records {
		r := &o.History.Records[i]
		switch {
		case r.Stream != s.Name || r.Outcome == history.Rejected:
		case r.Kind == history.Purge || r.Kind == history.DeleteMsg || r.Rollup:
			return nil
		case r.Outcome != history.OK:
		case r.Kind == history.Publish && !r.Duplicate:
			written = append(written, r)
		case (r.Kind == history.GetSeq || r.Kind == history.GetLast) && r.Seq == 0:
			reads = append(reads, r)
		}
	}
	for _, r := range reads {
		for _, w := range written {
			wanted := r.Kind == history.GetSeq && r.At == w.Seq || r.Kind == history.GetLast && models.Covers(r.Subject, w.Subject)
			if wanted && w.Return < r.Call && r.Return < w.Call+s.MaxAgeMillis*1_000_000 {
				return &Finding{Class: "expired-early", At: r.Return, Detail: sprintf("%s: message %d of %d was not found by a read of %d to %d, max_age is %d ms",
					s.Name, w.Seq, w.Call, r.Call, r.Return, s.MaxAgeMillis)}
			}
		}
	}
	return nil
}
