package stream

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/model/jsapi"
	"weir/model/subject"
)

// twin is the stream as a list of messages, with every answer recomputed from it.
type twin struct {
	config jsapi.StreamConfig
	msgs   []twinMsg
	first  uint64
	last   uint64
	clock  int64
	ids    map[string]twinID
	lastID string
	lastTs int64
}

type twinMsg struct {
	seq         uint64
	time        int64
	subject     string
	header, len int
}

type twinID struct {
	seq  uint64
	time int64
}

// twinPublish is a publish in the terms of the twin.
type twinPublish struct {
	subject, id, rollup, expectSubject, expectLast, expectID, filter string
	header, payload                                                  int
}

func (m twinMsg) bytes(file bool) uint64 {
	n := uint64(len(m.subject) + m.len)
	switch {
	case !file:
		return n + 16
	case m.header > 0:
		return n + 34
	}
	return n + 30
}

func (t *twin) file() bool { return t.config.Storage == jsapi.FileStorage }

func (t *twin) bytes() uint64 {
	var n uint64
	for _, m := range t.msgs {
		n += m.bytes(t.file())
	}
	return n
}

func (t *twin) matching(filter string) []twinMsg {
	var found []twinMsg
	for _, m := range t.msgs {
		if filter == "" || subject.Matches(m.subject, filter) {
			found = append(found, m)
		}
	}
	return found
}

func (t *twin) lastOf(filter string) uint64 {
	if found := t.matching(filter); len(found) > 0 {
		return found[len(found)-1].seq
	}
	return 0
}

// drop removes the messages that gone selects and returns how many there were.
func (t *twin) drop(gone func(m twinMsg) bool) uint64 {
	before := len(t.msgs)
	t.msgs = slices.DeleteFunc(t.msgs, gone)
	t.fixFirst(before > len(t.msgs))
	return uint64(before - len(t.msgs))
}

func (t *twin) fixFirst(changed bool) {
	switch {
	case len(t.msgs) > 0:
		t.first = t.msgs[0].seq
	case changed:
		t.first = t.last + 1
	}
}

func (t *twin) dropOldest(list []twinMsg) {
	t.drop(func(m twinMsg) bool { return m.seq == list[0].seq })
}

// publish returns the sequence, whether it is that of a duplicate, and the refusal.
func (t *twin) publish(p twinPublish) (seq uint64, duplicate bool, refusal string) {
	if refusal = t.refuseEarly(p); refusal != "" {
		return 0, false, refusal
	}
	if id, ok := t.ids[p.id]; p.id != "" && ok && t.clock-id.time < int64(t.config.DuplicateWindow) {
		return id.seq, true, ""
	}
	if p.expectID != "" && p.expectID != t.lastID {
		return 0, false, "wrong last msg ID: " + t.lastID
	}
	if p.rollup != "" && (!t.config.AllowRollup || t.config.DenyPurge) {
		return 0, false, "rollup not permitted"
	}
	msg := twinMsg{time: t.clock, subject: p.subject, header: p.header, len: p.header + p.payload}
	if refusal = t.refuseFull(p, msg); refusal != "" {
		return 0, false, refusal
	}
	t.last++
	msg.seq = t.last
	t.msgs = append(t.msgs, msg)
	t.fixFirst(false)
	t.lastTs = t.clock
	t.lastID = p.id
	if p.id != "" && t.config.DuplicateWindow > 0 {
		t.ids[p.id] = twinID{seq: msg.seq, time: t.clock}
	}
	t.enforce()
	switch strings.ToLower(p.rollup) {
	case "all":
		t.drop(func(m twinMsg) bool { return m.seq < msg.seq })
	case "sub":
		if t.lastOf(p.subject) == msg.seq {
			t.drop(func(m twinMsg) bool { return m.subject == p.subject && m.seq < msg.seq })
		}
	}
	return msg.seq, false, ""
}

func (t *twin) refuseEarly(p twinPublish) string {
	if t.config.Sealed {
		return "invalid operation on sealed stream"
	}
	if limit := t.config.MaxMsgSize; limit >= 0 && p.header+p.payload > int(limit) {
		return "message size exceeds maximum allowed"
	}
	if p.expectSubject != "" {
		last := t.lastOf(cmp.Or(p.filter, p.subject))
		if p.expectSubject != fmt.Sprint(last) {
			return fmt.Sprintf("wrong last sequence: %d", last)
		}
	} else if p.filter != "" {
		return "missing sequence for expected last sequence per subject"
	}
	if p.expectLast != "" && p.expectLast != fmt.Sprint(t.last) {
		return fmt.Sprintf("wrong last sequence: %d", t.last)
	}
	return ""
}

func (t *twin) refuseFull(p twinPublish, msg twinMsg) string {
	if t.config.Discard != jsapi.DiscardNew {
		return ""
	}
	per := t.config.MaxMsgsPerSubject
	same := t.matching(p.subject)
	full := per > 0 && int64(len(same)) >= per
	size := msg.bytes(t.file())
	switch {
	case full && t.config.DiscardNewPerSubject && p.rollup == "":
		return "maximum messages per subject exceeded"
	case t.config.MaxMsgs > 0 && int64(len(t.msgs)) >= t.config.MaxMsgs && !full:
		return "maximum messages exceeded"
	case t.config.MaxBytes > 0 && t.bytes()+size > uint64(t.config.MaxBytes) && (!full || same[0].bytes(t.file()) < size):
		return "maximum bytes exceeded"
	}
	return ""
}

func (t *twin) enforce() {
	if per := t.config.MaxMsgsPerSubject; per > 0 {
		for _, s := range t.subjects() {
			for list := t.matching(s); int64(len(list)) > per; list = t.matching(s) {
				t.dropOldest(list)
			}
		}
	}
	if t.config.Discard != jsapi.DiscardOld {
		return
	}
	for t.config.MaxMsgs > 0 && int64(len(t.msgs)) > t.config.MaxMsgs {
		t.dropOldest(t.msgs)
	}
	for t.config.MaxBytes > 0 && len(t.msgs) > 0 && t.bytes() > uint64(t.config.MaxBytes) {
		t.dropOldest(t.msgs)
	}
}

func (t *twin) subjects() []string {
	set := make(map[string]bool)
	for _, m := range t.msgs {
		set[m.subject] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func (t *twin) purge(filter string, seq, keep uint64) (uint64, string) {
	switch {
	case seq > 0 && keep > 0:
		return 0, "bad request"
	case t.config.Sealed:
		return 0, "invalid operation on sealed stream"
	case t.config.DenyPurge:
		return 0, "stream purge not permitted"
	case seq == 1:
		return 0, ""
	}
	if filter == ">" {
		filter = ""
	}
	if filter == "" && keep == 0 {
		bound := cmp.Or(seq, t.last+1)
		removed := t.drop(func(m twinMsg) bool { return m.seq < bound })
		if len(t.msgs) == 0 && bound > t.last {
			t.first, t.last = bound, bound-1
		}
		return removed, ""
	}
	list := t.matching(filter)
	if keep >= uint64(len(list)) {
		return 0, ""
	}
	gone := list[:uint64(len(list))-keep]
	return t.drop(func(m twinMsg) bool {
		return slices.ContainsFunc(gone, func(g twinMsg) bool { return g.seq == m.seq && (seq == 0 || m.seq < seq) })
	}), ""
}

func (t *twin) delete(seq uint64) string {
	switch {
	case t.config.Sealed:
		return "invalid operation on sealed stream"
	case t.config.DenyDelete:
		return "message delete not permitted"
	case t.file() && seq == 0:
		return "no message found"
	case t.file() && seq > t.last:
		return "stream store EOF"
	case t.drop(func(m twinMsg) bool { return m.seq == seq }) == 0:
		return fmt.Sprintf("sequence %d not found", seq)
	}
	return ""
}

func (t *twin) tick() {
	if age := int64(t.config.MaxAge); age > 0 {
		t.drop(func(m twinMsg) bool { return m.time+age <= t.clock })
	}
}

func (t *twin) seqAt(time int64) uint64 {
	for _, m := range t.msgs {
		if m.time >= time {
			return m.seq
		}
	}
	return t.last + 1
}
