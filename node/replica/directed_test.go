package replica

import (
	"testing"
)

// directed is a world in which nothing happens by itself.
func directed(t *testing.T, plant Plant) *world {
	w := newWorld(t, 1, options{members: 3, plant: plant})
	w.patience = 1000 // nobody campaigns unasked
	return w
}

// only lets these replicas reach each other, and nobody else anybody.
func (w *world) only(ids ...uint64) {
	in := func(id uint64) bool {
		for _, o := range ids {
			if o == id {
				return true
			}
		}
		return false
	}
	for _, a := range w.hosts {
		for _, b := range w.hosts {
			w.cut[[2]uint64{a.id, b.id}] = !in(a.id) || !in(b.id)
		}
	}
}

// work lets everybody do what there is to do, without time passing. Disks only work where they are named.
func (w *world) work(ids ...uint64) {
	for range 20 {
		for range len(w.net) {
			w.deliver()
		}
		for _, id := range ids {
			w.host(id).finish()
		}
		for _, h := range w.hosts {
			h.flush()
		}
	}
}

// elect lets a replica win an election with the vote of the other one.
func (w *world) elect(id, other uint64) {
	for range 12 {
		w.host(other).tick() // until it no longer trusts its leader
	}
	h := w.host(id)
	h.replica.Campaign(h)
	for range 10 {
		w.work(id, other)
	}
	w.check(h.replica.IsLeader(), "replica %d does not lead", id)
}

// directedRun plays a scenario; the text says which property is broken.
func directedRun(t *testing.T, plant Plant, play func(w *world)) (broken string) {
	defer func() {
		if v, ok := recover().(violation); ok {
			broken = string(v)
		}
	}()
	play(directed(t, plant))
	return ""
}

// formerLeader has a leader that does not know of its successor asked for reads.
func formerLeader(w *world) {
	a := w.host(1)
	w.elect(1, 2)
	a.propose()
	a.read() // a round, so that there can be a lease
	w.work(1, 2, 3)
	w.check(len(w.acked) == 1 && w.reads == 1, "the leader does not work")
	w.only(2, 3)
	w.elect(2, 3)
	w.host(2).propose()
	w.work(2, 3)
	w.check(len(w.acked) == 2, "the new leader does not work")
	a.read() // may not be answered by what it knows
	w.work(1)
	w.check(w.reads == 1, "a former leader answers a read")
	w.only(1, 2, 3)
	for range 3 {
		w.host(2).tick()
		w.work(1, 2, 3)
	}
	w.check(w.reads == 1 && !a.replica.IsLeader() && len(a.replica.reads) == 0, "a former leader answers a read, or never does")
	a.read() // a follower's, by the new leader's word
	w.work(1, 2, 3)
	w.check(w.reads == 2, "a follower does not answer a read")
}

// figure8 is the case for which a leader commits only entries of its own term by counting (Raft, figure 8).
func figure8(w *world) {
	a, b := w.host(1), w.host(2)
	w.elect(1, 3)
	a.propose()
	w.work(1, 2, 3)
	w.only()
	a.propose() // an entry that only the first replica has
	w.work(1)
	w.only(2, 3)
	for range 12 {
		w.host(3).tick()
	}
	b.replica.Campaign(b)
	for !b.replica.IsLeader() {
		w.deliver()
		b.finish()
		w.host(3).finish()
	}
	w.only()
	w.work(2) // an entry that only the second replica has, of a later term
	w.only(1, 3)
	a.tick() // it hears of the later term
	w.work(1, 3)
	w.elect(1, 3)
	w.work(1, 3)
	w.only(2, 3)
	b.tick() // it hears of the later term
	w.work(2, 3)
	for range 12 {
		w.host(3).tick()
	}
	b.replica.Campaign(b)
	for range 5 {
		w.work(2, 3)
	}
	w.only(1, 2, 3)
	for range 3 {
		w.host(1).tick()
		w.work(1, 2, 3)
	}
}

// TestFormerLeaderAnswersNothing also plants the faults that make it answer.
func TestFormerLeaderAnswersNothing(t *testing.T) {
	if broken := directedRun(t, Plant{}, formerLeader); broken != "" {
		t.Error(broken)
	}
	for _, plant := range []Plant{{ReadOldLeader: true}, {ReadWithoutQuorum: true}} {
		if directedRun(t, plant, formerLeader) == "" {
			t.Errorf("%+v is not found", plant)
		}
	}
}

// TestEntriesOfEarlierTermsAreNotCommittedByCounting also plants the fault.
func TestEntriesOfEarlierTermsAreNotCommittedByCounting(t *testing.T) {
	if broken := directedRun(t, Plant{}, figure8); broken != "" {
		t.Error(broken)
	}
	if directedRun(t, Plant{CommitEarlierTerm: true}, figure8) == "" {
		t.Error("the fault is not found")
	}
}

// TestTransferKeepsWhatWaits hands leadership over while commands wait: they are answered, or their callers told that the
// outcome is not known, and none is lost in between.
func TestTransferKeepsWhatWaits(t *testing.T) {
	w := directed(t, Plant{})
	a, b := w.host(1), w.host(2)
	w.elect(1, 3)
	w.work(1, 2, 3)
	if a.replica.Transfer(7, a) || b.replica.Transfer(1, b) {
		t.Fatal("leadership goes to nobody, or from a follower")
	}
	w.only(1, 3)
	if !a.replica.Transfer(2, a) {
		t.Fatal("leadership can not be handed over")
	}
	a.propose()
	w.work(1, 3)
	if len(w.acked) != 0 || !a.replica.Dirty() {
		t.Fatal("a command was proposed while leadership is handed over")
	}
	for range 12 { // the other one is not there; the leader leads on
		a.tick()
		w.work(1, 3)
	}
	if !a.replica.Serving() || len(w.acked) != 1 {
		t.Fatalf("after a transfer that failed: serving %v, acknowledged %d", a.replica.Serving(), len(w.acked))
	}
	w.only(1, 2, 3)
	for range 3 {
		a.tick()
		w.work(1, 2, 3)
	}
	if !a.replica.Transfer(2, a) {
		t.Fatal("leadership can not be handed over")
	}
	for range 5 {
		w.work(1, 2, 3)
	}
	if !b.replica.Serving() || a.replica.Serving() || a.replica.Leader() != 2 {
		t.Fatal("leadership was not handed over")
	}
}

// TestChangesAreRefused lists changes of the membership that can not be made.
func TestChangesAreRefused(t *testing.T) {
	w := directed(t, Plant{})
	a := w.host(1)
	if err := a.replica.ChangeMembers(Change{Kind: Remove, Member: Member{ID: 2}}, a); err != ErrNotLeader {
		t.Errorf("a follower changes members: %v", err)
	}
	w.elect(1, 3)
	w.work(1, 2, 3)
	for _, c := range []Change{
		{Kind: AddLearner, Member: Member{ID: 2, Server: 9}}, {Kind: AddLearner}, {Kind: Promote, Member: Member{ID: 2}},
		{Kind: Promote, Member: Member{ID: 9}}, {Kind: Remove, Member: Member{ID: 9}},
	} {
		if err := a.replica.ChangeMembers(c, a); err == nil {
			t.Errorf("%+v is made", c)
		}
	}
	if err := a.replica.ChangeMembers(Change{Kind: Remove, Member: Member{ID: 3}}, a); err != nil {
		t.Fatal(err)
	}
	if err := a.replica.ChangeMembers(Change{Kind: Remove, Member: Member{ID: 2}}, a); err != ErrChangePending {
		t.Errorf("a second change begins: %v", err)
	}
	for range 3 {
		w.work(1, 2, 3)
	}
	if len(a.replica.Members()) != 2 || !a.replica.MembersSettled() {
		t.Fatalf("members %v, settled %v", a.replica.Members(), a.replica.MembersSettled())
	}
	if err := a.replica.ChangeMembers(Change{Kind: Remove, Member: Member{ID: 1}}, a); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		w.work(1, 2, 3)
	}
	b := w.host(2).replica
	if !b.Serving() || len(b.Members()) != 1 || !b.MembersSettled() || a.replica.IsLeader() {
		t.Fatalf("the last member: serving %v, members %v", b.Serving(), b.Members())
	}
	if err := b.ChangeMembers(Change{Kind: Remove, Member: Member{ID: 2}}, w.host(2)); err == nil {
		t.Error("the last voter is removed")
	}
}

// TestTailIsBounded keeps a follower away: the leader keeps what it lacks up to a bound, and then sends a snapshot.
func TestTailIsBounded(t *testing.T) {
	w := directed(t, Plant{})
	a, c := w.host(1), w.host(3)
	w.elect(1, 2)
	w.work(1, 2, 3)
	propose := func(n int) {
		for range n {
			a.propose()
			w.work(1, 2)
			a.tick()
		}
	}
	w.only(1, 2)
	propose(5)
	if a.replica.log.bytes == 0 {
		t.Fatal("the leader keeps nothing for a follower that lags")
	}
	w.only(1, 2, 3)
	for range 3 {
		a.tick()
		w.work(1, 2, 3)
	}
	if c.machine.index != a.machine.index || w.snaps != 0 || a.replica.log.bytes != 0 {
		t.Fatalf("the follower has %d of %d after %d snapshots, the leader keeps %d bytes", c.machine.index, a.machine.index, w.snaps, a.replica.log.bytes)
	}
	w.only(1, 2)
	propose(60)
	if n := a.replica.log.bytes; n == 0 || n > 2000+1200 {
		t.Fatalf("the leader keeps %d bytes", n)
	}
	w.only(1, 2, 3)
	for range 60 {
		a.tick()
		w.work(1, 2, 3)
		if a.wanted {
			a.checkpoint()
		}
		c.install()
	}
	if c.machine.index != a.machine.index || w.snaps == 0 {
		t.Fatalf("the follower has %d of %d after %d snapshots", c.machine.index, a.machine.index, w.snaps)
	}
	for _, h := range w.hosts {
		h.replica.Retire()
	}
	if w.load.logBytes != 0 || w.load.bytes != 0 {
		t.Errorf("%+v is left", w.load)
	}
}
