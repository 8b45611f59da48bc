package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/msgstore"
	"weir/disk/snapshot"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/model/stream"
	"weir/node/event"
	"weir/node/replica"
	"weir/spec/assert"
	"weir/transport/peerwire"
)

// receiving is a snapshot that this server fetches for its replica of a group.
type receiving struct {
	group *group
	// replica is what it is fetched for; another one may have taken its place.
	replica *replica.Replica
	from    event.ServerID
	// offer is the message by which Raft offered it.
	offer    *pb.Message
	pin      uint64
	manifest snapshot.Manifest
	// missing are the parts to fetch; next is the one that is asked for next, from offset on.
	missing []event.MissingPart
	next    int
	offset  uint64
	// asked counts the pieces that are on their way, staging those that are being written.
	asked, staging int
	spare          [][]byte // memory of pieces that have been written, at most piecesMax
	failures       int
	damaged        bool // what came was not what the manifest says
	installing     bool
	// repair says that Raft did not offer it: it is to mend what is damaged here. held says that the replica is kept from
	// messages meanwhile, so that a snapshot can be as new as what it has.
	repair, held bool
	until        int64
}

// A snapshot is fetched in pieces of pieceBytes, of which piecesMax are on their way: enough for a network that is far or
// fast, and so small that messages go between them. failuresMax is how often a part may turn out damaged.
const (
	pieceBytes  = 256 << 10
	piecesMax   = 16
	failuresMax = 3
)

// staging is an operation of the storage for a snapshot, and the piece that it writes.
type staging struct {
	receiving *receiving
	data      []byte
}

// ReceivingsMax bounds the snapshots that are fetched at a time.
const ReceivingsMax = 4

// snapshotOffered begins to fetch a snapshot that a leader offers, or goes on with the newer offer.
func (e *Engine) snapshotOffered(g *group, from event.ServerID, m *pb.Message) {
	for _, r := range e.receivings {
		if r.group != g {
			continue
		}
		r.offer = m
		if r.from != from && !r.installing {
			r.from = from
			e.askManifest(r)
		}
		return
	}
	if e.isSpared(g) || len(e.receivings) >= ReceivingsMax {
		return // the leader offers it again
	}
	r := &receiving{group: g, replica: g.replica, from: from, offer: m}
	e.receivings = append(e.receivings, r)
	e.askManifest(r)
}

// isSpared reports whether the disk here has just failed to take over a snapshot of the group.
func (e *Engine) isSpared(g *group) bool {
	until, spared := e.spared[g.id]
	if spared && e.now.Mono >= until {
		delete(e.spared, g.id)
	}
	return spared && e.now.Mono < until
}

func (e *Engine) askManifest(r *receiving) {
	r.pin, r.missing, r.next, r.asked = 0, nil, 0, 0
	r.until = e.now.Mono + transferNanos
	e.sendFrame(r.from, &peerwire.Frame{Kind: peerwire.SnapGet, Group: uint64(r.group.id), Text: textManifest})
}

// transferFrame takes a frame about snapshots.
func (e *Engine) transferFrame(p *peer, f *peerwire.Frame) error {
	g := e.groups[groupID(f.Group)]
	if g == nil || g.replica == nil {
		return nil
	}
	switch f.Kind {
	case peerwire.SnapGet:
		e.snapGet(p, g, f)
		return nil
	case peerwire.SnapEnd:
		if s := e.sendingTo(g, p.id); s != nil {
			e.endSending(s, f.Flag)
			if string(f.Text) == string(textDamaged) {
				e.logf(event.Warn, fmt.Sprintf("Server %q finds the snapshot of %s damaged, it is verified", p.hello.Name, e.describe(g)))
				e.suspectDamage(g)
			}
			return nil
		}
		if r := e.receivingFrom(g, p.id); r != nil && !r.installing && !f.Flag {
			e.logf(event.Warn, fmt.Sprintf("Server %q gives no snapshot of %s: %s", p.hello.Name, e.describe(g), f.Text))
			e.endReceiving(r)
		}
		return nil
	}
	r := e.receivingFrom(g, p.id)
	if r == nil || r.installing {
		return nil
	}
	r.until = e.now.Mono + transferNanos
	if string(f.Text) == string(textManifest) {
		m, err := snapshot.ParseManifest(f.Payload)
		if err != nil {
			return err
		}
		r.manifest, r.pin = m, f.Token
		e.stage(r)
		return nil
	}
	if f.Token != r.pin {
		return nil // of an earlier snapshot
	}
	r.asked--
	r.staging++
	e.transfer(r, event.Op{Kind: event.StagePart, Snapshot: event.Snapshot{
		Part: f.Count, Offset: f.Offset, Data: append(r.memory(), f.Payload...),
	}})
	return nil
}

func (e *Engine) receivingFrom(g *group, from event.ServerID) *receiving {
	for _, r := range e.receivings {
		if r.group == g && r.from == from {
			return r
		}
	}
	return nil
}

// memory is empty memory for a piece.
func (r *receiving) memory() []byte {
	n := len(r.spare)
	if n == 0 {
		return make([]byte, 0, pieceBytes)
	}
	data := r.spare[n-1]
	r.spare = r.spare[:n-1]
	return data[:0]
}

// over reports whether the replica that the snapshot is for is gone.
func (r *receiving) over(e *Engine) bool {
	return e.groups[r.group.id] != r.group || r.group.replica == nil || r.group.replica != r.replica
}

// transfer orders an operation for a snapshot that is fetched.
func (e *Engine) transfer(r *receiving, op event.Op) {
	op.Ticket, op.Group = e.ticket(), r.group.id
	e.stagings[op.Ticket] = staging{r, op.Snapshot.Data}
	e.transferOp = append(e.transferOp, op)
}

// stage looks what of the snapshot is still to be fetched.
func (e *Engine) stage(r *receiving) {
	r.missing, r.next, r.offset, r.asked = nil, 0, 0, 0
	e.transfer(r, event.Op{Kind: event.Stage, Snapshot: event.Snapshot{Manifest: r.manifest, Verify: r.failures > 0 || r.repair}})
}

// staged goes on after an operation of the storage.
func (e *Engine) staged(c *event.Completion) {
	s := e.stagings[c.Ticket]
	r := s.receiving
	delete(e.stagings, c.Ticket)
	if r == nil || !slices.Contains(e.receivings, r) {
		return
	}
	if r.over(e) {
		e.endReceiving(r)
		return
	}
	r.until = e.now.Mono + transferNanos
	switch c.Kind {
	case event.Stage:
		switch {
		case c.Err != nil:
			e.failReceiving(r, c.Err)
		case c.Staged.More:
			e.stage(r)
		case len(c.Staged.Missing) == 0:
			e.install(r)
		default:
			r.missing, r.next, r.offset = c.Staged.Missing, 0, c.Staged.Missing[0].Offset
			e.fetchParts(r)
		}
	case event.StagePart:
		r.staging--
		if c.Err != nil {
			e.failReceiving(r, c.Err)
			return
		}
		r.spare = append(r.spare, s.data)
		e.fetchParts(r)
	case event.Install:
		e.installed(r, c)
	}
}

// fetchParts asks for the next pieces, and looks again once all have come.
func (e *Engine) fetchParts(r *receiving) {
	for r.asked+r.staging < piecesMax && r.next < len(r.missing) {
		part := &r.missing[r.next]
		size := min(part.Bytes-r.offset, pieceBytes)
		e.sendFrame(r.from, &peerwire.Frame{
			Kind: peerwire.SnapGet, Group: uint64(r.group.id), Token: r.pin, Count: part.Part, Offset: r.offset, Text: textPart,
			Payload: binary.AppendUvarint(nil, size),
		})
		r.asked++
		r.offset += size
		if r.offset >= part.Bytes {
			r.next++
			if r.next < len(r.missing) {
				r.offset = r.missing[r.next].Offset
			}
		}
	}
	if r.asked == 0 && r.staging == 0 && r.next == len(r.missing) && len(r.missing) > 0 {
		e.stage(r)
	}
}

// failReceiving looks again what is missing after a failure, a few times.
func (e *Engine) failReceiving(r *receiving, err error) {
	r.failures++
	if r.failures < failuresMax {
		if r.asked == 0 && r.staging == 0 {
			e.stage(r)
		} else {
			e.askManifest(r)
		}
		return
	}
	e.logf(event.Error, fmt.Sprintf("A snapshot of %s can not be taken over: %v", e.describe(r.group), err))
	r.damaged = errors.Is(err, snapshot.ErrCorrupt) && !errors.Is(err, event.ErrHalfInstalled)
	if !r.damaged {
		e.spared[r.group.id] = e.now.Mono + retryNanosMax/2 // what fails is the disk here, and every attempt fetches all again
	}
	e.endReceiving(r)
}

func (e *Engine) endReceiving(r *receiving) {
	e.receivings = slices.DeleteFunc(e.receivings, func(o *receiving) bool { return o == r })
	f := peerwire.Frame{Kind: peerwire.SnapEnd, Group: uint64(r.group.id), Token: r.pin}
	if r.damaged {
		f.Text = textDamaged
	}
	e.sendFrame(r.from, &f)
	r.group.installing = false
}

// install has the snapshot made the state of the group.
func (e *Engine) install(r *receiving) {
	switch {
	case e.mayInstall(r):
	case e.mayHold(r):
		r.held = true
		e.askManifest(r)
		return
	default:
		e.endReceiving(r) // the log brought meanwhile what the snapshot has, or this replica leads
		return
	}
	if r.group.saving || r.group.rewriting {
		r.missing = nil
		e.stage(r) // the old state is being written; look again when that has ended
		return
	}
	r.installing, r.group.installing = true, true
	e.transfer(r, event.Op{Kind: event.Install, Snapshot: event.Snapshot{Manifest: r.manifest}})
}

// installed has the replica go on from the state that was installed.
func (e *Engine) installed(r *receiving, c *event.Completion) {
	g := r.group
	if c.Err != nil {
		e.installFailed(r, c.Err)
		return
	}
	machine, index := e.emptyStateOf(g)
	if index != nil {
		index.Restore(c.Installed.NextBlock, c.Installed.Blocks)
	}
	mark, members, err := restore(machine, &c.Installed.Checkpoint)
	assert.True(err == nil, "a snapshot that was verified can be restored", r.manifest.Index)
	e.unwritten -= g.unwritten
	e.cached -= g.cached
	g.unwritten, g.cached, g.installing, g.moved, g.firstUnsaved = 0, 0, false, false, 0
	done := replica.Installation{Machine: machine, Mark: mark, Members: members, Server: uint64(r.from), Message: r.offer}
	if g == e.meta {
		old := e.catalog
		e.catalog, e.replacing = machine.(*meta.Machine), true
		agreed := e.adopt(g, r, &done)
		e.replacing = false
		if agreed {
			e.catalogReplaced(old)
		} else {
			e.catalog = old // that the other has no entry of a stream says nothing about the stream
		}
	} else {
		g.stream, g.index = machine.(*stream.Machine), index
		e.adopt(g, r, &done)
		e.capture(g)
	}
	e.receivings = slices.DeleteFunc(e.receivings, func(o *receiving) bool { return o == r })
	e.sendFrame(r.from, &peerwire.Frame{Kind: peerwire.SnapEnd, Group: uint64(g.id), Token: r.pin, Flag: true})
	e.wall = max(e.wall, machine.LastTime())
}

// emptyStateOf is a machine and an index of messages for a group to be restored.
func (e *Engine) emptyStateOf(g *group) (replica.Machine, *msgstore.Index) {
	if g == e.meta {
		return e.newCatalog(), nil
	}
	return stream.New(e.streamOptions(g.entry, g.entry.Config, g.entry.Version)), e.newIndex(g.entry)
}

func (e *Engine) streamOptions(entry *meta.Stream, config *jsapi.StreamConfig, version uint64) stream.Options {
	plant := e.config.Plant.Stream
	if e.config.Plant.OwnClock {
		plant.OwnClock = func() int64 { return e.now.Wall }
	}
	return stream.Options{
		Account: entry.Account, Name: entry.Name, Config: config, ConfigVersion: version,
		Created: entry.Created, Incarnation: entry.Group, Plant: plant,
	}
}

func (e *Engine) newIndex(entry *meta.Stream) *msgstore.Index {
	return msgstore.NewIndex(msgstore.IndexOptions{
		BlockBytes: e.config.JetStream.BlockBytes, Volatile: e.volatile(entry),
		Compress: entry.Config.Compression != jsapi.NoCompression,
	})
}

// volatile reports whether a stream lives in memory only. In a cluster its log and its messages are kept on the disk: a
// replica that forgot what it acknowledged must not vote.
func (e *Engine) volatile(entry *meta.Stream) bool {
	return entry.Config.Storage == jsapi.MemoryStorage && !e.clustered()
}

// catalogReplaced follows a catalog that came as a whole: what its changes would have asked of the groups is found by
// comparing.
func (e *Engine) catalogReplaced(old *meta.Machine) {
	for _, entry := range old.All() {
		if g := e.groups[groupID(entry.Group)]; g != nil && e.catalog.ByGroup(entry.Group) == nil {
			e.endStream(g)
		}
	}
	for _, entry := range e.catalog.All() {
		g := e.groups[groupID(entry.Group)]
		if g == nil {
			e.openStream(entry)
			continue
		}
		changed := g.entry.Version != entry.Version
		e.placed(g, entry)
		if changed {
			e.followCatalog(g)
			if g.replica == nil && g.account != nil {
				e.capture(g)
			}
		}
	}
}
