package replica

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/checkpoint"
	"weir/disk/wal"
	"weir/model/command"
	"weir/model/effect"
	"weir/node/event"
)

// ledger is a machine that keeps the numbers of the commands applied, and a hash over the entries.
type ledger struct {
	index   uint64
	numbers []uint64
	newest  []uint64 // of the newest entry
	hash    uint64
	at      int64
	world   *world
}

func (l *ledger) Apply(index uint64, entry []byte, _ *effect.List) {
	l.world.check(index == l.index+1, "entry %d is applied behind %d", index, l.index)
	l.index, l.newest = index, l.newest[:0]
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, l.hash), index))
	h.Write(entry)
	l.hash = h.Sum64()
	l.world.applied(index, l.hash)
	if len(entry) == 0 {
		return
	}
	reader, err := command.Read(entry)
	l.world.check(err == nil && reader.Time() >= l.at, "entry %d at %d follows one at %d: %v", index, reader.Time(), l.at, err)
	l.at = reader.Time()
	var c command.Command
	for reader.Next(&c) {
		l.newest = append(l.newest, binary.LittleEndian.Uint64(c.Payload))
	}
	l.numbers = append(l.numbers, l.newest...)
}

func (l *ledger) copy() *ledger {
	c := *l
	c.numbers, c.newest = slices.Clone(l.numbers), nil
	return &c
}

func (l *ledger) Applied() uint64                                   { return l.index }
func (l *ledger) LastTime() int64                                   { return l.at }
func (l *ledger) Deadline() int64                                   { return 0 }
func (l *ledger) Digest() uint64                                    { return l.hash }
func (l *ledger) DirtySections(dst []uint64) []uint64               { return dst }
func (l *ledger) AppendSection(dst []byte, _ uint64) ([]byte, bool) { return dst, false }
func (l *ledger) MarkClean()                                        {}
func (l *ledger) MarkDirty([]uint64)                                {}
func (l *ledger) RestoreSection(uint64, []byte) error               { return nil }
func (l *ledger) Restored() error                                   { return nil }

// saved is a durable checkpoint.
type savedState struct {
	mark    checkpoint.Mark
	members []Member
	machine *ledger
}

// disk is what outlives a process.
type disk struct {
	log  wal.Group
	ckpt savedState
	boot uint64
}

func (d *disk) write(w *wal.Write) {
	if w.Reset {
		d.log = wal.Group{ID: w.Group}
	}
	if w.HasHardState {
		d.log.HardState, d.log.HasHardState = w.HardState, true
	}
	if w.Meta != nil {
		d.log.Meta = w.Meta
	}
	if len(w.Entries) > 0 {
		first := w.Entries[0].Index
		keep := slices.IndexFunc(d.log.Entries, func(e wal.Entry) bool { return e.Index >= first })
		if keep < 0 {
			keep = len(d.log.Entries)
		}
		d.log.Entries = append(d.log.Entries[:keep:keep], w.Entries...)
	}
	if w.Compact > d.log.Compact {
		d.log.Compact = w.Compact
		d.log.Entries = slices.DeleteFunc(slices.Clone(d.log.Entries), func(e wal.Entry) bool { return e.Index <= w.Compact })
	}
}

// host is a server with one replica, or a place for one that is down.
type host struct {
	world   *world
	id      uint64
	disk    disk
	replica *Replica // nil while it is down
	machine *ledger
	pending []pendingWrite
	ticket  event.Ticket
	fetch   *pb.Message // about a snapshot to be fetched
	content savedState  // of the snapshot that is durable and not yet installed
	wanted  bool
	ticked  bool     // it has not said that it rests since it started or woke
	paused  int      // until that step nothing happens here
	known   []Member // the newest members
	undoing int      // how many callers are called next whose command is undone
}

type packet struct {
	from, to uint64 // servers, which are named like their replicas
	data     []byte
	beat     bool
}

type world struct {
	t        *testing.T
	seed     uint64
	rng      *rand.Rand
	options  options
	hosts    []*host
	birth    []Member
	net      []packet
	load     Load
	wall     int64
	ids      uint64
	steps    int
	patience int                // least election timeout
	cut      map[[2]uint64]bool // links that lose everything

	numbers  uint64
	acked    map[uint64]bool
	undone   map[uint64]bool
	late     int               // acknowledged after the end of the term in which they were proposed
	ackedTo  uint64            // highest index of an acknowledged command
	hashes   map[uint64]uint64 // of the state at each index
	terms    map[uint64]uint64 // entry terms by committed index
	within   map[uint64]uint64 // the terms in which they were seen to be committed, by index
	leaders  map[uint64]uint64 // by term
	votes    map[[2]uint64]uint64
	reads    int
	snaps    int
	changes  int
	rests    int
	handover int
	removed  map[uint64]uint64 // where replicas were removed
	back     map[uint64]bool   // those that are wanted again
	returns  int
	drops    int
}

type options struct {
	members int
	lossy   bool
	resize  bool
	calm    bool
	plant   Plant
}

func (w *world) check(ok bool, format string, args ...any) {
	if !ok {
		w.t.Helper()
		panic(violation(fmt.Sprintf("seed %d: ", w.seed) + fmt.Sprintf(format, args...)))
	}
}

// violation is what a broken property panics with.
type violation string

func (w *world) applied(index, hash uint64) {
	if known, ok := w.hashes[index]; ok {
		w.check(known == hash, "two replicas differ at index %d", index)
	}
	w.hashes[index] = hash
}

func newWorld(t *testing.T, seed uint64, o options) *world {
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11)), options: o, wall: 1_000,
		cut: map[[2]uint64]bool{}, removed: map[uint64]uint64{}, back: map[uint64]bool{}, acked: map[uint64]bool{}, undone: map[uint64]bool{}, hashes: map[uint64]uint64{}, terms: map[uint64]uint64{}, within: map[uint64]uint64{},
		leaders: map[uint64]uint64{}, votes: map[[2]uint64]uint64{}}
	for range o.members {
		w.ids++
		w.birth = append(w.birth, Member{ID: w.ids, Server: w.ids})
	}
	for _, m := range w.birth {
		w.add(m.ID)
	}
	return w
}

func (w *world) add(id uint64) *host {
	h := &host{world: w, id: id, disk: disk{log: wal.Group{ID: 9}}}
	w.hosts = append(w.hosts, h)
	h.start()
	return h
}

func (w *world) host(id uint64) *host {
	for _, h := range w.hosts {
		if h.id == id {
			return h
		}
	}
	return nil
}

func (h *host) start() {
	w := h.world
	h.disk.boot++
	members, machine := w.birth, &ledger{world: w}
	if c := h.disk.ckpt; c.machine != nil {
		members, machine = c.members, c.machine.copy()
	}
	log := h.disk.log
	log.Entries = slices.Clone(log.Entries)
	r, err := New(Config{
		Group: 9, ID: h.id, Members: members, Machine: machine, Log: log, Snapshot: h.disk.ckpt.mark, Meta: []byte("birth"),
		Boot: h.disk.boot<<8 | h.id, Load: &w.load, LogTailBytes: 2_000, Plant: w.options.plant,
		Wanted: func(*Replica) { h.wanted = true },
		Pin:    func(uint64, Role) int { return max(w.patience, 10+w.rng.IntN(10)) },
	})
	w.check(err == nil, "replica %d: %v", h.id, err)
	h.replica, h.machine, h.known = r, machine, members
	h.pending, h.fetch, h.content = nil, nil, savedState{}
	h.ticked = true
	r.Start(h)
}

// crash ends the process; of the writes under way a part is durable.
func (h *host) crash() {
	keep := h.world.rng.IntN(len(h.pending) + 1)
	for i := range h.pending[:keep] {
		h.disk.write(&h.pending[i].write)
	}
	h.replica.Retire()
	h.replica = nil
}

func (h *host) Persist(w wal.Write) event.Ticket {
	h.ticket++
	w.Entries = slices.Clone(w.Entries)
	h.pending = append(h.pending, pendingWrite{h.ticket, w})
	return h.ticket
}

// finish makes the oldest write durable.
func (h *host) finish() {
	if h.replica == nil || len(h.pending) == 0 {
		return
	}
	p := h.pending[0]
	h.pending = h.pending[1:]
	h.disk.write(&p.write)
	h.replica.Persisted(p.ticket, h)
}

func (h *host) Applied(r *Replica, batch *Batch, _ *effect.List) {
	w := h.world
	index := h.machine.index
	term := r.Applied().Term
	if known, ok := w.terms[index]; ok {
		w.check(known == term, "index %d has terms %d and %d", index, known, term)
	}
	if _, ok := w.within[index]; !ok {
		w.within[index] = r.Term()
	}
	w.terms[index] = term
	if batch != nil && batch.Late() {
		w.late++
	}
	for i := range batchLen(batch) {
		if done := batch.Origin(int32(i)).Done; done != nil {
			done(&effect.Effect{Seq: h.machine.newest[i]})
		}
	}
}

func batchLen(b *Batch) int {
	if b == nil {
		return 0
	}
	return b.Len()
}

// Undone has the callers of a batch, who are called next, note that their command is carried out nowhere.
func (h *host) Undone(_ *Replica, batch *Batch) { h.undoing = batch.Len() }

func (h *host) Send(r *Replica, to Member, m *pb.Message) {
	w := h.world
	if m.GetType() == pb.MsgVoteResp && !m.GetReject() {
		key := [2]uint64{m.GetTerm(), h.id}
		if known, ok := w.votes[key]; ok {
			w.check(known == m.GetTo(), "replica %d votes for %d and %d in term %d", h.id, known, m.GetTo(), m.GetTerm())
		}
		w.votes[key] = m.GetTo()
		hard := h.disk.log.HardState
		w.check(hard.Term > m.GetTerm() || hard.Term == m.GetTerm() && hard.Vote == m.GetTo(),
			"replica %d votes for %d in term %d, durable is %v", h.id, m.GetTo(), m.GetTerm(), hard)
	}
	p := packet{from: h.id, to: to.Server}
	if b, ok := BeatOf(r, m); ok {
		p.beat, p.data = true, AppendBeat(nil, &b)
	} else {
		p.data = AppendMessage(nil, m)
	}
	w.net = append(w.net, p)
}

// Role checks that a term has one leader, and that it has all that is committed.
func (h *host) Role(r *Replica) {
	w := h.world
	if !r.IsLeader() {
		return
	}
	if known, ok := w.leaders[r.Term()]; ok {
		w.check(known == h.id, "term %d has leaders %d and %d", r.Term(), known, h.id)
	}
	w.leaders[r.Term()] = h.id
	for index, term := range w.terms { // order-free: all have to be there
		got, err := r.log.Term(index)
		if index <= h.machine.index || w.within[index] >= r.Term() {
			continue // applied, or maybe committed in a later term
		}
		w.check(err == nil && got == term, "the leader of term %d has not entry %d of term %d: %d, %v", r.Term(), index, term, got, err)
	}
}

// Members notes which replicas have been removed, and where.
func (h *host) Members(r *Replica) {
	h.world.changes++
	for _, m := range h.known {
		if _, ok := r.Member(m.ID); !ok {
			h.world.removed[m.ID] = r.membersIndex
		}
	}
	h.known = r.Members()
}

// Woke has the replica ticked again.
func (h *host) Woke(*Replica) { h.ticked = true }

// deliver delivers one packet, which may be any, and may stay to come again.
func (w *world) deliver() {
	if len(w.net) == 0 {
		return
	}
	i := 0
	if w.options.lossy {
		i = w.rng.IntN(min(len(w.net), 20))
	}
	p := w.net[i]
	if h := w.host(p.to); h != nil && w.steps < h.paused {
		return
	}
	if !w.options.lossy || w.rng.IntN(20) != 0 {
		w.net = slices.Delete(w.net, i, i+1)
	}
	if w.options.lossy && w.rng.IntN(20) == 0 || w.cut[[2]uint64{p.from, p.to}] {
		return
	}
	h := w.host(p.to)
	if h == nil || h.replica == nil {
		return
	}
	if p.beat {
		var b Beat
		rest, err := NextBeat(p.data, &b)
		w.check(err == nil && len(rest) == 0, "beat: %v", err)
		h.replica.ReceiveBeat(p.from, &b, h)
		if h.replica.Quiesced() {
			w.rests++
		}
		return
	}
	m, err := ParseMessage(p.data)
	w.check(err == nil, "message: %v", err)
	if h.replica.Receive(p.from, m, h) {
		h.fetch = m
	}
}

// install carries one snapshot on: first the content becomes durable, then it is installed.
func (h *host) install() {
	w := h.world
	if h.replica == nil || h.fetch == nil && h.content.machine == nil {
		return
	}
	if h.content.machine == nil {
		from := w.host(h.fetch.GetFrom())
		told, members, err := SnapshotOf(h.fetch)
		w.check(err == nil && len(members) > 0, "snapshot: %v", err)
		if from == nil || from.disk.ckpt.mark.Index < told.Index || from.disk.ckpt.mark.Index <= h.machine.index {
			h.fetch = nil
			return
		}
		c := from.disk.ckpt
		h.content = savedState{mark: c.mark, members: c.members, machine: c.machine.copy()}
		h.disk.ckpt = savedState{mark: c.mark, members: c.members, machine: c.machine.copy()}
		return
	}
	c := h.content
	h.content = savedState{}
	if h.replica.Install(&Installation{Machine: c.machine, Mark: c.mark, Members: c.members,
		Server: h.fetch.GetFrom(), Message: h.fetch}, h) {
		h.machine = c.machine
		w.snaps++
	}
	if from := w.host(h.fetch.GetFrom()); from != nil && from.replica != nil && w.rng.IntN(2) == 0 {
		from.replica.SnapshotDone(h.id, w.rng.IntN(4) != 0)
	}
	h.fetch = nil
}

// checkpoint makes the state durable, and lets the log forget what is before it.
func (h *host) checkpoint() {
	if h.replica == nil || h.content.machine != nil || h.machine.index <= h.disk.ckpt.mark.Index {
		return
	}
	u := h.replica.Snapshot()
	if h.world.rng.IntN(5) == 0 {
		h.replica.SnapshotFailed(u)
		return
	}
	members := h.disk.ckpt.members
	if members == nil {
		members = h.world.birth
	}
	for _, s := range u.Put {
		if s.ID == event.MembersSection {
			var err error
			members, err = ParseMembers(s.Data)
			h.world.check(err == nil, "members: %v", err)
		}
	}
	h.disk.ckpt = savedState{checkpoint.Mark{Index: u.Index, Term: u.Term}, members, h.machine.copy()}
	h.wanted = false
	h.replica.SnapshotSaved()
	h.pending = append(h.pending, pendingWrite{0, wal.Write{Group: 9, Compact: u.Index}})
}

func (h *host) propose() {
	w := h.world
	if h.replica == nil || !h.replica.Serving() {
		return
	}
	w.numbers++
	number := w.numbers
	text := make([]byte, 8+w.rng.IntN(100))
	binary.LittleEndian.PutUint64(text, number)
	told := false
	h.replica.Propose(&command.Command{Kind: command.Publish, Subject: []byte("s"), Payload: text}, func(result *effect.Effect) {
		w.check(!told, "command %d is answered twice", number)
		told = true
		if result != nil {
			w.check(result.Seq == number, "command %d is answered to the caller of %d", result.Seq, number)
			w.acked[number] = true
			w.ackedTo = max(w.ackedTo, h.machine.index)
		} else if h.undoing > 0 {
			h.undoing--
			w.undone[number] = true
		}
	})
}

// read checks that a read sees what was acknowledged before it, by anyone.
func (h *host) read() {
	if h.replica == nil {
		return
	}
	w, after, told := h.world, h.world.ackedTo, false
	h.replica.Read(func(ok bool) {
		w.check(!told, "a read is answered twice")
		told = true
		if ok {
			w.reads++
			applied := h.replica.Machine().Applied()
			w.check(applied >= after, "a read on %d sees index %d, %d was acknowledged before", h.id, applied, after)
		}
	})
}
