package storage

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"weir/disk/checkpoint"
	"weir/disk/memfs"
	"weir/disk/msgstore"
	"weir/disk/wal"
	"weir/node/event"
)

// copyOf is one replica of a group: the storage of its server and the index of its messages.
type copyOf struct {
	t     *testing.T
	fs    *memfs.FS
	s     *Storage
	index *msgstore.Index
	seq   uint64
	live  []uint64
}

const theGroup = wal.GroupID(16)

func newCopy(t *testing.T, seed uint64) *copyOf {
	fs := memfs.New(memfs.Options{Seed: seed})
	s, _ := open(t, fs)
	birth := wal.Write{Group: theGroup, HasHardState: true, Meta: []byte("m")}
	must(t, s.Do([]event.Op{{Kind: event.Persist, Ticket: 1, Writes: []wal.Write{birth}}}, nil)[0].Err)
	return &copyOf{t: t, fs: fs, s: s, index: msgstore.NewIndex(msgstore.IndexOptions{BlockBytes: 2048})}
}

func messageAt(seq uint64) msgstore.Msg {
	return msgstore.Msg{Seq: seq, Time: int64(seq), Subject: []byte("s"), Payload: bytes.Repeat([]byte{byte(seq)}, 100)}
}

func (c *copyOf) store(n int) {
	for range n {
		c.seq++
		c.index.Append(messageAt(c.seq))
		c.live = append(c.live, c.seq)
	}
}

func (c *copyOf) forget(which func(seq uint64) bool) {
	c.live = slices.DeleteFunc(c.live, func(seq uint64) bool {
		if which(seq) {
			c.index.Forget(seq)
			return true
		}
		return false
	})
}

// op carries out an operation on the group.
func (c *copyOf) op(kind event.OpKind, order event.Snapshot) event.Completion {
	done := c.s.Do([]event.Op{{Kind: kind, Ticket: 1, Group: theGroup, Snapshot: order}}, nil)
	if kind == event.Unpin {
		return event.Completion{}
	}
	return done[0]
}

func (c *copyOf) save() error {
	c.s.Do([]event.Op{{Kind: event.Keep, Group: theGroup, Blocks: c.index.TakeWrites(nil)}}, nil)
	u := checkpoint.Update{Index: c.seq, Term: 1, Put: []checkpoint.Section{{ID: 1, Data: fmt.Appendf(nil, "state at %d", c.seq)}}}
	for _, s := range c.index.TakeState() {
		if s.Data == nil {
			u.Delete = append(u.Delete, event.IndexSections+s.ID)
			continue
		}
		u.Put = append(u.Put, checkpoint.Section{ID: event.IndexSections + s.ID, Data: s.Data})
	}
	op := event.Op{Kind: event.Save, Ticket: 1, Group: theGroup, Save: event.Checkpoint{Update: u, Blocks: c.index.Blocks(nil)}}
	return c.s.Do([]event.Op{op}, nil)[0].Err
}

func (c *copyOf) rewrite() bool {
	order, ok := c.index.TakeRewrite()
	if ok {
		done := c.s.Do([]event.Op{{Kind: event.Rewrite, Ticket: 1, Group: theGroup, Block: order}}, nil)[0]
		must(c.t, done.Err)
		c.index.Rewritten(done.Rewritten)
	}
	return ok
}

// restart opens the storage anew, as after the process was killed, and returns what is found of the group.
func (c *copyOf) restart() event.Group {
	c.t.Helper()
	must(c.t, c.s.Close())
	s, groups := open(c.t, c.fs)
	c.s = s
	for _, g := range groups {
		if g.ID == theGroup {
			return g
		}
	}
	return event.Group{}
}

// adopt makes a group that was installed or recovered the one that is used.
func (c *copyOf) adopt(g *event.Group, like *copyOf) {
	c.index = msgstore.NewIndex(msgstore.IndexOptions{BlockBytes: 2048})
	c.index.Restore(g.NextBlock, g.Blocks)
	c.seq, c.live = like.seq, slices.Clone(like.live)
}

// check reads every message from the disk.
func (c *copyOf) check(g *event.Group) {
	c.t.Helper()
	if want := fmt.Sprintf("state at %d", c.seq); len(g.Checkpoint.Sections) == 0 || string(g.Checkpoint.Sections[0].Data) != want {
		c.t.Fatalf("sections %v, want %q", g.Checkpoint.Sections, want)
	}
	if c.index.Live() != uint64(len(c.live)) {
		c.t.Fatalf("%d messages, want %d", c.index.Live(), len(c.live))
	}
	for _, seq := range c.live {
		loc, ok := c.index.Lookup(seq)
		if !ok {
			c.t.Fatalf("message %d is gone", seq)
		}
		done := c.s.Do([]event.Op{{Kind: event.Fetch, Ticket: 1, Group: theGroup, Loc: loc}}, nil)[0]
		if done.Err != nil || !bytes.Equal(done.Message.Payload, messageAt(seq).Payload) {
			c.t.Fatalf("message %d: %v", seq, done.Err)
		}
	}
}

func (c *copyOf) pin() event.Pinned {
	c.t.Helper()
	done := c.op(event.Pin, event.Snapshot{})
	must(c.t, done.Err)
	return done.Pinned
}

// bring stages what is missing of a pinned snapshot of another replica and returns how many bytes that were. change may
// spoil a piece.
func (c *copyOf) bring(from *copyOf, p event.Pinned, verify bool, change func(order *event.Snapshot)) (bytes uint64, err error) {
	order := event.Snapshot{Pin: p.Pin, Manifest: p.Manifest, Verify: verify}
	for range 5 {
		done := c.op(event.Stage, order)
		if done.Err != nil || !done.Staged.More && len(done.Staged.Missing) == 0 {
			return bytes, done.Err
		}
		for _, m := range done.Staged.Missing {
			for order.Part = m.Part; m.Offset < m.Bytes; m.Offset += uint64(order.Max) {
				order.Offset, order.Max = m.Offset, int(min(700, m.Bytes-m.Offset))
				read := from.op(event.ReadPart, order)
				if read.Err != nil {
					return bytes, read.Err
				}
				piece := order
				piece.Data = read.Data
				if change != nil {
					change(&piece)
				}
				if done := c.op(event.StagePart, piece); done.Err != nil {
					return bytes, done.Err
				}
				bytes += uint64(len(read.Data))
			}
		}
	}
	return bytes, errors.New("parts are still missing")
}

func (c *copyOf) install(p event.Pinned) event.Completion {
	return c.op(event.Install, event.Snapshot{Manifest: p.Manifest})
}

// sender is a replica with blocks of all kinds: whole, rewritten, sparse and unsealed.
func sender(t *testing.T) *copyOf {
	c := newCopy(t, 1)
	c.store(300)
	must(t, c.save())
	c.forget(func(seq uint64) bool { return seq < 100 && seq%7 != 0 })
	for c.rewrite() {
		must(t, c.save())
	}
	c.store(20)
	must(t, c.save())
	return c
}
