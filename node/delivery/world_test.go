package delivery

import (
	"fmt"
	"slices"
	"strings"

	"weir/model/command"
	"weir/model/consumer"
	"weir/model/effect"
	"weir/model/jsapi"
)

const testGroup = 5

// fakeMessage is one message of the fake stream.
type fakeMessage struct {
	subject, header string
	time            int64
	size            int
}

// fakeStream is a stream without deletions of any number of messages.
type fakeStream struct{ messages []fakeMessage }

func (s *fakeStream) First() uint64 { return 1 }
func (s *fakeStream) Last() uint64  { return uint64(len(s.messages)) }
func (s *fakeStream) Next(_ []string, from uint64, _ int) (uint64, bool) {
	return from, from <= s.Last()
}
func (s *fakeStream) Count(_ []string, from uint64) uint64 {
	return s.Last() + 1 - min(from, s.Last()+1)
}
func (s *fakeStream) LastSeqs([]string) []uint64    { return nil }
func (s *fakeStream) LastMatch([]string) uint64     { return s.Last() }
func (s *fakeStream) Matches([]string, uint64) bool { return true }
func (s *fakeStream) SeqAtTime(int64) uint64        { return 1 }
func (s *fakeStream) Meta(seq uint64) (consumer.Meta, bool) {
	if seq == 0 || seq > s.Last() {
		return consumer.Meta{}, false
	}
	m := s.messages[seq-1]
	return consumer.Meta{Time: m.time, SubjectSize: len(m.subject), Size: len(m.header) + m.size}, true
}

// sent is one message that left.
type sent struct {
	to, subject, reply, header string
	size                       int
	at                         int64
}

// text is the message as the transcripts of testdata show it.
func (s *sent) text() string {
	header := strings.ReplaceAll(strings.TrimSuffix(s.header, "\r\n\r\n"), "\r\n", " | ")
	if s.reply == "" {
		return fmt.Sprintf("%s <- %s", s.to, header)
	}
	text := fmt.Sprintf("%s <- %s reply %s, %d bytes", s.to, s.subject, s.reply, s.size)
	if header != "" {
		text += ", " + header
	}
	return text
}

// fakeWorld is a node with one stream: commands wait in entry until commit applies them.
type fakeWorld struct {
	desk      *Desk
	now       int64
	stream    fakeStream
	states    []*consumer.State
	entry     []command.Command
	index     uint64
	list      effect.List
	listeners map[string]int // subject -> 1 for a plain subscription, 2 for one of the queue group "q"
	refuses   bool
	congested bool // nobody keeps up
	drops     bool
	cold      bool
	reads     []read
	gone      map[uint64]bool // messages that were removed after they were handed out
	watched   map[uint64][2]string
	random    uint64
	sent      []sent
	deleted   []string
}

type read struct{ seq, ticket uint64 }

func newWorld() *fakeWorld {
	w := &fakeWorld{now: 1, listeners: map[string]int{}, watched: map[uint64][2]string{}, gone: map[uint64]bool{}}
	w.desk = NewDesk(w, Config{Boot: 3})
	w.desk.StreamLed(w.now, testGroup)
	return w
}

func (w *fakeWorld) Consumer(_, id uint64) *consumer.State {
	for _, s := range w.states {
		if s.ID() == id {
			return s
		}
	}
	return nil
}

func (w *fakeWorld) Consumers(uint64) []*consumer.State { return w.states }

func (w *fakeWorld) stored(seq uint64) Stored {
	m := w.stream.messages[seq-1]
	return Stored{Subject: []byte(m.subject), Header: []byte(m.header), Payload: make([]byte, m.size)}
}

func (w *fakeWorld) Fetch(_, seq, ticket uint64) (Stored, Presence) {
	if w.gone[seq] {
		return Stored{}, Missing
	}
	if w.cold {
		w.reads = append(w.reads, read{seq, ticket})
		return Stored{}, Coming
	}
	return w.stored(seq), Here
}

func (w *fakeWorld) Propose(_ uint64, c *command.Command) bool {
	if w.refuses {
		return false
	}
	w.entry = append(w.entry, *c)
	return true
}

func (w *fakeWorld) HasInterest(_ uint64, subject []byte) bool {
	return w.listeners[string(subject)] != 0
}

func (w *fakeWorld) Congested(_ uint64, to []byte) bool {
	return w.congested && w.listeners[string(to)] != 0
}

func (w *fakeWorld) Send(_ uint64, to []byte, m *Message) int {
	if w.listeners[string(to)] == 0 {
		return 0
	}
	w.sent = append(w.sent, sent{string(to), string(m.Subject), string(m.Reply), string(m.Header), len(m.Payload), w.now})
	return 1
}

func (w *fakeWorld) Watch(_, id uint64, subject, queue string) bool {
	delete(w.watched, id)
	if subject == "" {
		return false
	}
	w.watched[id] = [2]string{subject, queue}
	return w.interested(id)
}

func (w *fakeWorld) interested(id uint64) bool {
	watch := w.watched[id]
	if watch[1] != "" {
		return w.listeners[watch[0]] == 2
	}
	return w.listeners[watch[0]] == 1
}

func (w *fakeWorld) Random() uint64 { w.random += 1_000_003; return w.random }

// listen sets how a subject is subscribed to and tells the desk.
func (w *fakeWorld) listen(subject string, how int) {
	w.listeners[subject] = how
	for _, s := range w.states {
		if w.watched[s.ID()][0] == subject {
			w.desk.Interest(w.now, testGroup, s.ID(), w.interested(s.ID()))
		}
	}
}

// commit flushes the desk and applies what was proposed, until nothing is.
func (w *fakeWorld) commit() {
	for w.desk.Flush(w.now); len(w.entry) > 0; w.desk.Flush(w.now) {
		w.applyEntry()
	}
}

func (w *fakeWorld) batch() *consumer.Batch {
	w.index++
	w.list.Reset()
	return &consumer.Batch{Time: w.now, Index: w.index, Out: &w.list}
}

func (w *fakeWorld) handOn() {
	effects := slices.Clone(w.list.Effects)
	for i := range effects {
		w.desk.Apply(w.now, testGroup, &effects[i])
	}
}

func (w *fakeWorld) applyEntry() {
	entry := w.entry
	w.entry = nil
	if w.drops {
		for _, c := range entry {
			w.desk.Dropped(w.now, testGroup, c.Consumer, c.Token)
		}
		return
	}
	b := w.batch()
	for i := range entry {
		w.apply(b, &entry[i])
	}
	w.handOn()
}

func (w *fakeWorld) apply(b *consumer.Batch, c *command.Command) {
	s := w.Consumer(0, c.Consumer)
	if s == nil {
		return
	}
	d := consumer.Delivery{StreamSeq: c.StreamSeq, ConsumerSeq: c.ConsumerSeq, Deliveries: c.Deliveries}
	switch c.Kind {
	case command.Deliver:
		s.Deliver(b, consumer.Request{Token: c.Token, Count: c.Count, MaxBytes: c.MaxBytes})
	case command.Release:
		s.Release(b, d)
	case command.Ack:
		s.Ack(b, d)
	case command.DeleteConsumer:
		w.deleteConsumer(b, s)
	}
}

func (w *fakeWorld) deleteConsumer(b *consumer.Batch, s *consumer.State) {
	w.states = slices.DeleteFunc(w.states, func(o *consumer.State) bool { return o == s })
	w.deleted = append(w.deleted, s.Name())
	b.Out.Add(effect.ConsumerDeleted).Consumer = s.ID()
}

func (w *fakeWorld) createConsumer(id uint64, config *jsapi.ConsumerConfig) {
	s := consumer.New(consumer.Params{ID: id, Name: config.Name, Config: config, Options: consumer.Options{Stream: "S"}},
		&w.stream, w.now)
	w.states = append(w.states, s)
	b := w.batch()
	b.Out.Add(effect.ConsumerCreated).Consumer = id
	w.handOn()
}

func (w *fakeWorld) publish(m fakeMessage) {
	m.time = w.now
	w.stream.messages = append(w.stream.messages, m)
	b := w.batch()
	for _, s := range w.states {
		s.Stored(b, w.stream.Last())
	}
	w.handOn()
}

// remove takes away a message that the consumers have handed out.
func (w *fakeWorld) remove(seq uint64) {
	w.gone[seq] = true
	b := w.batch()
	for _, s := range w.states {
		s.Removed(b, seq, true, consumer.Deleted)
	}
	w.handOn()
}

// tick moves the time on in steps that stop at every deadline.
func (w *fakeWorld) tick(nanos int64) {
	end := w.now + nanos
	for {
		at := w.desk.Deadline()
		if at == 0 || at > end {
			break
		}
		w.now = max(at, w.now)
		w.desk.Tick(w.now)
		w.expire()
		w.commit()
	}
	w.now = end
	w.desk.Tick(w.now)
	w.expire()
	w.commit()
}

// expire lets the consumers act on their own deadlines.
func (w *fakeWorld) expire() {
	b := w.batch()
	for _, s := range w.states {
		s.Tick(b)
	}
	w.handOn()
}

// finishReads completes the first n reads, all when n < 0, in the order that order gives.
func (w *fakeWorld) finishReads(pick func(n int) int) {
	for len(w.reads) > 0 {
		i := pick(len(w.reads))
		r := w.reads[i]
		w.reads = slices.Delete(w.reads, i, i+1)
		w.desk.Fetched(w.now, r.ticket, w.stored(r.seq), !w.gone[r.seq])
	}
}
