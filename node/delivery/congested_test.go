package delivery

import (
	"testing"

	"weir/model/jsapi"
)

// TestClientGetsBigMessagesAtItsOwnRate asks for more than the connection of a client holds.
func TestClientGetsBigMessagesAtItsOwnRate(t *testing.T) {
	for _, config := range []*jsapi.ConsumerConfig{
		{Name: "C", AckPolicy: jsapi.AckNone, MaxDeliver: -1},
		{Name: "C", AckPolicy: jsapi.AckNone, MaxDeliver: -1, DeliverSubject: "in"},
	} {
		w := newWorld()
		w.congested = true
		for range 40 {
			w.publish(fakeMessage{subject: "a.b", size: UncheckedBytesMax / 2})
		}
		w.listeners["in"] = 1
		w.createConsumer(1, config)
		if !config.Push() {
			w.desk.Pull(w.now, PullRequest{Group: testGroup, Consumer: 1, Reply: "in", Body: []byte(`{"batch":40}`)})
		}
		w.commit()
		w.tick(10 * CongestedNanos)
		if n := len(w.sent); n == 0 || n > 2 {
			t.Fatalf("a client that does not keep up was sent %d messages", n)
		}
		w.congested = false
		w.tick(CongestedNanos)
		if len(w.sent) != 40 {
			t.Fatalf("%d of 40 messages were sent in the end", len(w.sent))
		}
		w.congested = true
		w.listen("in", 0)
		w.tick(CongestedNanos)
		if w.desk.Deadline() != 0 {
			t.Fatal("the desk waits for a client that is gone")
		}
	}
}
