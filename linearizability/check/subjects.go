package check

import (
	"cmp"
	"slices"

	"weir/linearizability/history"
	"weir/linearizability/models"
)

// writesOn returns the known publishes on the subjects of a filter, by sequence.
func (j *judge) writesOn(filter string) []*history.Record {
	if cached, ok := j.writes[filter]; ok {
		return cached
	}
	var writes []*history.Record
	for i := range j.records {
		if r := &j.records[i]; r.Stored() && models.Covers(filter, r.Subject) {
			writes = append(writes, r)
		}
	}
	slices.SortFunc(writes, func(a, b *history.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	j.writes[filter] = writes
	return writes
}

// observed returns the sequence that would have changed what r saw as the last message of its subject or filter, 0 if
// none would have, given what may have been removed; and whether r constrains anything.
func (j *judge) observed(r *history.Record) (next uint64, counts bool) {
	if r.Seq == 0 && j.mayBeEmpty(r.Subject, r.Return) {
		return 0, false
	}
	if w := j.bySeq[r.Seq]; w != nil && !models.Covers(r.Subject, w.Subject) {
		j.fail(Invented, r.Return, "operation #%d was told that sequence %d is the last one on %s; it was published on %s",
			r.ID, r.Seq, r.Subject, w.Subject)
	}
	if r.Seq != 0 && j.mayBeOlder(r) {
		return 0, true
	}
	writes := j.writesOn(r.Subject)
	i, _ := slices.BinarySearchFunc(writes, r.Seq+1, func(w *history.Record, seq uint64) int {
		return cmp.Compare(w.Seq, seq)
	})
	if i < len(writes) {
		next = writes[i].Seq
	}
	return next, true
}

// mayBeOlder says whether what r saw as the last message may have been older than the newest one written, because the
// newest was removed without it.
func (j *judge) mayBeOlder(r *history.Record) bool {
	for _, d := range j.removals {
		if d.Call > r.Return {
			continue
		}
		if d.Kind == history.DeleteMsg && d.At > r.Seq {
			return true
		}
		if d.Kind == history.Purge && d.Subject != "" && d.Subject != r.Subject && overlaps(d.Subject, r.Subject) {
			return true
		}
	}
	return j.rules.Vanishes
}

// mayBeEmpty says whether everything on the subject may have been removed by something called before the time.
func (j *judge) mayBeEmpty(subject string, before int64) bool {
	if j.rules.MaxMsgs != 0 || j.rules.Vanishes {
		return true
	}
	for _, d := range j.removals {
		if d.Call > before || d.Kind == history.Publish {
			continue
		}
		all := d.Keep == 0 || d.Subject != subject // What is kept may be of other subjects.
		if d.Kind == history.DeleteMsg || all && (d.Subject == "" || overlaps(d.Subject, subject)) {
			return true
		}
	}
	return false
}

func overlaps(a, b string) bool { return models.Covers(a, b) || models.Covers(b, a) }

// subjects checks that a publish which was accepted against an expected subject sequence followed exactly that message
// in the order of the subject.
func (j *judge) subjects() {
	for i := range j.records {
		w := &j.records[i]
		if !w.Stored() || !w.ExpectSubject.Set {
			continue
		}
		previous := uint64(0)
		for _, other := range j.writesOn(w.Subject) {
			if other.Seq < w.Seq {
				previous = other.Seq
			}
		}
		want := w.ExpectSubject.Seq
		fits := want == previous || want == 0 && j.mayBeEmpty(w.Subject, w.Return)
		fits = fits || want > previous && want < w.Seq && len(j.unresolved) > 0
		fits = fits || want < previous && j.deleted(previous)
		if !fits {
			j.fail(Expectation, w.Return, "publish #%d on %s expected %d and was stored at %d right after %d",
				w.ID, w.Subject, want, w.Seq, previous)
		}
	}
}

// deleted says whether some delete may have removed the sequence.
func (j *judge) deleted(seq uint64) bool {
	return slices.ContainsFunc(j.removals, func(d *history.Record) bool {
		return d.Kind == history.DeleteMsg && d.At == seq || d.Kind == history.Purge && d.At > seq
	})
}
