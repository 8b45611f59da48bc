package stream

import (
	"strconv"

	"weir/model/command"
	"weir/model/consumer"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/seqset"
)

// forget tells storage that the messages in [first, last] are gone, joining the range to the effect before when they
// touch.
func (m *Machine) forget(first, last uint64) {
	if n := len(m.out.Effects); n > 0 {
		if e := &m.out.Effects[n-1]; e.Kind == effect.Forget && e.N+1 == first {
			e.N = last
			return
		}
	}
	e := m.out.Add(effect.Forget)
	e.Cmd, e.Seq, e.N = m.batch.Cmd, first, last
}

// erase asks for the bytes of a message that was just forgotten to be overwritten.
func (m *Machine) erase(seq uint64) {
	for i := len(m.out.Effects) - 1; i >= 0; i-- {
		if e := &m.out.Effects[i]; e.Kind == effect.Forget && e.Seq <= seq && seq <= e.N {
			e.Flag = true
			return
		}
	}
}

// purge removes messages: all, those below a sequence, those of a filter, or all but the newest few of either.
func (m *Machine) purge(c *command.Command) {
	filter := string(c.Text)
	if filter == ">" {
		filter = ""
	}
	switch {
	case c.StreamSeq > 0 && c.Keep > 0, c.StreamSeq > SeqMax:
		m.refuse(jsapi.CodeBadRequest.Err())
		return
	case m.config.Sealed:
		m.refuse(jsapi.CodeStreamSealed.Err())
		return
	case m.config.DenyPurge:
		m.refuse(jsapi.CodeStreamPurgeFailed.With("stream purge not permitted"))
		return
	}
	// The effects of the removals come before the result: what is reported as done is.
	var count uint64
	switch {
	case filter != "":
		count = m.purgeFilter(filter, c.StreamSeq, c.Keep)
	case c.Keep > 0:
		count = m.purgeBelow(m.boundOfKept(c.Keep))
	case c.StreamSeq == 1:
		// Nothing is below the first sequence there can be.
	case c.StreamSeq > 0:
		count = m.purgeBelow(c.StreamSeq)
	default:
		count = m.purgeBelow(m.log.last + 1)
	}
	m.result().N = count
}

// boundOfKept returns the sequence below which everything has to go so that keep messages remain.
func (m *Machine) boundOfKept(keep uint64) uint64 {
	messages := m.log.live.Len()
	if keep >= messages {
		return m.log.first
	}
	return selectRank(&m.log.live, messages-keep+1, m.log.first, m.log.last)
}

// purgeBelow removes all messages below a sequence and moves the start of the stream there: also when the sequence is
// beyond the end, then the next message gets it. It returns how many messages went.
func (m *Machine) purgeBelow(bound uint64) uint64 {
	log := &m.log
	if bound <= log.first {
		return 0
	}
	before, from, to := log.live.Len(), log.first, min(bound-1, log.last)
	if bound > log.last {
		log.last = bound - 1
		log.clear()
		m.clearViews()
	} else {
		for log.first < bound {
			m.removeQuietly(log.first)
		}
	}
	if before > 0 {
		m.forget(from, to)
	}
	m.notifyPurged()
	return before - log.live.Len()
}

// removeQuietly takes away a message without telling storage and consumers, who hear of the whole range later.
func (m *Machine) removeQuietly(seq uint64) {
	text := m.log.subjectOf(seq)
	m.log.remove(seq)
	for _, v := range m.consumers.views.route(text) {
		if v.kind == ownSet {
			v.own.Remove(seq)
		}
	}
}

// purgeFilter removes the messages of the filter that are below the bound (0: no bound), but for the newest keep (0: none
// is kept). It returns how many messages went.
func (m *Machine) purgeFilter(filter string, bound, keep uint64) uint64 {
	var matching seqset.Set
	m.collect([]string{filter}, &matching)
	if keep >= matching.Len() {
		return 0
	}
	todo := matching.Len() - keep
	if bound > 0 {
		todo = matching.Rank(bound - 1)
	}
	removed := uint64(0)
	for seq, ok := matching.First(); ok && removed < todo; seq, ok = matching.Next(seq + 1) {
		m.remove(seq, consumer.Purged)
		removed++
	}
	return removed
}

// rollup removes what came before the message at seq: all of it, or all of its subject. Limits may have removed the
// message itself already.
func (m *Machine) rollup(seq uint64, all bool) {
	if all {
		m.purgeBelow(seq)
		return
	}
	if !m.log.live.Contains(seq) {
		return
	}
	row := m.log.subjects.row(m.log.pages.at(seq).subject)
	for first, _ := row.seqs.First(); first < seq; first, _ = row.seqs.First() {
		m.remove(first, consumer.Deleted)
	}
}

// deleteMsg removes one message on request.
func (m *Machine) deleteMsg(c *command.Command) {
	seq := c.StreamSeq
	file := m.config.Storage == jsapi.FileStorage // says more about what is not there
	switch {
	case m.config.Sealed:
		m.refuse(jsapi.CodeStreamSealed.Err())
	case m.config.DenyDelete:
		m.refuse(jsapi.CodeStreamMsgDeleteFailed.With("message delete not permitted"))
	case file && seq == 0:
		m.refuse(jsapi.CodeStreamMsgDeleteFailed.With("no message found"))
	case file && seq > m.log.last:
		m.refuse(jsapi.CodeStreamMsgDeleteFailed.With("stream store EOF"))
	case !m.log.live.Contains(seq):
		m.refuse(jsapi.CodeSequenceNotFound.With(strconv.FormatUint(seq, 10)))
	default:
		m.remove(seq, consumer.Deleted)
		if c.Keep == 0 {
			m.erase(seq)
		}
		m.result().N = 1
	}
}
