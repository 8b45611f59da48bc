package route

import (
	"testing"

	"weir/node/event"
)

// homeMesh remembers where messages for HomeGroup go.
type homeMesh struct{ sent map[event.ServerID]int }

func (m *homeMesh) Announce(*Interest) {}

func (m *homeMesh) Forward(to event.ServerID, out *Outgoing) bool {
	for _, queue := range out.Queues {
		if string(queue) == HomeGroup {
			m.sent[to]++
		}
	}
	return to != 9
}

func homeInterest(pattern string, first bool) *Interest {
	return &Interest{Pattern: pattern, Queue: HomeGroup, Count: 1, First: first}
}

func TestOneServerGetsWhatSeveralTakeAtHomeAndThatIsTheFirst(t *testing.T) {
	m := &homeMesh{sent: map[event.ServerID]int{}}
	table := NewTable(&counting{})
	table.Join(m)
	const rounds = 64
	publish := func(want int) {
		t.Helper()
		clear(m.sent)
		for range rounds {
			if got := table.Route([]byte("s.x"), &Message{Subject: []byte("s.x")}); got != want {
				t.Fatalf("%d took the message, want %d", got, want)
			}
		}
	}
	for id := event.ServerID(1); id <= 3; id++ {
		table.SetInterest(id, homeInterest("s.>", false))
		table.SetInterest(id, homeInterest(">", false))
	}
	publish(1)
	if len(m.sent) != 3 || m.sent[1]+m.sent[2]+m.sent[3] != rounds {
		t.Fatalf("without a first the messages went to %v", m.sent)
	}
	table.SetInterest(2, homeInterest("s.*", true))
	publish(1)
	if m.sent[2] != rounds {
		t.Fatalf("with a first the messages went to %v", m.sent)
	}
	table.SetInterest(2, homeInterest("s.*", false))
	table.SetInterest(9, homeInterest("s.x", true))
	publish(0) // it was dropped on the way, and nobody else got it
	if m.sent[9] != rounds {
		t.Fatalf("with another first the messages went to %v", m.sent)
	}
}

func TestMessagesForHomeReachOnlyWhatIsAtHome(t *testing.T) {
	table, r := NewTable(&counting{}), &keeper{}
	for _, sub := range []*Sub{
		{Receiver: r, Pattern: "s.>", Home: true}, {Receiver: r, Pattern: "s.*"}, {Receiver: r, Pattern: "s.x", Queue: "q"},
		{Receiver: r, Pattern: "t.>", Home: true},
	} {
		table.Subscribe(sub)
	}
	if got := table.RouteHome([]byte("s.x"), &Message{Subject: []byte("s.x")}); got != 1 || len(r.got) != 1 || r.got[0].Pattern != "s.>" {
		t.Fatalf("%d took the message: %v", got, r.got)
	}
}

type keeper struct{ got []*Sub }

func (k *keeper) Deliver(sub *Sub, _ *Message) bool {
	k.got = append(k.got, sub)
	return true
}

// counting counts up instead of drawing.
type counting struct{ n uint64 }

func (c *counting) Uint64() uint64 {
	c.n++
	return c.n
}
