package verdict

import (
	"weir/linearizability/history"
	"weir/sim/plan"
	"weir/sim/workload"
)

// mirror judges what a mirror holds in the end. Its stream has come to rest before: everything that is still there, and that
// the mirror copies, the mirror has too, with the same sequence, subject, contents and time; and whatever it has was
// acknowledged to the publisher, or is still in the stream.
func mirror(p *plan.Plan, o *workload.Observations, i int) []Finding {
	m, final := &p.Mirrors[i], o.Mirrors[i]
	stream := &p.Streams[m.Stream]
	origin := o.Finals[m.Stream]
	if final == nil || origin == nil || origin.Down != "" {
		return nil
	}
	held := map[uint64]history.Message{}
	for _, msg := range final.Messages {
		held[msg.Seq] = msg
	}
	var found []Finding
	for _, want := range origin.Messages {
		if want.Seq < m.StartSeq || m.Key >= 0 && want.Subject != stream.Subject(m.Key) {
			continue
		}
		switch got, ok := held[want.Seq]; {
		case !ok && final.Behind == "":
			found = append(found, Finding{Class: "mirror-lacks", Detail: sprintf("%s of %s has no message %d, its last is %d",
				m.Name, stream.Name, want.Seq, final.Last)})
		case ok && got != want:
			found = append(found, Finding{Class: "mirror-differs", Detail: sprintf("%s of %s has %+v, not %+v", m.Name, stream.Name, got, want)})
		}
	}
	known := writers(p, o, m.Stream)
	for _, msg := range final.Messages {
		value, written := known[msg.Seq]
		switch {
		case written && value != msg.Value:
			found = append(found, Finding{Class: "mirror-differs", Detail: sprintf("%s of %s has message %d with value %d, written was %d",
				m.Name, stream.Name, msg.Seq, msg.Value, value)})
		case msg.Seq < m.StartSeq || m.Key >= 0 && msg.Subject != stream.Subject(m.Key):
			found = append(found, Finding{Class: "mirror-differs", Detail: sprintf("%s of %s has message %d on %s, which it does not copy",
				m.Name, stream.Name, msg.Seq, msg.Subject)})
		}
	}
	return found
}

// reborn judges the mirror of a stream that was deleted and created again: it holds messages of one of the two from the first
// on, and when they are of the first it says that it does not go on.
func reborn(b *workload.Reborn) []Finding {
	if !b.Read {
		return nil
	}
	var found []Finding
	add := func(class, format string, args ...any) {
		found = append(found, Finding{Class: class, Detail: b.Name() + ": " + sprintf(format, args...)})
	}
	for i, life := range b.Lives {
		if life != b.Lives[0] {
			add("mirror-mixes", "the mirror holds messages of lives %v", b.Lives)
			break
		}
		if !b.Purged && b.Seqs[i] != uint64(i+1) {
			add("mirror-lacks", "the mirror holds the messages %v", b.Seqs)
			break
		}
	}
	switch {
	case len(b.Lives) > 0 && b.Lives[0] == 1 && b.Life == 2 && b.Error == "":
		add("mirror-silent", "the mirror of life 1 says nothing of life 2")
	case len(b.Lives) > 0 && b.Lives[0] == 2 && !b.Purged && len(b.Lives) < b.Sent:
		add("mirror-lacks", "the mirror holds %d of %d messages of life 2", len(b.Lives), b.Sent)
	}
	return found
}
