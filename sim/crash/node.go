package crash

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"weir/disk/checkpoint"
	"weir/disk/msgstore"
	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/node/event"
	"weir/node/storage"
)

// node is the smallest server that uses the storage as the engine does: it appends, applies what is durable, writes
// blocks behind the log, checkpoints, compacts, drops and recovers.
type node struct {
	seed    uint64
	storage *storage.Storage
	groups  []*group // ascending by id
	next    event.Ticket
}

// group is one group of the node.
type group struct {
	id      wal.GroupID
	machine *machine
	index   *msgstore.Index
	last    uint64 // newest index in the log
	hard    wal.HardState
	saved   uint64 // index of a checkpoint that the log is not yet told of
	behind  bool   // the log knows nothing of the newest checkpoint, which was installed
}

const blockBytes = 2048

func newIndex() *msgstore.Index {
	return msgstore.NewIndex(msgstore.IndexOptions{BlockBytes: blockBytes, Compress: true})
}

// errDamaged says that the storage reported damage of a group.
var errDamaged = errors.New("storage reports damage")

// start opens the storage and recovers all groups. Groups that the storage reports as damaged are returned by id.
func start(fs vfs.FS, seed uint64, options storage.Options) (*node, map[wal.GroupID]error, error) {
	s, found, err := storage.Open(fs, dir, options)
	if err != nil {
		return nil, nil, err
	}
	if err := s.Hidden(); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	n := &node{seed: seed, storage: s, next: 1}
	damaged := map[wal.GroupID]error{}
	for i := range found {
		if found[i].Damage != nil {
			damaged[found[i].ID] = found[i].Damage
			continue
		}
		g, err := recoverGroup(seed, &found[i])
		if err != nil {
			return nil, nil, errors.Join(err, s.Close())
		}
		n.groups = append(n.groups, g)
	}
	return n, damaged, nil
}

// dir is the data directory on the simulated disk.
const dir = "data"

// recoverGroup rebuilds a group from its checkpoint and the log behind it.
func recoverGroup(seed uint64, found *event.Group) (*group, error) {
	g := &group{id: found.ID, machine: &machine{seed: seed, id: found.ID}, index: newIndex(), hard: found.Log.HardState}
	if err := g.machine.restore(&found.Checkpoint, event.IndexSections); err != nil {
		return nil, err
	}
	g.index.Restore(found.NextBlock, found.Blocks)
	g.last = max(found.Checkpoint.Index, found.Log.Compact)
	logged := found.Log.Compact
	if n := len(found.Log.Entries); n > 0 {
		logged = found.Log.Entries[n-1].Index
	}
	g.behind = logged < found.Checkpoint.Index
	for _, e := range found.Log.Entries {
		c := commandAt(seed, g.id, e.Index)
		if !bytes.Equal(e.Data, c.encode()) {
			return nil, fmt.Errorf("group %d: entry %d is not what was appended", g.id, e.Index)
		}
		if e.Index <= found.Checkpoint.Index {
			continue
		}
		if e.Index != g.last+1 {
			return nil, fmt.Errorf("group %d: entry %d follows %d", g.id, e.Index, g.last)
		}
		g.last = e.Index
		g.apply(e.Index)
	}
	return g, nil
}

// apply applies one entry to machine and message index.
func (g *group) apply(index uint64) {
	var e effects
	g.machine.apply(index, &e)
	for _, m := range e.store {
		g.index.Append(m)
	}
	for _, seq := range e.forget {
		g.index.Forget(seq)
	}
}

func (n *node) group(id wal.GroupID) *group {
	i, ok := slices.BinarySearchFunc(n.groups, id, func(g *group, id wal.GroupID) int { return cmp.Compare(g.id, id) })
	if !ok {
		return nil
	}
	return n.groups[i]
}

// do carries out operations and returns the completions.
func (n *node) do(ops ...event.Op) []event.Completion {
	for i := range ops {
		ops[i].Ticket = n.next
		n.next++
	}
	return n.storage.Do(ops, nil)
}

// persist appends writes; when it returns nil they are acknowledged.
func (n *node) persist(writes []wal.Write) error {
	for _, c := range n.do(event.Op{Kind: event.Persist, Writes: writes}) {
		if c.Err != nil {
			return c.Err
		}
	}
	return nil
}

// keep writes what the message indexes hand out.
func (n *node) keep(g *group) {
	if blocks := g.index.TakeWrites(nil); len(blocks) > 0 {
		n.do(event.Op{Kind: event.Keep, Group: g.id, Blocks: blocks})
	}
}

// save makes a checkpoint of the group.
func (n *node) save(g *group) error {
	n.keep(g)
	u := checkpoint.Update{Index: g.machine.applied, Term: 1}
	u.Put, u.Delete = g.machine.sections()
	for _, s := range g.index.TakeState() {
		if s.Data == nil {
			u.Delete = append(u.Delete, event.IndexSections+s.ID)
			continue
		}
		u.Put = append(u.Put, checkpoint.Section{ID: event.IndexSections + s.ID, Data: s.Data})
	}
	op := event.Op{Kind: event.Save, Group: g.id, Save: event.Checkpoint{Update: u, Blocks: g.index.Blocks(nil)}}
	for _, c := range n.do(op) {
		if c.Err != nil {
			return c.Err
		}
	}
	g.saved = u.Index
	return nil
}

// rewrite copies a block with little living data, if there is one.
func (n *node) rewrite(g *group) error {
	n.keep(g)
	order, ok := g.index.TakeRewrite()
	if !ok {
		return nil
	}
	for _, c := range n.do(event.Op{Kind: event.Rewrite, Group: g.id, Block: order}) {
		if c.Err != nil {
			return c.Err
		}
		g.index.Rewritten(c.Rewritten)
	}
	return nil
}

// drop ends a group.
func (n *node) drop(g *group) error {
	if err := n.persist([]wal.Write{{Group: g.id, Drop: true}}); err != nil {
		return err
	}
	n.groups = slices.DeleteFunc(n.groups, func(other *group) bool { return other == g })
	for _, c := range n.do(event.Op{Kind: event.Drop, Group: g.id}) {
		if c.Err != nil {
			return c.Err
		}
	}
	return nil
}

// read returns a stored message, from memory or from the disk.
func (n *node) read(g *group, seq uint64) (msgstore.Msg, error) {
	if m, ok := g.index.Cached(seq); ok {
		return m, nil
	}
	loc, ok := g.index.Lookup(seq)
	if !ok {
		return msgstore.Msg{}, fmt.Errorf("group %d: message %d is not in the index", g.id, seq)
	}
	n.keep(g)
	c := n.do(event.Op{Kind: event.Fetch, Group: g.id, Loc: loc})[0]
	return c.Message, c.Err
}

// errCorrupt reports whether an error says that something is damaged.
func errCorrupt(err error) bool {
	return errors.Is(err, wal.ErrCorrupt) || errors.Is(err, msgstore.ErrCorrupt) || errors.Is(err, checkpoint.ErrCorrupt)
}
