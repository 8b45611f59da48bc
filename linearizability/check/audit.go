package check

import (
	"maps"
	"slices"

	"weir/linearizability/history"
	"weir/linearizability/models"
)

// purges checks that what a finished purge removed was not seen by operations that began later.
func (j *judge) purges() {
	for _, p := range j.removals {
		if p.Kind != history.Purge || p.Outcome != history.OK || p.Keep != 0 {
			continue
		}
		removed := func(w *history.Record) bool {
			return w != nil && w.Stored() && w.Outcome == history.OK && w.Return < p.Call &&
				(p.At == 0 || w.Seq < p.At) && (p.Subject == "" || models.Covers(p.Subject, w.Subject))
		}
		for i := range j.records {
			r := &j.records[i]
			if r.Reads() && r.Kind != history.Info && r.Call > p.Return && r.Seq != 0 && removed(j.bySeq[r.Seq]) {
				j.fail(Risen, r.Return, "sequence %d was purged by #%d and read by #%d", r.Seq, p.ID, r.ID)
			}
		}
		for i := range j.final.Messages {
			if m := &j.final.Messages[i]; removed(j.bySeq[m.Seq]) {
				j.fail(Risen, 0, "sequence %d was purged by #%d and is there in the end", m.Seq, p.ID)
			}
		}
	}
}

// audit compares the read-back with everything that is known to have been stored.
func (j *judge) audit() {
	present := make(map[uint64]*history.Message, len(j.final.Messages))
	bySubject := make(map[string][]uint64)
	values := make(map[uint64]uint64)
	for i := range j.final.Messages {
		m := &j.final.Messages[i]
		present[m.Seq] = m
		bySubject[m.Subject] = append(bySubject[m.Subject], m.Seq)
		if other, twice := values[m.Value]; twice {
			j.fail(Repeated, 0, "value #%d is stored at %d and at %d", m.Value, other, m.Seq)
		}
		values[m.Value] = m.Seq
		j.value(m.Seq, m.Value, 0)
		if w := j.byID[m.Value]; w != nil && w.Subject != m.Subject {
			j.fail(Invented, 0, "value #%d was published on %s and is stored on %s", m.Value, w.Subject, m.Subject)
		}
		if m.Seq > j.final.Last {
			j.fail(Invented, 0, "sequence %d is stored beyond the last sequence %d", m.Seq, j.final.Last)
		}
	}
	j.messageIDs()
	j.missing(present)
	if len(j.removals) == 0 && !j.rules.Vanishes {
		j.limits(bySubject)
	}
}

// missing reports acknowledged messages that are not there although nothing may have removed them.
func (j *judge) missing(present map[uint64]*history.Message) {
	newer := make(map[string]int)
	for n, seq := range slices.Backward(slices.Sorted(maps.Keys(j.bySeq))) {
		w := j.bySeq[seq]
		newer[w.Subject]++
		if seq > j.final.Last && w.Outcome == history.OK {
			j.fail(Lost, 0, "publish #%d was stored at %d, the stream ends at %d", w.ID, seq, j.final.Last)
			return
		}
		if present[seq] != nil || j.rules.Unread[seq] || j.mayBeRemoved(w) || w.Outcome != history.OK {
			continue
		}
		// Unanswered publishes may have pushed it out too: they count as newer.
		unseen := len(j.unresolved)
		if limit := j.rules.MaxMsgsPerSubject; limit != 0 && newer[w.Subject]+unseen > limit {
			continue
		}
		if limit := j.rules.MaxMsgs; limit != 0 && len(j.bySeq)-n+unseen > limit {
			continue
		}
		j.fail(Lost, 0, "publish #%d was acknowledged at %d on %s and is gone", w.ID, seq, w.Subject)
	}
}

// mayBeRemoved says whether some operation of the history may have removed the message of the publish.
func (j *judge) mayBeRemoved(w *history.Record) bool {
	if j.rules.Vanishes {
		return true
	}
	return slices.ContainsFunc(j.removals, func(d *history.Record) bool {
		switch d.Kind {
		case history.Publish:
			return d.Subject == w.Subject && d != w && (d.Seq == 0 || d.Seq > w.Seq)
		case history.DeleteMsg:
			return d.At == w.Seq
		default:
			return d.Return >= w.Call && (d.At == 0 || w.Seq < d.At) && (d.Subject == "" || models.Covers(d.Subject, w.Subject))
		}
	})
}

// limits checks that no more messages are left than the limits allow.
func (j *judge) limits(bySubject map[string][]uint64) {
	if limit := j.rules.MaxMsgs; limit != 0 && len(j.final.Messages) > limit {
		j.fail(Limit, 0, "%d messages are left, max_msgs is %d", len(j.final.Messages), limit)
	}
	limit := j.rules.MaxMsgsPerSubject
	if limit == 0 {
		return
	}
	for _, subject := range slices.Sorted(maps.Keys(bySubject)) {
		if n := len(bySubject[subject]); n > limit {
			j.fail(Limit, 0, "%d messages are left on %s, max_msgs_per_subject is %d", n, subject, limit)
		}
	}
}

// messageIDs checks deduplication: by the answers, and by the server's own timestamps of what is stored.
func (j *judge) messageIDs() {
	stored := make(map[string]*history.Message)
	for i := range j.final.Messages {
		m := &j.final.Messages[i]
		if m.MsgID == "" {
			continue
		}
		if first := stored[m.MsgID]; first != nil && m.Time-first.Time < j.rules.Window {
			j.fail(Repeated, 0, "message id %s is stored at %d and, %d ns later, at %d",
				m.MsgID, first.Seq, m.Time-first.Time, m.Seq)
		}
		stored[m.MsgID] = m
	}
	acked := make(map[string]uint64)
	for _, seq := range slices.Sorted(maps.Keys(j.bySeq)) {
		w := j.bySeq[seq]
		if w.MsgID == "" {
			continue
		}
		if first := acked[w.MsgID]; first != 0 && !j.rules.Forgets {
			j.fail(Repeated, w.Return, "message id %s was stored at %d and again at %d", w.MsgID, first, seq)
		}
		acked[w.MsgID] = seq
	}
	for i := range j.records {
		r := &j.records[i]
		if r.Kind != history.Publish || !r.Duplicate || r.Outcome != history.OK {
			continue
		}
		if w := j.bySeq[r.Seq]; w != nil && w.MsgID != r.MsgID {
			j.fail(Invented, r.Return, "publish #%d with id %s was called a duplicate of sequence %d with id %s",
				r.ID, r.MsgID, r.Seq, w.MsgID)
		}
	}
}
