package replica

import (
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/node/event"
)

// TestReadsEndAlthoughRoundsAreSlowerThanTheirRepetition: messages take several ticks, and a follower repeats what may be
// lost with every tick. The answer to an earlier round has to do.
func TestReadsEndAlthoughRoundsAreSlowerThanTheirRepetition(t *testing.T) {
	w, h := newLeaseWorld(t)
	w.lead(h, 1)
	follower := w.replicas[2]
	answered, ok := false, false
	follower.Read(func(read bool) { answered, ok = true, read })
	follower.Flush(event.Time{Mono: 1}, h)
	const late = 3 // ticks
	var underWay [late][]*pb.Message
	for range 6 * late {
		for id := uint64(1); id <= 3; id++ {
			w.replicas[id].Tick(h)
		}
		arriving := underWay[0]
		copy(underWay[:], underWay[1:])
		underWay[late-1] = w.sent
		w.sent = nil
		for _, m := range arriving {
			w.replicas[m.GetTo()].Receive(m.GetFrom(), m, h)
		}
	}
	if !answered || !ok {
		t.Fatalf("a read of a follower is answered: %v, with success: %v", answered, ok)
	}
}
