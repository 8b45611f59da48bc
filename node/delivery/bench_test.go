package delivery

import (
	"testing"
	"time"

	"weir/model/command"
	"weir/model/consumer"
	"weir/model/effect"
	"weir/model/jsapi"
)

// denseStream never ends.
type denseStream struct{ fakeStream }

func (denseStream) Last() uint64                                       { return 1 << 50 }
func (denseStream) Count(_ []string, from uint64) uint64               { return 1<<50 - from }
func (denseStream) Next(_ []string, from uint64, _ int) (uint64, bool) { return from, true }
func (denseStream) Meta(uint64) (consumer.Meta, bool) {
	return consumer.Meta{Time: 1_700_000_000_000_000_000, SubjectSize: 3, Size: 128}, true
}

// fastWorld applies what is proposed in the simplest way and throws away what is sent.
type fastWorld struct {
	fakeWorld
	state   *consumer.State
	message Stored
	deliver command.Command
	waiting bool
	sends   int
	bytes   int
}

func (w *fastWorld) Consumer(uint64, uint64) *consumer.State { return w.state }
func (w *fastWorld) Fetch(uint64, uint64, uint64) (Stored, Presence) {
	return w.message, Here
}
func (w *fastWorld) HasInterest(uint64, []byte) bool           { return true }
func (w *fastWorld) Watch(uint64, uint64, string, string) bool { return true }
func (w *fastWorld) Propose(_ uint64, c *command.Command) bool {
	w.deliver, w.waiting = *c, true
	return true
}
func (w *fastWorld) Send(_ uint64, _ []byte, m *Message) int {
	w.sends++
	w.bytes += len(m.Subject) + len(m.Reply) + len(m.Payload)
	return 1
}

func newFastWorld(config *jsapi.ConsumerConfig) (*fastWorld, *Desk) {
	w := &fastWorld{message: Stored{Subject: []byte("a.b"), Payload: make([]byte, 128)}}
	d := NewDesk(w, Config{})
	d.StreamLed(1, testGroup)
	w.state = consumer.New(consumer.Params{ID: 1, Name: "C", Config: config, Options: consumer.Options{Stream: "S"}},
		&denseStream{}, 1)
	d.Apply(1, testGroup, &effect.Effect{Kind: effect.ConsumerCreated, Consumer: 1})
	return w, d
}

// round applies one proposal of the desk and acknowledges what it handed out.
func (w *fastWorld) round(d *Desk, b *consumer.Batch) {
	d.Flush(b.Time)
	if !w.waiting {
		return
	}
	w.waiting = false
	b.Out.Reset()
	b.Index++
	b.Time += 1000
	w.state.Deliver(b, consumer.Request{Token: w.deliver.Token, Count: w.deliver.Count, MaxBytes: w.deliver.MaxBytes})
	for i := range b.Out.Effects {
		d.Apply(b.Time, testGroup, &b.Out.Effects[i])
	}
	b.Out.Reset()
	for seq := w.state.AckFloor().Stream + 1; seq <= w.state.Delivered().Stream; seq++ {
		w.state.Ack(b, consumer.Delivery{StreamSeq: seq, ConsumerSeq: seq, Deliveries: 1})
	}
}

func pullConfig() *jsapi.ConsumerConfig {
	return &jsapi.ConsumerConfig{Name: "C", AckPolicy: jsapi.AckExplicit, AckWait: time.Minute, MaxDeliver: -1}
}

func BenchmarkPullBatch(b *testing.B) {
	w, d := newFastWorld(pullConfig())
	batch := &consumer.Batch{Time: 1, Out: &effect.List{}}
	body := []byte(`{"batch":500,"expires":30000000000}`)
	b.ReportAllocs()
	for w.sends < b.N {
		d.Pull(batch.Time, PullRequest{testGroup, 1, "_INBOX.abcdefghijklmnop.1", body})
		w.round(d, batch)
	}
}

func BenchmarkPush(b *testing.B) {
	config := pullConfig()
	config.DeliverSubject = "_INBOX.abcdefghijklmnop"
	w, d := newFastWorld(config)
	batch := &consumer.Batch{Time: 1, Out: &effect.List{}}
	b.ReportAllocs()
	for w.sends < b.N {
		w.round(d, batch)
	}
}

func TestDeliveriesDoNotAllocate(t *testing.T) {
	config := pullConfig()
	config.DeliverSubject = "out"
	w, d := newFastWorld(config)
	batch := &consumer.Batch{Time: 1, Out: &effect.List{}}
	for range 10 {
		w.round(d, batch)
	}
	before := w.sends
	got := testing.AllocsPerRun(20, func() { w.round(d, batch) })
	if got != 0 || w.sends < before+20*DeliverBatchMax {
		t.Fatalf("a round allocates %v times; %d messages were sent", got, w.sends-before)
	}
}
