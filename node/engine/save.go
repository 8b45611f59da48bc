package engine

import (
	"slices"

	"weir/disk/checkpoint"
	"weir/disk/msgstore"
	"weir/disk/wal"
	"weir/node/event"
	"weir/node/replica"
)

// logBytesRatio is how far the log may run ahead of what a group has in it, in sizes of CheckpointBytes: a group at rest
// must not keep old log segments alive.
const logBytesRatio = 8

// checkpointing is what the engine knows about checkpoints and copies of blocks.
type checkpointing struct {
	saves      map[event.Ticket]saving
	due        []*group // those that want a checkpoint, in the order in which they get it
	copies     []*group // those that may have blocks to copy
	active     []*group // those that applied something since they last rested
	logBytes   int64    // of all groups since the start of the process
	laggardsAt int64    // logBytes when groups that lag behind with their checkpoints were last looked for
}

// saving is a checkpoint under way.
type saving struct {
	group   *group
	replica *replica.Replica
	save    event.Checkpoint
}

// SavesMax bounds the checkpoints under way: reads of the disk are behind them, and when many groups want one they take
// their turns.
const SavesMax = 4

// flushSaves starts the checkpoints that are due, each behind a Keep, so that the blocks hold everything that the
// checkpoint's index refers to.
func (e *Engine) flushSaves(out *event.Outputs) {
	n := 0
	for n < len(e.due) && len(e.saves) < SavesMax {
		g := e.due[n]
		n++
		g.saveDue = false
		if e.groups[g.id] != g || g.replica == nil || g.saving || g.installing || g.damaged != nil || g.dispute != noDispute ||
			g.replica.UnsavedBytes() == 0 && !g.moved {
			continue
		}
		g.saving, g.moved, g.firstUnsaved = true, false, 0
		e.keep(g, out)
		save := event.Checkpoint{Update: g.replica.Snapshot()}
		if g.index != nil {
			save.Update.Put, save.Update.Delete = appendIndexSections(g.index, save.Update.Put, save.Update.Delete)
			save.Blocks = g.index.Blocks(nil)
		}
		ticket := e.ticket()
		e.saves[ticket] = saving{g, g.replica, save}
		out.Storage = append(out.Storage, event.Op{Kind: event.Save, Ticket: ticket, Group: g.id, Save: save})
	}
	rest := copy(e.due, e.due[n:])
	clear(e.due[rest:])
	e.due = e.due[:rest]
}

// noteAppended looks after an entry was applied whether its group, or one that lags behind, wants a checkpoint.
func (e *Engine) noteAppended(g *group, bytes int) {
	if !g.durable() {
		return
	}
	e.logBytes += int64(bytes)
	e.noteActive(g)
	if g.firstUnsaved == 0 {
		g.firstUnsaved = e.logBytes
	}
	if g.replica.UnsavedBytes() >= e.config.JetStream.CheckpointBytes {
		e.wantSave(g)
	}
	most := logBytesRatio * int64(e.config.JetStream.CheckpointBytes)
	if e.logBytes-e.laggardsAt < most/4 {
		return
	}
	for _, other := range e.order {
		if e.writeBytes >= StepBytesMax {
			return // the rest has its turn soon
		}
		if other.durable() && other.firstUnsaved > 0 && e.logBytes-other.firstUnsaved > most/2 {
			e.catchUp(other)
		}
	}
	e.laggardsAt = e.logBytes
}

// catchUp moves what the log holds of a group to the end of the log, or into a checkpoint if that is much.
func (e *Engine) catchUp(g *group) {
	if w, ok := g.replica.Again(); ok && !g.saving && e.full == nil {
		for i := range w.Entries {
			e.writeBytes += len(w.Entries[i].Data)
		}
		e.appendOnly(w)
		g.firstUnsaved = e.logBytes
		return
	}
	e.wantSave(g)
}

func (e *Engine) wantSave(g *group) {
	if !g.saving && !g.saveDue {
		g.saveDue = true
		e.due = append(e.due, g)
	}
}

// saved handles the end of a checkpoint.
func (e *Engine) saved(c *event.Completion) {
	s, ok := e.saves[c.Ticket]
	if !ok {
		return
	}
	delete(e.saves, c.Ticket)
	g := s.group
	if e.groups[g.id] != g || g.replica != s.replica {
		return
	}
	g.saving = false
	if c.Err != nil {
		g.replica.SnapshotFailed(machineSections(s.save.Update))
		if g.index != nil {
			g.index.StateFailed(indexGone(s.save.Update))
		}
		g.moved = true
		e.reportSaveFailed(g, c.Err)
		e.foundIfDamage(g, c.Err) // the checkpoint before does not hold what was written
		e.noteActive(g)           // to try again after a while
		return
	}
	g.saveFailed = nil
	g.replica.SnapshotSaved()
	e.savedForSending(g)
	e.wantRewrite(g)
	e.appendOnly(wal.Write{Group: g.id, Compact: s.save.Update.Index})
}

// appendIndexSections adds what changed in the index of messages.
func appendIndexSections(x *msgstore.Index, put []checkpoint.Section, gone []uint64) ([]checkpoint.Section, []uint64) {
	for _, s := range x.TakeState() {
		id := event.IndexSections + s.ID
		if s.Data == nil {
			gone = append(gone, id)
			continue
		}
		put = append(put, checkpoint.Section{ID: id, Data: s.Data})
	}
	return put, gone
}

// machineSections leaves out of an update what is not the machine's.
func machineSections(u checkpoint.Update) checkpoint.Update {
	u.Put = slices.DeleteFunc(slices.Clone(u.Put), func(s checkpoint.Section) bool { return s.ID >= event.IndexSections })
	u.Delete = slices.DeleteFunc(slices.Clone(u.Delete), func(id uint64) bool { return id >= event.IndexSections })
	return u
}

// indexGone lists the blocks that an update takes out of the index of messages.
func indexGone(u checkpoint.Update) []uint64 {
	var gone []uint64
	for _, id := range u.Delete {
		if id >= event.IndexSections {
			gone = append(gone, id-event.IndexSections)
		}
	}
	return gone
}

// restNanos is how long a group has to rest before it may be checkpointed and gives up the memory of its message blocks.
const restNanos = int64(10e9)

// noteActive notes that a group is in use.
func (e *Engine) noteActive(g *group) {
	g.lastActive = e.now.Mono
	if g.active {
		return
	}
	g.active = true
	e.active = append(e.active, g)
	if len(e.active) == 1 {
		e.timers.push(timer{at: e.now.Mono + restNanos, kind: restTimer})
	}
}

// settleResting looks for groups that have come to rest: what a restart would replay of them goes into a checkpoint,
// so that it has little to do, and their blocks leave the memory.
func (e *Engine) settleResting() {
	still := e.active[:0]
	for _, g := range e.active {
		switch {
		case e.groups[g.id] != g || g.replica == nil:
		case e.now.Mono-g.lastActive < restNanos:
			still = append(still, g)
			continue
		default:
			e.rest(g)
		}
		g.active = false
	}
	clear(e.active[len(still):])
	e.active = still
	if len(e.active) > 0 {
		e.timers.push(timer{at: e.now.Mono + restNanos, kind: restTimer})
	}
}

func (e *Engine) rest(g *group) {
	if g.replica.UnsavedBytes() >= ReplayBytesMin || g.saveFailed != nil || g.index != nil && g.index.Gone() > 0 {
		e.wantSave(g)
	}
	if g.index != nil {
		g.index.Evict(0)
		e.boundCache(g)
	}
}
