package replica

import (
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/wal"
	"weir/node/event"
	"weir/spec/assert"
)

// Advance carries out everything that Raft has ready: messages and appends leave through the sink, committed entries are
// applied.
func (r *Replica) Advance(sink Sink) {
	if r.advancing {
		return // the call further up goes on; what it holds comes first
	}
	r.advancing = true
	for r.broken == nil && r.node.HasReady() {
		ready := r.node.Ready()
		if ready.HardState != nil {
			assert.True(ready.HardState.GetCommit() >= r.commit, "the commit index does not go back", ready.HardState.GetCommit(), r.commit)
			r.term, r.commit = ready.HardState.GetTerm(), ready.HardState.GetCommit()
		}
		if ready.SoftState != nil {
			r.follow(ready.SoftState, sink)
		}
		for i := range ready.ReadStates {
			r.confirm(&ready.ReadStates[i])
		}
		for _, m := range ready.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				r.persist(m, sink)
			case raft.LocalApplyThread:
				r.apply(m, sink)
			default:
				r.send(m, sink)
			}
		}
		r.runReads()
		r.standAlone()
	}
	r.advancing = false
}

// standAlone lets the only voter of a group stand for election at once. It may become the only one without leading, when
// a leader completes its own removal.
func (r *Replica) standAlone() {
	if !r.started || r.rounds || r.leader || r.broken != nil || r.node.HasReady() {
		return
	}
	if r.node.BasicStatus().RaftState != raft.StateFollower {
		return
	}
	if err := r.node.Campaign(); err != nil {
		assert.Unreachable("a replica can not campaign: " + err.Error())
	}
}

// follow notes the role that Raft gives this replica.
func (r *Replica) follow(state *raft.SoftState, sink Sink) {
	was, known := r.leader, r.leaderID
	r.leader, r.leaderID = state.RaftState == raft.StateLeader, state.Lead
	if !was && r.leader {
		r.settledBy = r.last + 1 // the entry that begins a term
		r.ledTerm = r.term
		r.holdOwnTerm()
	}
	if was && !r.leader {
		if r.config.Plant.ReadOldLeader {
			r.confirmAll(0)
			r.runReads()
		}
		r.serving = false
		r.depose(sink)
		r.failReads()
	}
	if r.leader && r.config.Plant.ReadBeforeTerm && r.config.Group != catalogGroup {
		r.serving = true
	}
	if r.leaderID != known {
		r.askAgain()
	}
	if was != r.leader || r.leaderID != known {
		sink.Role(r)
	}
}

// takeMeta is what the next append has to write for the group beside its entries, and the log has not got.
func (r *Replica) takeMeta() []byte {
	meta := r.meta
	r.meta = nil
	return meta
}

// persist hands out one MsgStorageAppend. Raft asks that its responses leave after the write is durable, in order. A
// message that changes nothing but the commit index needs no write of its own: its responses ride with the append
// before it.
func (r *Replica) persist(m *pb.Message, sink Sink) {
	hard := r.hard
	if m.Term != nil {
		hard = wal.HardState{Term: m.GetTerm(), Vote: m.GetVote(), Commit: m.GetCommit()}
	}
	durable := len(m.Entries) > 0 || m.Snapshot != nil || hard.Term != r.hard.Term || hard.Vote != r.hard.Vote
	r.hard = hard
	if n := len(m.Entries); n > 0 {
		r.last = m.Entries[n-1].GetIndex()
		r.noteChanges(m.Entries)
	}
	if !durable || r.config.Volatile {
		if n := len(r.inFlight); n > 0 {
			last := &r.inFlight[n-1]
			last.responses = append(last.responses, m.Responses...)
			return
		}
		r.log.append(m.Entries)
		r.respond(m.Responses, sink)
		return
	}
	w := wal.Write{Group: r.config.Group, HasHardState: true, HardState: hard}
	if m.Snapshot != nil {
		r.restored(m, &w, sink)
	} else {
		w.Meta = r.takeMeta()
	}
	w.Entries = make([]wal.Entry, len(m.Entries))
	for i, e := range m.Entries {
		w.Entries[i] = wal.Entry{Term: e.GetTerm(), Index: e.GetIndex(), Type: uint8(e.GetType()), Data: e.GetData()}
	}
	ticket := sink.Persist(w)
	if r.config.Plant.AckBeforeSync && m.Snapshot == nil {
		r.log.append(m.Entries)
		r.respond(m.Responses, sink)
		return
	}
	if r.config.Plant.VoteBeforeSync {
		m.Responses = r.voteEarly(m.Responses, sink)
	}
	r.inFlight = append(r.inFlight, appendInFlight{
		ticket: ticket, entries: m.Entries, snapshot: m.Snapshot, responses: m.Responses})
}

// Persisted notes that every append up to and including the one with the ticket is durable.
func (r *Replica) Persisted(ticket event.Ticket, sink Sink) {
	done := 0
	for done < len(r.inFlight) && r.inFlight[done].ticket <= ticket {
		f := &r.inFlight[done]
		if f.snapshot != nil {
			r.log.restore(f.snapshot)
		}
		r.log.append(f.entries)
		if r.config.Plant.AckBeforeCommit && r.leader {
			r.applyEntries(f.entries, sink)
		}
		if f.settles {
			r.unsettled--
		}
		r.respond(f.responses, sink)
		done++
	}
	rest := copy(r.inFlight, r.inFlight[done:])
	clear(r.inFlight[rest:])
	r.inFlight = r.inFlight[:rest]
	r.Advance(sink)
}

// respond delivers what had to wait for an append, or for entries to be applied.
func (r *Replica) respond(responses []*pb.Message, sink Sink) {
	for _, m := range responses {
		if m.GetTo() != r.config.ID {
			r.send(m, sink)
			continue
		}
		if err := r.node.Step(m); err != nil {
			// Responses of an earlier term are ignored by Raft, as they should be.
			continue
		}
	}
}

// apply applies the committed entries of one MsgStorageApply.
func (r *Replica) apply(m *pb.Message, sink Sink) {
	n := len(m.Entries)
	assert.True(m.Entries[0].GetIndex() == r.raftApplied+1, "Raft hands out entries one after the other",
		m.Entries[0].GetIndex(), r.raftApplied)
	r.applyEntries(m.Entries, sink)
	r.raftApplied = m.Entries[n-1].GetIndex()
	if r.broken != nil {
		return
	}
	r.trim()
	r.respond(m.Responses, sink)
}

// applyEntries applies entries. The machine is ahead of them when it came with a snapshot whose index the log has too.
func (r *Replica) applyEntries(entries []*pb.Entry, sink Sink) {
	for _, e := range entries {
		if r.broken != nil {
			return
		}
		applied := r.machine.Applied()
		assert.True(e.GetIndex() <= applied+1, "entries are applied one after the other", e.GetIndex(), applied)
		known := e.GetIndex() <= applied
		data := e.GetData()
		if e.GetType() != pb.EntryNormal {
			assert.True(e.GetType() == pb.EntryConfChangeV2, "entries are commands or changes of the members", uint64(e.GetType()))
			data = nil
		}
		r.effects.Reset()
		if !known {
			r.log.noteTerm(e.GetIndex(), e.GetTerm())
			r.machine.Apply(e.GetIndex(), data, &r.effects)
			r.lastBytes = len(e.GetData()) + entryOverheadBytes
			r.unsavedBytes += r.lastBytes
			r.tail.add(e, r.lastBytes, &r.config)
		}
		if r.leader && e.GetTerm() == r.term {
			r.serving = true
		}
		batch := r.resolveLate(e, sink)
		if batch == nil {
			batch = r.resolve(e)
		}
		if e.GetIndex() >= r.changing {
			r.changing = 0
		}
		if e.GetType() != pb.EntryNormal {
			r.applyChange(e, sink)
		}
		switch {
		case !known:
			sink.Applied(r, batch, &r.effects)
		case batch != nil:
			batch.forget()
		}
		if batch != nil {
			r.recycle(batch)
		}
		r.runReads()
	}
}

// entryOverheadBytes is what an entry costs in the log beside its data.
const entryOverheadBytes = 40
