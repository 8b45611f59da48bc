package replica

import (
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/wal"
	"weir/model/effect"
	"weir/node/event"
)

// leaseWorld is three replicas of one group whose writes are durable at once and whose messages a test carries.
type leaseWorld struct {
	t        *testing.T
	replicas map[uint64]*Replica
	sent     []*pb.Message
	lost     map[uint64]bool // replicas that nothing reaches
}

type leaseHost struct {
	w      *leaseWorld
	ticket event.Ticket
}

func (h *leaseHost) Persist(wal.Write) event.Ticket { h.ticket++; return h.ticket }

func (h *leaseHost) Undone(*Replica, *Batch)                {}
func (h *leaseHost) Applied(*Replica, *Batch, *effect.List) {}

func (h *leaseHost) Send(_ *Replica, _ Member, m *pb.Message) { h.w.sent = append(h.w.sent, m) }

func (h *leaseHost) Role(*Replica) {}

func (h *leaseHost) Members(*Replica) {}

// Woke has nothing to do.
func (h *leaseHost) Woke(*Replica) {}

func newLeaseWorld(t *testing.T) (*leaseWorld, *leaseHost) {
	w := &leaseWorld{t: t, replicas: map[uint64]*Replica{}, lost: map[uint64]bool{}}
	h := &leaseHost{w: w}
	members := []Member{{ID: 1, Server: 1}, {ID: 2, Server: 2}, {ID: 3, Server: 3}}
	for _, m := range members {
		r, err := New(Config{
			Group: 9, ID: m.ID, Members: members, Machine: &ledger{world: &world{t: t, hashes: map[uint64]uint64{}, acked: map[uint64]bool{}}}, Meta: []byte("birth"), Boot: m.ID, Load: &Load{},
			LeaseNanos: 700, Pin: func(uint64, Role) int { return 15 },
		})
		if err != nil {
			t.Fatal(err)
		}
		w.replicas[m.ID] = r
		r.Start(h)
	}
	w.carry(h)
	return w, h
}

// carry makes everything durable and brings every message to its replica until nothing moves.
func (w *leaseWorld) carry(h *leaseHost) {
	for moved := true; moved; {
		moved = false
		for id := uint64(1); id <= 3; id++ {
			if r := w.replicas[id]; len(r.inFlight) > 0 {
				r.Persisted(h.ticket, h)
				moved = true
			}
		}
		sent := w.sent
		w.sent = nil
		for _, m := range sent {
			if !w.lost[m.GetTo()] && !w.lost[m.GetFrom()] {
				w.replicas[m.GetTo()].Receive(m.GetFrom(), m, h)
				moved = true
			}
		}
	}
}

func (w *leaseWorld) tick(h *leaseHost, n int) {
	for range n {
		for id := uint64(1); id <= 3; id++ {
			w.replicas[id].Tick(h)
		}
		w.carry(h)
	}
}

// lead has a replica lead the group.
func (w *leaseWorld) lead(h *leaseHost, id uint64) *Replica {
	w.tick(h, 12) // what they may have promised before they started has passed
	r := w.replicas[id]
	r.Campaign(h)
	w.carry(h)
	if !r.Serving() {
		w.t.Fatalf("replica %d does not serve", id)
	}
	return r
}

// read reports whether a read at a time is answered, and how many messages it took.
func (w *leaseWorld) read(h *leaseHost, r *Replica, mono int64) (answered bool, messages int) {
	r.Read(func(ok bool) { answered = ok })
	r.Flush(event.Time{Mono: mono}, h)
	messages = len(w.sent)
	w.carry(h)
	return answered, messages
}

func TestLeaseSavesRoundsUntilItEnds(t *testing.T) {
	w, h := newLeaseWorld(t)
	r := w.lead(h, 1)
	for _, step := range []struct {
		mono  int64
		round bool
	}{{1000, true}, {1001, false}, {1699, false}, {1700, true}, {2399, false}, {2500, true}} {
		answered, messages := w.read(h, r, step.mono)
		if !answered || messages > 0 != step.round {
			t.Fatalf("read at %d: answered %v with %d messages, a round is needed: %v", step.mono, answered, messages, step.round)
		}
	}
	w.lost[1] = true
	if answered, _ := w.read(h, r, 3300); answered {
		t.Fatal("a leader that reaches nobody answers behind its lease")
	}
}

// TestLeaseCountsFromTheRoundThatWasAnswered has the answers to a round come when the next one has begun, whose own are lost.
func TestLeaseCountsFromTheRoundThatWasAnswered(t *testing.T) {
	w, h := newLeaseWorld(t)
	r := w.lead(h, 1)
	first, second := 0, 0
	r.Read(func(bool) { first++ })
	r.Flush(event.Time{Mono: 1000}, h)
	early := w.sent
	w.sent = nil
	r.Read(func(bool) { second++ })
	r.Flush(event.Time{Mono: 1600}, h)
	w.sent = early // what the second round sent is lost
	w.carry(h)
	if first != 1 || second != 0 {
		t.Fatalf("the reads of the two rounds are answered %d and %d times", first, second)
	}
	w.lost[1] = true
	if answered, _ := w.read(h, r, 1750); answered {
		t.Fatal("the answer to a round of 1000 is taken for a lease from 1600 on")
	}
}

// TestTickJudgesNoLease has a leader that was paused for longer than its lease come to a tick before anything tells it the time.
func TestTickJudgesNoLease(t *testing.T) {
	w, h := newLeaseWorld(t)
	r := w.lead(h, 1)
	if answered, _ := w.read(h, r, 1000); !answered {
		t.Fatal("a read of a leader is not answered")
	}
	w.lost[1] = true // and others lead by now
	answered := false
	r.Read(func(ok bool) { answered = ok })
	for range 3 {
		r.Tick(h)
		w.carry(h)
	}
	if answered {
		t.Fatal("a tick answers a read by a lease that may have ended long ago")
	}
}

// TestLeaseTellsNothingOfAMajority asks a leader with a lease whether a majority is there.
func TestLeaseTellsNothingOfAMajority(t *testing.T) {
	w, h := newLeaseWorld(t)
	r := w.lead(h, 1)
	w.read(h, r, 1000)
	there := 0
	consult := func(mono int64) {
		r.Consult(func(ok bool) { there++ })
		r.Flush(event.Time{Mono: mono}, h)
		w.carry(h)
	}
	if consult(1001); there != 1 {
		t.Fatal("a majority answers, and that is not said")
	}
	w.lost[1] = true
	if consult(1002); there != 1 {
		t.Fatal("the lease stands for a majority that does not answer")
	}
}

// TestLeaseByTheWallClockIsNone plants the fault: the wall clock stands still here while the lease ends.
func TestLeaseByTheWallClockIsNone(t *testing.T) {
	w, h := newLeaseWorld(t)
	r := w.lead(h, 1)
	r.config.Plant.LeaseJump = true
	w.read(h, r, 1000)
	w.lost[1] = true
	if answered, _ := w.read(h, r, 3300); !answered {
		t.Fatal("the planted fault does nothing")
	}
}

func TestLeaseEndsForTheTermWithATransfer(t *testing.T) {
	w, h := newLeaseWorld(t)
	r := w.lead(h, 1)
	w.read(h, r, 1000)
	w.lost[2] = true
	r.Transfer(2, h)
	w.sent = nil
	if _, messages := w.read(h, r, 1001); messages == 0 {
		t.Fatal("a leader that may have a successor reads without a round")
	}
	w.lost[2] = false
	if _, messages := w.read(h, r, 1002); messages == 0 {
		t.Fatal("the lease is back in the same term")
	}
}

func TestReplicaThatStartsKeepsPromisesThatItForgot(t *testing.T) {
	w, h := newLeaseWorld(t)
	r := w.replicas[2]
	vote := &pb.Message{
		Type: pb.MsgPreVote.Enum(), To: new(uint64(2)), From: new(uint64(3)), Term: new(uint64(7)), Index: new(uint64(100)), LogTerm: new(uint64(6)),
	}
	for tick := range 11 {
		w.sent = nil
		r.Receive(3, vote, h)
		if len(w.sent) != 0 {
			t.Fatalf("it answers a candidate %d ticks after its start", tick)
		}
		r.Campaign(h)
		if len(w.sent) != 0 {
			t.Fatalf("it stands for election %d ticks after its start", tick)
		}
		r.Tick(h)
	}
	w.sent = nil
	r.Receive(3, vote, h)
	if len(w.sent) != 1 {
		t.Fatal("it never answers a candidate")
	}
}
