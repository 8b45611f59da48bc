package replica

import (
	"fmt"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/wal"
	"weir/model/effect"
	"weir/node/event"
)

// idler is a machine that does nothing with entries.
type idler struct{ counter }

func (s *idler) Apply(index uint64, _ []byte, _ *effect.List) { s.applied = index }

// instant is a sink whose log and network take no time.
type instant struct {
	self    *Replica
	tickets event.Ticket
	written event.Ticket
	queue   *[]envelope
}

type envelope struct {
	to   uint64
	data []byte
}

func (s *instant) Undone(*Replica, *Batch) {}

func (s *instant) Persist(wal.Write) event.Ticket {
	s.tickets++
	return s.tickets
}
func (s *instant) Applied(*Replica, *Batch, *effect.List) {}
func (s *instant) Role(*Replica)                          {}
func (s *instant) Members(*Replica)                       {}
func (s *instant) Woke(*Replica)                          {}

func (s *instant) Send(_ *Replica, to Member, m *pb.Message) {
	*s.queue = append(*s.queue, envelope{to.ID, AppendMessage(make([]byte, 0, MessageBytes(m)), m)})
}

// BenchmarkReplicate publishes batches of 1 and of 100 messages of 100 bytes through a group of one and of three replicas.
func BenchmarkReplicate(b *testing.B) {
	for _, n := range []uint64{1, 3} {
		for _, batch := range []int{1, 100} {
			b.Run(fmt.Sprintf("R%d/%d", n, batch), func(b *testing.B) { benchmarkReplicate(b, n, batch) })
		}
	}
}

func benchmarkReplicate(b *testing.B, n uint64, batch int) {
	var members []Member
	for id := range n {
		members = append(members, Member{ID: id + 1, Server: id + 1})
	}
	var queue []envelope
	var sinks []*instant
	for id := range n {
		s := &instant{queue: &queue}
		r, err := New(Config{Group: 7, ID: id + 1, Members: members, Machine: &idler{}, Boot: 1, Load: &Load{}})
		if err != nil {
			b.Fatal(err)
		}
		s.self = r
		sinks = append(sinks, s)
		r.Start(s)
	}
	work := func() {
		for busy := true; busy; {
			busy = false
			for _, s := range sinks {
				if s.written < s.tickets {
					s.written = s.tickets
					s.self.Persisted(s.written, s)
					busy = true
				}
			}
			for len(queue) > 0 {
				e := queue[0]
				queue = queue[1:]
				m, err := ParseMessage(e.data)
				if err != nil {
					b.Fatal(err)
				}
				sinks[e.to-1].self.Receive(m.GetFrom(), m, sinks[e.to-1])
				busy = true
			}
		}
	}
	leader := sinks[0]
	leader.self.Campaign(leader)
	work()
	message := Published{Subject: []byte("subject"), Payload: make([]byte, 100), Reply: []byte("_INBOX.reply")}
	b.ReportAllocs()
	b.ResetTimer()
	wall := int64(1)
	for range b.N {
		for range batch {
			leader.self.Publish(&message)
		}
		wall++
		leader.self.Flush(event.Time{Wall: wall}, leader)
		work()
	}
	b.StopTimer()
	if leader.self.Commit() < uint64(b.N) {
		b.Fatalf("%d of %d batches are committed", leader.self.Commit(), b.N)
	}
}
