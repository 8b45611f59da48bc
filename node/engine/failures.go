package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/vfs"
	"weir/model/jsapi"
	"weir/node/event"
)

// appendFailed handles an append that failed. A full disk is a state that passes: everything that was to be appended is
// kept, in order, and tried again. Any other failure is for good: nothing that waits for it is ever acknowledged here,
// and nothing more is proposed. What is applied can be read in both cases.
func (e *Engine) appendFailed(failed persisting, err error) {
	if e.failure != nil {
		return
	}
	if errors.Is(err, vfs.ErrNoSpace) {
		e.awaitSpace(failed)
		if e.full == nil {
			e.noteFull(err)
		}
		return
	}
	e.failure = err
	e.stalled = nil
	e.logf(event.Error, "The log can not be written, JetStream refuses changes until the server is restarted: "+err.Error())
	for _, g := range e.order {
		g.replica.Fail(err)
	}
}

// StalledBytesMax bounds the appends that are kept while the disk is full. A leader proposes nothing then; a follower takes no more
// of its leader's entries, which are sent again until they have been taken.
const StalledBytesMax = 16 << 20

// awaitSpace keeps an append that waits for space.
func (e *Engine) awaitSpace(p persisting) {
	if !p.stalled {
		p.stalled = true
		e.stalledBytes += p.bytes
	}
	e.stalled = append(e.stalled, p)
}

// takesEntries reports whether there is room for entries of a leader, on the disk or until there is some.
func (e *Engine) takesEntries(m *pb.Message) bool {
	return m.GetType() != pb.MsgApp || len(m.Entries) == 0 || e.stalledBytes < StalledBytesMax
}

// retryNanosMax bounds the time between two attempts to append to a full disk.
const retryNanosMax = 8 * retryNanos

// noteFull begins to refuse changes because the disk is full. Reads that wait for what can not be appended are answered
// with what is applied: nothing behind that is acknowledged.
func (e *Engine) noteFull(err error) {
	e.full = err
	if e.fullNanos == 0 {
		e.logf(event.Error, "The disk is full, JetStream refuses changes until there is space again: "+err.Error())
	}
	e.fullNanos = min(max(2*e.fullNanos, retryNanos), retryNanosMax)
	e.timers.push(timer{at: e.now.Mono + e.fullNanos, kind: retryTimer})
	for _, g := range e.order {
		g.replica.AnswerReads()
	}
	e.leaveToOthers()
}

// leaveToOthers hands over what the server leads: others may have space.
func (e *Engine) leaveToOthers() {
	for _, g := range e.order {
		if g.leads() && len(g.replica.Members()) > 1 {
			e.handOver(g, g.replica.Members())
		}
	}
}

// errShort is what is wrong while the log lives on its reserve.
var errShort = errors.New("the disk is full: no messages are stored, what removes some is still taken")

// noteShort begins or ends to refuse messages because the log has found no room and lives on its reserve, which is kept for
// requests that free the disk.
func (e *Engine) noteShort(short bool) {
	if short && !e.probing {
		e.probing = true
		e.timers.push(timer{at: e.now.Mono + retryNanos, kind: probeTimer})
	}
	if short == e.short {
		return
	}
	e.short = short
	if !short {
		e.logf(event.Info, "There is space on the disk again, JetStream stores messages")
		return
	}
	e.logf(event.Error, "The disk is full: JetStream stores no messages until there is space again, and still takes what removes some")
	e.leaveToOthers()
}

// refusesMessages reports why the group stores no messages, or nil.
func (e *Engine) refusesMessages(g *group) *jsapi.Error {
	if refused := e.refusesProposals(g); refused != nil || !e.short {
		return refused
	}
	return jsapi.CodeInsufficientResources.Err()
}

// noteSpace notes that an append was successful.
func (e *Engine) noteSpace() {
	if e.fullNanos != 0 && e.full == nil && len(e.stalled) == 0 {
		e.fullNanos = 0
		e.logf(event.Info, "There is space on the disk again, JetStream takes changes")
	}
}

// retryAppends hands out again what did not fit on the disk, once nothing else is under way.
func (e *Engine) retryAppends() {
	if e.failure != nil || len(e.stalled) == 0 {
		return
	}
	if len(e.appends) > 0 {
		e.timers.push(timer{at: e.now.Mono + retryNanos, kind: retryTimer})
		return
	}
	// Appends that failed one after the other and those that were held back meanwhile are in the order of their tickets.
	slices.SortFunc(e.stalled, func(a, b persisting) int { return cmp.Compare(a.ticket, b.ticket) })
	e.retries = append(e.retries, e.stalled...)
	e.stalled = nil
	e.full = nil
}

// flushRetries hands out the appends that are tried again, before anything newer.
func (e *Engine) flushRetries(out *event.Outputs) {
	for i := range e.retries {
		p := e.retries[i]
		out.Storage = append(out.Storage, event.Op{Kind: event.Persist, Ticket: p.ticket, Writes: p.writes, Resume: i == 0})
		e.appends = append(e.appends, p)
	}
	clear(e.retries)
	e.retries = e.retries[:0]
}

// reportSaveFailed tells the operator that a checkpoint could not be made. The log keeps what it would have covered; a
// later checkpoint is tried when the group has written more, or after a while.
func (e *Engine) reportSaveFailed(g *group, err error) {
	first := g.saveFailed == nil
	g.saveFailed = err
	if first {
		e.logf(event.Error, fmt.Sprintf("Checkpoint of %s failed, it is tried again: %v", e.describe(g), err))
	}
	g.firstUnsaved = max(1, e.logBytes)
}

// reportDamage tells the operator that a stored message can not be read.
func (e *Engine) reportDamage(g *group, seq uint64, err error) {
	if g.readFailed == nil {
		e.logf(event.Error, fmt.Sprintf("Message %d of %s can not be read: %v", seq, e.describe(g), err))
	}
	g.readFailed = err
}

func (e *Engine) describe(g *group) string {
	if g.entry == nil {
		return "the catalog"
	}
	return fmt.Sprintf("stream '%s > %s'", g.entry.Account, g.entry.Name)
}
