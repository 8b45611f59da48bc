package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"weir/disk/snapshot"
	"weir/disk/wal"
	"weir/node/event"
	"weir/node/replica"
	"weir/transport/peerwire"
)

// The leader of a group offers a snapshot through Raft; what is in it travels beside: the receiver asks for the manifest of
// the leader's newest checkpoint, and then for the parts that it lacks, piece by piece. The receiver sets the pace, goes on
// after an interruption, and says when it is done.

// sending is a snapshot that another server is fetching.
type sending struct {
	group *group
	to    event.ServerID
	// member is the replica that Raft offered the snapshot to.
	member uint64
	pin    event.PinID
	// pinning says that a Pin is under way, saving that a checkpoint has to be made first.
	pinning, saving bool
	until           int64
	// asked are the pieces that the receiver has asked for and not got yet; the next one is read from freeAt on.
	asked  []partRead
	freeAt int64
}

// partRead is a read for a receiver under way.
type partRead struct {
	to           event.ServerID
	group        *group
	pin          event.PinID
	part, offset uint64
	size         int
}

// SendingsMax bounds the snapshots that are sent at a time, transferNanos how long one may stand still.
const (
	SendingsMax   = event.PinsMax / 2
	transferNanos = int64(20e9)
)

// The pace of snapshots while clients publish. Each byte costs the processors and the disks of both servers about as much as
// one that is published, and only the latter is waited for.
const (
	// busyBytesPerSecond bounds what one receiver gets while something was proposed within busyNanos.
	busyBytesPerSecond = 192 << 20
	busyNanos          = int64(20e6)
	// paceSlackNanos is how much time that was not used counts for the next pieces.
	paceSlackNanos = int64(4e6)
	// askedMax bounds the pieces that a receiver may have asked for.
	askedMax = 4 * piecesMax
)

// What a SnapGet asks for.
var (
	textManifest = []byte("manifest")
	textPart     = []byte("part")
)

// textDamaged is the reason of a receiver for not taking a snapshot: what comes does not hold what the manifest says.
var textDamaged = []byte("damaged")

// transfers is the snapshots on their way.
type transfers struct {
	sendings   []*sending
	partReads  map[event.Ticket]partRead
	pins       map[event.Ticket]*sending
	receivings []*receiving
	stagings   map[event.Ticket]staging
	transferOp []event.Op // of the step, behind its checkpoints
	busyUntil  int64      // until then snapshots go at a pace
	piecesAt   int64      // when the next piece is read that has to wait; 0: none has to
	// spared are groups for which no snapshot is fetched until then: the last one could not be kept.
	spared map[wal.GroupID]int64
}

// snapshotSent notes that Raft offers a snapshot to a member.
func (e *Engine) snapshotSent(r *replica.Replica, to replica.Member) {
	g := e.groups[r.Group()]
	s := e.sendingTo(g, event.ServerID(to.Server))
	if s == nil {
		s = &sending{group: g, to: event.ServerID(to.Server)}
		e.sendings = append(e.sendings, s)
	}
	s.member, s.until = to.ID, e.now.Mono+transferNanos
}

func (e *Engine) sendingTo(g *group, to event.ServerID) *sending {
	for _, s := range e.sendings {
		if s.group == g && s.to == to {
			return s
		}
	}
	return nil
}

// snapGet answers a request of a receiver.
func (e *Engine) snapGet(p *peer, g *group, f *peerwire.Frame) {
	s := e.sendingTo(g, p.id)
	if s == nil && g.leads() {
		s = &sending{group: g, to: p.id}
		e.sendings = append(e.sendings, s)
	}
	if s == nil {
		e.sendFrame(p.id, &peerwire.Frame{Kind: peerwire.SnapEnd, Group: f.Group, Text: []byte("the server does not lead the group")})
		return
	}
	s.until = e.now.Mono + transferNanos
	if string(f.Text) == string(textManifest) {
		e.pin(s)
		return
	}
	if s.pin == 0 || uint64(s.pin) != f.Token {
		e.sendFrame(p.id, &peerwire.Frame{Kind: peerwire.SnapEnd, Group: f.Group, Text: []byte("the snapshot is no longer there")})
		return
	}
	size, n := binary.Uvarint(f.Payload)
	if n <= 0 || size == 0 || size > event.PieceBytesMax {
		e.sendFrame(p.id, &peerwire.Frame{Kind: peerwire.SnapEnd, Group: f.Group, Text: []byte("a piece of no size that there is")})
		return
	}
	if len(s.asked) >= askedMax {
		e.sendFrame(p.id, &peerwire.Frame{Kind: peerwire.SnapEnd, Group: f.Group, Text: []byte("more pieces than are given at a time")})
		return
	}
	s.asked = append(s.asked, partRead{p.id, g, s.pin, f.Count, f.Offset, int(size)})
	e.givePieces(s)
}

// givePieces reads what a receiver has asked for, all of it or as much as its pace allows.
func (e *Engine) givePieces(s *sending) {
	n := 0
	for ; n < len(s.asked) && s.freeAt <= e.now.Mono; n++ {
		r, ticket := s.asked[n], e.ticket()
		e.partReads[ticket] = r
		e.transferOp = append(e.transferOp, event.Op{
			Kind: event.ReadPart, Ticket: ticket, Group: r.group.id,
			Snapshot: event.Snapshot{Pin: r.pin, Part: r.part, Offset: r.offset, Max: r.size},
		})
		if e.now.Mono < e.busyUntil {
			s.freeAt = max(s.freeAt, e.now.Mono-paceSlackNanos) + int64(r.size)*1e9/busyBytesPerSecond
		}
	}
	s.asked = slices.Delete(s.asked, 0, n)
	if len(s.asked) > 0 && (e.piecesAt == 0 || s.freeAt < e.piecesAt) {
		e.piecesAt = s.freeAt
		e.timers.push(timer{at: s.freeAt, kind: piecesTimer})
	}
}

// giveLater goes on with the receivers whose pace made them wait.
func (e *Engine) giveLater(at int64) {
	if at != e.piecesAt {
		return // an earlier time has been set since
	}
	e.piecesAt = 0
	for _, s := range e.sendings {
		e.givePieces(s)
	}
}

// pin has the newest checkpoint kept for a receiver, after one is made that holds all there is: what comes after it is
// then in memory.
func (e *Engine) pin(s *sending) {
	g := s.group
	if s.pinning || s.saving {
		return
	}
	if g.saving || g.replica.UnsavedBytes() > 0 || g.moved {
		e.wantSave(g)
		s.saving = true
		return
	}
	e.pinNow(s)
}

func (e *Engine) pinNow(s *sending) {
	e.unpin(s)
	s.pinning = true
	ticket := e.ticket()
	e.pins[ticket] = s
	e.transferOp = append(e.transferOp, event.Op{Kind: event.Pin, Ticket: ticket, Group: s.group.id})
}

func (e *Engine) unpin(s *sending) {
	if s.pin != 0 {
		e.transferOp = append(e.transferOp, event.Op{Kind: event.Unpin, Group: s.group.id, Snapshot: event.Snapshot{Pin: s.pin}})
		s.pin, s.asked = 0, nil
	}
}

// savedForSending goes on with the receivers that waited for a checkpoint.
func (e *Engine) savedForSending(g *group) {
	for _, s := range e.sendings {
		if s.group == g && s.saving {
			s.saving = false
			e.pinNow(s)
		}
	}
}

// pinned tells the receiver what the snapshot consists of.
func (e *Engine) pinned(c *event.Completion) {
	s := e.pins[c.Ticket]
	delete(e.pins, c.Ticket)
	if s == nil {
		return
	}
	s.pinning = false
	if c.Err != nil {
		if !errors.Is(c.Err, event.ErrNoCheckpoint) && !errors.Is(c.Err, event.ErrPinned) {
			e.logf(event.Error, fmt.Sprintf("A snapshot of %s can not be sent: %v", e.describe(s.group), c.Err))
			e.foundIfDamage(s.group, c.Err)
		}
		e.endSending(s, false)
		return
	}
	s.pin = c.Pinned.Pin
	if !slices.Contains(e.sendings, s) {
		e.unpin(s)
		return
	}
	e.sendFrame(s.to, &peerwire.Frame{
		Kind: peerwire.SnapPart, Group: uint64(s.group.id), Token: uint64(s.pin), Text: textManifest,
		Payload: snapshot.AppendManifest(nil, &c.Pinned.Manifest),
	})
}

// partRead sends a piece that was read.
func (e *Engine) partWasRead(c *event.Completion) {
	r, ok := e.partReads[c.Ticket]
	delete(e.partReads, c.Ticket)
	if !ok {
		return
	}
	if c.Err != nil {
		e.foundIfDamage(r.group, c.Err)
		e.sendFrame(r.to, &peerwire.Frame{Kind: peerwire.SnapEnd, Group: uint64(r.group.id), Token: uint64(r.pin), Text: []byte(c.Err.Error())})
		return
	}
	e.sendFrame(r.to, &peerwire.Frame{
		Kind: peerwire.SnapPart, Group: uint64(r.group.id), Token: uint64(r.pin), Count: r.part, Offset: r.offset, Text: textPart, Payload: c.Data,
	})
}

// endSending ends what was sent to a receiver and tells Raft how it went.
func (e *Engine) endSending(s *sending, ok bool) {
	e.unpin(s)
	e.sendings = slices.DeleteFunc(e.sendings, func(o *sending) bool { return o == s })
	if e.groups[s.group.id] == s.group && s.group.replica != nil && s.member != 0 {
		s.group.replica.SnapshotDone(s.member, ok)
	}
}

// tickTransfers ends what has stood still for too long.
func (e *Engine) tickTransfers() {
	for _, s := range slices.Clone(e.sendings) {
		if s.until <= e.now.Mono || e.peerOf[s.to] == nil || e.groups[s.group.id] != s.group || s.group.replica == nil {
			e.endSending(s, false)
		}
	}
	for _, r := range slices.Clone(e.receivings) {
		if !r.installing && (r.until <= e.now.Mono || e.peerOf[r.from] == nil) || r.over(e) {
			e.endReceiving(r)
		}
	}
}
