package replica

import (
	"slices"
	"testing"

	"weir/node/event"
)

// step does something at random.
func (w *world) step() {
	h := w.hosts[w.rng.IntN(len(w.hosts))]
	w.wall += int64(w.rng.IntN(1000)) - 200
	w.steps++
	if w.steps < h.paused {
		return
	}
	switch n := w.rng.IntN(1000); {
	case n < 400:
		w.deliver()
	case n < 520:
		h.finish()
	case n < 640:
		h.tick()
	case n < 760:
		if !w.options.calm || w.rng.IntN(20) == 0 {
			h.propose()
		}
	case n < 820:
		h.read()
	case n < 920:
		h.flush()
	case n < 930:
		h.checkpoint()
	case n < 960:
		h.install()
	default:
		w.trouble(h, n)
	}
	for _, h := range w.hosts {
		if h.wanted && h.replica != nil {
			h.checkpoint()
		}
		if w.options.resize && w.rng.IntN(100) == 0 {
			w.dropRemoved(h)
		}
	}
}

// dropRemoved ends the replicas for good that a leader has removed.
func (w *world) dropRemoved(leader *host) {
	if leader.replica == nil || !leader.replica.MembersSettled() {
		return
	}
	w.hosts = slices.DeleteFunc(slices.Clone(w.hosts), func(h *host) bool {
		if at, ok := w.removed[h.id]; !ok || at > leader.machine.index || w.back[h.id] {
			return false
		}
		w.drops++
		return true
	})
}

func (w *world) trouble(h *host, n int) {
	switch {
	case h.replica == nil:
		h.start()
	case n < 966:
		if w.options.lossy {
			h.crash()
		}
	case n < 967:
		if w.rng.IntN(2) == 0 {
			w.cutOff(h)
		} else if w.options.lossy {
			w.prefersLeader(h).paused = w.steps + 300 + w.rng.IntN(1000)
		}
	case n < 976:
		if members := h.replica.Members(); h.replica.Transfer(members[w.rng.IntN(len(members))].ID, h) {
			w.handover++
		}
	case n < 990:
		h.replica.Quiesce(h)
	case n < 992:
		h.replica.Wake(h)
	case w.options.resize:
		w.resize(h)
	}
}

// cutOff ends all cuts, and may cut a host off, in both directions or in one: more often one that leads.
func (w *world) cutOff(h *host) {
	clear(w.cut)
	if !w.options.lossy || w.rng.IntN(3) == 0 {
		return
	}
	h = w.prefersLeader(h)
	for _, o := range w.hosts {
		w.cut[[2]uint64{h.id, o.id}] = true
		w.cut[[2]uint64{o.id, h.id}] = w.rng.IntN(3) > 0
	}
}

// prefersLeader is the host, or one that leads.
func (w *world) prefersLeader(h *host) *host {
	for _, o := range w.hosts {
		if w.rng.IntN(2) == 0 && o.replica != nil && o.replica.IsLeader() {
			h = o
		}
	}
	return h
}

// tick ticks a replica, as an owner does that leaves out those that rest.
func (h *host) tick() {
	if h.replica == nil {
		return
	}
	h.world.check(h.ticked || h.replica.Quiesced(), "replica %d has begun to work, and nobody has heard of that", h.id)
	if h.ticked {
		h.replica.Tick(h)
		h.ticked = !h.replica.Quiesced()
	}
}

func (h *host) flush() {
	if h.replica != nil {
		h.replica.Flush(event.Time{Wall: h.world.wall}, h)
	}
}

// resize tries a change of the membership; most are refused.
func (w *world) resize(h *host) {
	members := h.replica.Members()
	m := members[w.rng.IntN(len(members))]
	c := Change{Kind: Remove, Member: m}
	back := w.left(h)
	switch {
	case back != 0 && w.rng.IntN(2) == 0:
		c = Change{Kind: AddLearner, Member: Member{ID: back, Server: back, Learner: true}}
		w.back[back] = true
	case w.rng.IntN(3) == 0 && len(members) < 6 && h.replica.Serving():
		w.ids++
		c = Change{Kind: AddLearner, Member: Member{ID: w.ids, Server: w.ids, Learner: true}}
		w.add(w.ids)
	case m.Learner && w.rng.IntN(4) > 0:
		c.Kind = Promote
	}
	if err := h.replica.ChangeMembers(c, h); err == nil {
		w.changes++
		if c.Kind == AddLearner && w.back[c.Member.ID] {
			w.returns++
		}
	}
}

// left is a replica that the group has removed and that goes on; 0 without one. It stays from now on, as it is wanted again.
func (w *world) left(leader *host) uint64 {
	if !leader.replica.Serving() || len(leader.replica.Members()) >= 6 {
		return 0
	}
	for _, h := range w.hosts {
		if _, member := leader.replica.Member(h.id); !member && w.removed[h.id] != 0 {
			return h.id
		}
	}
	return 0
}

// heal ends all trouble and lets the group settle.
func (w *world) heal() {
	w.options.lossy = false
	clear(w.cut)
	for _, h := range w.hosts {
		h.paused = 0
		if h.replica == nil {
			h.start()
		}
		h.replica.Wake(h)
	}
	for round := 0; round < 4000; round++ {
		for range 4 * len(w.hosts) {
			w.deliver()
		}
		for _, h := range w.hosts {
			h.finish()
			h.flush()
			h.install()
			if h.wanted {
				h.checkpoint()
			}
			if round%3 == 0 {
				h.tick()
			}
		}
		if round > 200 && w.settled() {
			return
		}
	}
	for _, h := range w.hosts {
		r := h.replica
		w.t.Logf("replica %d: leader %d, term %d, last %d, commit %d, applied %d, members %v, quiesced %v, rests %d",
			h.id, r.Leader(), r.Term(), r.LastIndex(), r.Commit(), h.machine.index, r.Members(), r.Quiesced(), len(h.pending))
	}
	w.check(false, "the group does not settle")
}

// leader is the host that leads in the newest term.
func (w *world) leader() *host {
	var found *host
	for _, h := range w.hosts {
		if h.replica.Serving() && (found == nil || h.replica.Term() > found.replica.Term()) {
			found = h
		}
	}
	return found
}

// settled reports whether every member has everything.
func (w *world) settled() bool {
	l := w.leader()
	if l == nil || !l.replica.Idle() {
		return false
	}
	for _, m := range l.replica.Members() {
		h := w.host(m.ID)
		if h.machine.index != l.replica.LastIndex() || !slices.Equal(h.replica.Members(), l.replica.Members()) {
			return false
		}
	}
	return true
}

// finalCheck holds the state of the members against what was acknowledged.
func (w *world) finalCheck() {
	l := w.leader()
	have := map[uint64]int{}
	for _, n := range l.machine.numbers {
		have[n]++
		w.check(have[n] == 1, "command %d is applied twice", n)
	}
	for n := range w.acked { // order-free: all have to be there
		w.check(have[n] == 1, "command %d was acknowledged and is lost", n)
	}
	for n := range w.undone { // order-free: none may be there
		w.check(have[n] == 0, "command %d was undone and is there", n)
	}
	for _, m := range l.replica.Members() {
		w.check(w.host(m.ID).machine.hash == l.machine.hash, "member %d differs from the leader", m.ID)
	}
}

// run plays one seed; the text says which property is broken.
func run(t *testing.T, seed uint64, o options, steps int) (w *world, broken string) {
	w = newWorld(t, seed, o)
	defer func() {
		switch p := recover().(type) {
		case nil:
		case violation:
			broken = string(p)
		default:
			if o.plant == (Plant{}) {
				panic(p)
			}
			broken = "an assertion fails"
		}
	}()
	for range steps {
		w.step()
	}
	w.heal()
	w.finalCheck()
	w.rest()
	return w, ""
}

// rest lets the group rest, checks that it is silent, and that work wakes it.
func (w *world) rest() {
	l := w.leader()
	for range 100 {
		w.round()
		if l = w.leader(); l != nil {
			l.replica.Quiesce(l)
		}
		for len(w.net) > 0 {
			w.deliver()
		}
		if resting := w.resting(l); resting {
			break
		}
	}
	w.check(w.resting(l), "the group does not rest")
	for range 30 {
		for _, h := range w.hosts {
			if _, ok := l.replica.Member(h.id); ok {
				h.tick()
			}
		}
	}
	w.check(len(w.net) == 0 && w.resting(l), "a group at rest sends %d messages", len(w.net))
	before := len(w.acked)
	l.propose()
	for range 40 {
		w.round()
	}
	w.check(len(w.acked) == before+1, "a group at rest does not wake")
}

// resting reports whether every member rests.
func (w *world) resting(l *host) bool {
	if l == nil || len(l.replica.Members()) == 1 {
		return l != nil
	}
	for _, m := range l.replica.Members() {
		if !w.host(m.ID).replica.Quiesced() {
			return false
		}
	}
	return true
}

// round lets everybody work for a tick.
func (w *world) round() {
	for range 4 * len(w.hosts) {
		w.deliver()
	}
	for _, h := range w.hosts {
		h.finish()
		h.flush()
		h.tick()
	}
}

// TestGroupsKeepTheirPromises plays groups of one, three and five replicas through loss, repetition, late delivery, cuts,
// crashes, snapshots, rests, transfers and changes of the membership. A term has one leader; votes are durable and are
// not changed; the leader has everything committed; replicas agree at each index; what was acknowledged stays, once; what is
// undone is nowhere; a
// read sees what was acknowledged before it; and when the trouble ends all members become equal.
func TestGroupsKeepTheirPromises(t *testing.T) {
	seeds, steps := uint64(60), 3000
	if testing.Short() {
		seeds = 15
	}
	var acked, reads, snaps, changes, rests, handovers, drops, late, undone, returns int
	for seed := range seeds {
		o := options{members: []int{3, 5, 1, 2}[seed%4], lossy: seed%5 > 0, resize: seed%3 > 0, calm: seed%6 == 0}
		w, broken := run(t, seed, o, steps)
		if broken != "" {
			t.Fatal(broken)
		}
		acked, reads, snaps, changes = acked+len(w.acked), reads+w.reads, snaps+w.snaps, changes+w.changes
		late, undone, returns = late+w.late, undone+len(w.undone), returns+w.returns
		rests, handovers, drops = rests+w.rests, handovers+w.handover, drops+w.drops
	}
	t.Logf("%d acknowledged, %d reads, %d snapshots, %d changes, %d rests, %d transfers, %d replicas dropped, %d batches late, %d undone, %d replicas taken back", acked, reads, snaps, changes, rests, handovers, drops, late, undone, returns)
	if acked < 1000 || reads < 100 || snaps < 5 || changes < 20 || rests < 5 || handovers < 5 || drops < 5 || late < 2 || undone < 10 || returns < 2 {
		t.Fatal("the test does not reach what it is to test")
	}
}
