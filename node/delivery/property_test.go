package delivery

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/model/command"
	"weir/model/jsapi"
)

// client is what the property test knows about a request that it made.
type client struct {
	batch, maxBytes int
	got, bytes      int
	heard           int64 // when something came last
	over            bool
	impatient       bool // waits for nothing, so it has an end once nothing is left
}

// beatNanos is the time between the heartbeats of those who ask for them.
const beatNanos = 40_000_000

// watcher judges everything that leaves.
type watcher struct {
	t       *rapid.T
	w       *fakeWorld
	clients map[string]*client
	seen    int               // of w.sent
	lastSeq uint64            // consumer sequence sent last
	counts  map[uint64]uint64 // deliveries of each message
	acked   map[uint64]bool
	again   bool // messages are due again after a while, also those that are still on their way
}

func (p *watcher) judge() {
	for ; p.seen < len(p.w.sent); p.seen++ {
		m := &p.w.sent[p.seen]
		c := p.clients[m.to]
		if c == nil {
			p.t.Fatalf("%s was sent to nobody", m.text())
		}
		if m.reply == "" {
			p.judgeStatus(c, m)
			c.heard = m.at
			continue
		}
		c.heard = m.at
		r, ok := jsapi.ParseAckReply(m.reply)
		if !ok || c.over {
			p.t.Fatalf("%s: parsed %v, after the end of the request %v", m.text(), ok, c.over)
		}
		if r.ConsumerSeq <= p.lastSeq {
			p.t.Fatalf("%s follows consumer sequence %d", m.text(), p.lastSeq)
		}
		p.lastSeq = r.ConsumerSeq
		p.counts[r.StreamSeq]++
		if p.again { // one that did not leave in time is counted as well
			p.counts[r.StreamSeq] = max(p.counts[r.StreamSeq], r.Delivered)
		}
		if p.counts[r.StreamSeq] != r.Delivered {
			p.t.Fatalf("%s is delivery %d", m.text(), p.counts[r.StreamSeq])
		}
		if p.acked[r.StreamSeq] {
			p.t.Fatalf("%s was acknowledged", m.text())
		}
		c.got++
		c.bytes += len(m.subject) + len(m.reply) + len(m.header) + m.size
		if c.got > c.batch || c.maxBytes > 0 && c.bytes > c.maxBytes {
			p.t.Fatalf("%s: %d messages of %d, %d bytes of %d", m.text(), c.got, c.batch, c.bytes, c.maxBytes)
		}
	}
}

func (p *watcher) judgeStatus(c *client, m *sent) {
	var code int
	if _, err := fmt.Sscanf(m.header, "NATS/1.0 %d", &code); err != nil {
		p.t.Fatalf("%s: %v", m.text(), err)
	}
	if code == 100 {
		if m.at < c.heard+beatNanos {
			p.t.Fatalf("%s came %d ns after something else", m.text(), m.at-c.heard)
		}
		return
	}
	if c.over {
		p.t.Fatalf("%s follows the end of the request", m.text())
	}
	c.over = true
}

func (p *watcher) pull(number int) {
	c := &client{batch: rapid.IntRange(1, 5).Draw(p.t, "batch"), heard: p.w.now}
	body := fmt.Sprintf(`{"batch":%d`, c.batch)
	if rapid.IntRange(0, 3).Draw(p.t, "bounded") == 0 {
		c.maxBytes = rapid.IntRange(20, 200).Draw(p.t, "max bytes")
		body += fmt.Sprintf(`,"max_bytes":%d`, c.maxBytes)
	}
	if c.impatient = rapid.Bool().Draw(p.t, "no wait"); c.impatient {
		body += `,"no_wait":true`
	}
	beats := false
	if rapid.Bool().Draw(p.t, "expires") {
		c.impatient = false
		body += `,"expires":100000000`
		if beats = rapid.Bool().Draw(p.t, "heartbeat"); beats {
			body += fmt.Sprintf(`,"idle_heartbeat":%d`, beatNanos)
		}
	}
	inbox := fmt.Sprintf("in%d", number)
	p.clients[inbox] = c
	p.w.listeners[inbox] = 1
	before := len(p.w.sent)
	p.w.desk.Pull(p.w.now, PullRequest{testGroup, 1, inbox, []byte(body + "}")})
	// One too many with heartbeats is not told, though others may be: the client notices that they do not come.
	told := slices.ContainsFunc(p.w.sent[before:], func(m sent) bool { return m.to == inbox })
	c.over = beats && !told && !p.w.waits(inbox)
}

func (p *watcher) step(number int) {
	w := p.w
	switch rapid.IntRange(0, 13).Draw(p.t, "op") {
	case 0, 1, 2:
		p.pull(number)
	case 3, 4:
		w.publish(fakeMessage{subject: "a.b", size: rapid.IntRange(0, 60).Draw(p.t, "size")})
	case 5:
		w.cold = !w.cold
	case 6:
		n := len(w.reads)
		w.finishReads(func(left int) int { return rapid.IntRange(0, left-1).Draw(p.t, fmt.Sprint("read of ", n)) })
	case 7:
		w.tick(rapid.Int64Range(0, 150_000_000).Draw(p.t, "nanos"))
	case 8:
		w.refuses = !w.refuses
	case 9:
		inbox := fmt.Sprintf("in%d", rapid.IntRange(0, number).Draw(p.t, "victim"))
		if p.clients[inbox] != nil {
			w.listen(inbox, 0)
		}
		if rapid.Bool().Draw(p.t, "refused as well") { // what the victim does not get can not be given back at once
			w.refuses = true
			w.finishReads(func(int) int { return 0 })
		}
	case 10:
		if n := len(w.sent); n > 0 {
			r, ok := jsapi.ParseAckReply(w.sent[rapid.IntRange(0, n-1).Draw(p.t, "ack")].reply)
			if ok {
				w.entry = append(w.entry, command.Command{Kind: command.Ack, Consumer: 1, StreamSeq: r.StreamSeq})
				w.desk.Flush(w.now)
				w.applyEntry()
				p.judge() // what left before the acknowledgement
				p.acked[r.StreamSeq] = true
			}
		}
	case 13: // removed while it is being read
		if n := len(w.reads); n > 0 {
			w.remove(w.reads[rapid.IntRange(0, n-1).Draw(p.t, "removed")].seq)
		}
	case 12:
		w.congested = !w.congested
	case 11:
		w.desk.Flush(w.now) // proposed now, applied later
		return
	}
	if rapid.Bool().Draw(p.t, "commit") {
		w.commit()
	}
}

// finish lets everything come to rest with one more request that listens to the end, and checks that nothing is lost.
func (p *watcher) finish(number int) {
	w := p.w
	w.cold, w.refuses, w.congested = false, false, false
	last := func(left int) int { return left - 1 }
	w.finishReads(last)
	w.commit()
	w.tick(200_000_000)
	inbox := fmt.Sprintf("in%d", number)
	p.clients[inbox] = &client{batch: 100_000}
	w.listeners[inbox] = 1
	w.desk.Pull(w.now, PullRequest{testGroup, 1, inbox, []byte(`100000`)})
	w.commit()
	w.tick(200_000_000)
	p.judge()
	if state := w.states[0]; state.Deliverable() {
		p.t.Fatalf("a request waits and %d new, %d redelivered messages are not delivered", state.NumPending(), state.NumQueued())
	}
	for seq := uint64(1); seq <= w.stream.Last(); seq++ {
		if p.counts[seq] == 0 && !w.gone[seq] {
			p.t.Fatalf("message %d reached nobody: %s", seq, w.history())
		}
	}
	for inbox, c := range p.clients { // order-free: each client is judged on its own
		short := c.got == 0 || c.maxBytes == 0 && c.got < c.batch
		if c.batch < 100_000 && !c.over && short && w.listeners[inbox] != 0 && (c.impatient || !w.waits(inbox)) {
			p.t.Fatalf("request %s of %d messages got %d and no end", inbox, c.batch, c.got)
		}
	}
}

// waits reports whether a request is still in the queue.
func (w *fakeWorld) waits(inbox string) bool {
	for _, r := range w.desk.lines[key{testGroup, 1}].waiting.all() {
		if string(r.inbox) == inbox {
			return true
		}
	}
	return false
}

func (w *fakeWorld) history() (text string) {
	for i := range w.sent {
		text += "\n" + w.sent[i].text()
	}
	return text
}

// TestNoRequestIsOverServedAndNoMessageIsLost drives a desk with random requests, losses of interest, clients
// that do not keep up, cold reads that end in any order, refused proposals and time, and judges everything that leaves.
func TestNoRequestIsOverServedAndNoMessageIsLost(t *testing.T) {
	for range 20 { // what goes wrong takes several things at once, and a run is short
		rapid.Check(t, checkDesk)
	}
}

func checkDesk(t *rapid.T) {
	w := newWorld()
	w.desk.uncheckedMax = 0
	p := &watcher{t: t, w: w, clients: map[string]*client{}, counts: map[uint64]uint64{}, acked: map[uint64]bool{}}
	wait := time.Hour
	if p.again = rapid.Bool().Draw(t, "again"); p.again {
		wait = 60 * time.Millisecond
	}
	w.createConsumer(1, &jsapi.ConsumerConfig{Name: "C", AckPolicy: jsapi.AckExplicit, AckWait: wait,
		MaxDeliver: -1, MaxWaiting: 4})
	steps := rapid.IntRange(1, 60).Draw(t, "steps")
	for number := range steps {
		p.step(number)
		p.judge()
	}
	p.finish(steps)
}

// TestMessageForALostRequestGoesToTheNext has a request with a bound of bytes give up while its message is being recorded.
func TestMessageForALostRequestGoesToTheNext(t *testing.T) {
	w := newWorld()
	w.createConsumer(1, &jsapi.ConsumerConfig{Name: "C", AckPolicy: jsapi.AckExplicit, AckWait: time.Hour, MaxDeliver: -1, MaxWaiting: 1})
	w.listen("in1", 1)
	w.listen("in2", 1)
	w.desk.Pull(w.now, PullRequest{testGroup, 1, "in1", []byte(`{"batch":1,"max_bytes":500}`)})
	w.publish(fakeMessage{subject: "a.b", size: 3})
	w.desk.Flush(w.now)
	w.listen("in1", 0)
	w.desk.Pull(w.now, PullRequest{testGroup, 1, "in2", []byte(`{"batch":1}`)})
	w.commit()
	if len(w.sent) != 1 || w.sent[0].to != "in2" {
		t.Fatalf("sent:%s", w.history())
	}
	if r, ok := jsapi.ParseAckReply(w.sent[0].reply); !ok || r.Delivered != 1 {
		t.Fatalf("%s is not the first delivery", w.sent[0].text())
	}
}

// TestMessageAcknowledgedWhileItIsReadIsNotSentAgain has the acknowledgement overtake a redelivery on its way out.
func TestMessageAcknowledgedWhileItIsReadIsNotSentAgain(t *testing.T) {
	w := newWorld()
	w.createConsumer(1, &jsapi.ConsumerConfig{Name: "C", AckPolicy: jsapi.AckExplicit, AckWait: 60 * time.Millisecond, MaxDeliver: -1, MaxWaiting: 4})
	w.listen("in1", 1)
	w.desk.Pull(w.now, PullRequest{testGroup, 1, "in1", []byte(`{"batch":3}`)})
	w.publish(fakeMessage{subject: "a.b", size: 3})
	w.commit()
	w.cold = true
	w.now += 100_000_000
	w.expire()
	w.commit()
	if len(w.sent) != 1 || len(w.reads) != 1 {
		t.Fatalf("%d messages are read, sent:%s", len(w.reads), w.history())
	}
	w.entry = append(w.entry, command.Command{Kind: command.Ack, Consumer: 1, StreamSeq: 1})
	w.commit()
	w.finishReads(func(int) int { return 0 })
	w.commit()
	if len(w.sent) != 1 {
		t.Fatalf("an acknowledged message is sent again:%s", w.history())
	}
}
