package workload

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"weir/linearizability/history"
	"weir/sim/plan"
	"weir/sim/trace"
	"weir/transport/wire"
)

// fetch pulls up to n messages for a consumer and answers each as the plan's draws say. wait is the expiry of the
// request in milliseconds; 0 asks for what is there at once.
func (c *client) fetch(consumer, n int, wait int64, done func()) {
	l := c.load
	spec := &l.plan.Consumers[consumer]
	stream := l.plan.Streams[spec.Stream].Name
	l.tokens++
	k := &call{client: c, token: l.tokens}
	l.calls[k.token] = k
	c.pending = append(c.pending, k.token)
	sid := fmt.Sprintf("f%d", k.token)
	asked, got := l.world.Now(), 0
	k.done = func(*message) {
		c.unsubscribe(sid)
		done()
	}
	c.subscribe(sid, "_F."+sid, func(m *message) {
		if m.status != 0 {
			if m.status != 100 && l.calls[k.token] == k {
				l.finish(k, m)
			}
			return
		}
		c.delivered(consumer, asked, m)
		if got++; got == n && l.calls[k.token] == k {
			l.finish(k, m)
		}
	})
	body := fmt.Sprintf(`{"batch":%d,"no_wait":true}`, n)
	if wait > 0 {
		body = fmt.Sprintf(`{"batch":%d,"expires":%d}`, n, wait*1_000_000)
	}
	c.out = wire.AppendPub(c.out, &wire.Msg{
		Subject: []byte("$JS.API.CONSUMER.MSG.NEXT." + stream + "." + spec.Name), Reply: []byte("_F." + sid), Payload: []byte(body),
	})
	c.flush()
	l.world.After(l.world.Now()+wait*1_000_000+answerMax, uint64(c.index), timerCall|k.token)
}

// delivered writes down a delivery and answers it.
func (c *client) delivered(consumer int, asked int64, m *message) {
	l := c.load
	meta, ok := parseReply(m.reply)
	if !ok {
		return
	}
	l.Deliveries = append(l.Deliveries, Delivery{
		At: l.world.Now(), Asked: asked, Consumer: consumer, StreamSeq: meta.streamSeq, ConsumerSeq: meta.consumerSeq,
		Count: meta.count, Pending: meta.pending, Time: meta.time, Value: valueOf(m.payload), Subject: string(m.subject),
		Boot: l.world.Boots(),
	})
	l.trace.Add(trace.Deliver, uint64(c.index), meta.streamSeq, nil)
	index := len(l.Deliveries) - 1
	reply := string(m.reply)
	spec := &l.plan.Consumers[consumer]
	roll := l.world.Key().Below(1000, "answer", uint64(consumer), meta.streamSeq, meta.count)
	switch {
	case l.steady:
		c.answer(response{delivery: index, kind: Acked, reply: reply, body: "+ACK", confirm: true})
	case roll < spec.VanishPerMille:
		if roll%3 == 0 {
			c.answer(response{delivery: index, kind: Progressed, reply: reply, body: "+WPI", confirm: true, wait: spec.AckWaitMillis * 1_000_000})
		}
	case roll < spec.VanishPerMille+spec.NakPerMille:
		r := response{delivery: index, kind: Nacked, reply: reply, body: "-NAK", confirm: roll%3 == 0}
		if roll%2 == 0 {
			r.wait = int64(1+roll%20) * 20_000_000
			r.body = fmt.Sprintf(`-NAK {"delay":%d}`, r.wait)
		}
		c.answer(r)
	case roll < spec.VanishPerMille+spec.NakPerMille+spec.TermPerMille:
		c.answer(response{delivery: index, kind: Ended, reply: reply, body: "+TERM", confirm: roll%3 == 0})
	default:
		c.answer(response{delivery: index, kind: Acked, reply: reply, body: "+ACK", confirm: roll%2 == 0})
	}
}

// response is how a client answers a delivery.
type response struct {
	delivery    int // its index
	kind        AckKind
	reply, body string
	confirm     bool // ask for a confirmation
	wait        int64
}

// answer answers a delivery, waiting for the confirmation in the background.
func (c *client) answer(r response) {
	l := c.load
	at := len(l.Acks)
	l.Acks = append(l.Acks, Ack{
		Kind: r.kind, Consumer: l.Deliveries[r.delivery].Consumer, Delivery: r.delivery, Call: l.world.Now(), Return: history.Never,
		WaitNanos: r.wait,
	})
	if !r.confirm {
		c.out = wire.AppendPub(c.out, &wire.Msg{Subject: []byte(r.reply), Payload: []byte(r.body)})
		return
	}
	c.request(request{subject: r.reply, body: []byte(r.body)}, func(m *message) {
		if m != nil && m.status == 0 {
			l.Acks[at].Return = l.world.Now()
		}
	})
}

// watch creates an ordered push consumer and follows it until the connection ends.
func (c *client) watch(op *plan.Op) {
	l := c.load
	stream := &l.plan.Streams[op.Stream]
	w := &Watch{Stream: op.Stream, Filter: stream.Prefix + ".>", Call: l.world.Now()}
	if op.Key >= 0 {
		w.Filter = stream.Subject(op.Key)
	}
	l.tokens++
	w.All = l.world.Key().Chance(500, "watch", uint64(op.AtMillis), uint64(c.index))
	policy := "last_per_subject"
	if w.All {
		policy = "all"
	}
	name := fmt.Sprintf("w%d", l.tokens)
	sid := name
	c.subscribe(sid, "_W."+name, func(m *message) {
		c.watched(w, m)
		if w.Ended != 0 {
			c.unsubscribe(sid)
		}
	})
	body := fmt.Sprintf(`{"stream_name":%q,"config":{"name":%q,"deliver_subject":%q,"deliver_policy":%q,"ack_policy":"none",`+
		`"max_deliver":1,"ack_wait":79200000000000,"flow_control":true,"idle_heartbeat":5000000000,"mem_storage":true,`+
		`"num_replicas":1,"replay_policy":"instant","filter_subject":%q}}`, stream.Name, name, "_W."+name, policy, w.Filter)
	c.watches = append(c.watches, w)
	ask := request{subject: "$JS.API.CONSUMER.CREATE." + stream.Name + "." + name + "." + w.Filter, body: []byte(body)}
	c.request(ask, func(m *message) {
		defer c.finished()
		var answer struct {
			Error   *apiError `json:"error"`
			Pending uint64    `json:"num_pending"`
		}
		if m == nil || m.status != 0 || json.Unmarshal(m.payload, &answer) != nil || answer.Error != nil {
			c.unsubscribe(sid)
			return
		}
		w.Created, w.Initial, w.heard = l.world.Now(), answer.Pending, l.world.Now()
		l.Watches = append(l.Watches, w)
		c.listen(w)
	})
}

// silentMax is how long a watch may bring nothing, not even a heartbeat, before its client gives it up.
const silentMax = 15 * second

// listen gives a watch up when it has been silent for too long, as clients do.
func (c *client) listen(w *Watch) {
	l := c.load
	if l.world.Machines() == 1 {
		return
	}
	l.tokens++
	k := &call{client: c, token: l.tokens, delay: true}
	k.done = func(*message) {
		switch {
		case w.Ended != 0:
		case l.world.Now()-w.heard >= silentMax:
			c.giveUp(w)
		default:
			c.listen(w)
		}
	}
	l.calls[k.token] = k
	l.world.After(w.heard+silentMax, uint64(c.index), timerCall|k.token)
}

// giveUp ends a watch that has missed something. A client begins a new one then; here others do.
func (c *client) giveUp(w *Watch) {
	w.Ended = c.load.world.Now()
	if i := slices.Index(c.watches, w); i >= 0 {
		c.watches = slices.Delete(c.watches, i, i+1)
	}
}

// gap says that a delivery or a heartbeat with the number is not what the watch has to bring next: between the servers of
// a cluster messages may be lost, and the client of an ordered consumer begins anew then.
func (c *client) gap(w *Watch, number uint64, heartbeat bool) bool {
	want := uint64(1)
	if n := len(w.Seen); n > 0 {
		want = w.Seen[n-1].ConsumerSeq + 1
	}
	if heartbeat {
		number++
	}
	return c.load.world.Machines() > 1 && number != want
}

// watched writes down what a watch brings and answers flow control.
func (c *client) watched(w *Watch, m *message) {
	w.heard = c.load.world.Now()
	if w.Ended != 0 {
		return
	}
	if m.status == 100 {
		last, err := strconv.ParseUint(field(m.header, "Nats-Last-Consumer"), 10, 64)
		if err == nil && c.gap(w, last, true) {
			c.giveUp(w)
			return
		}
		reply := m.reply
		if stalled := field(m.header, "Nats-Consumer-Stalled"); stalled != "" {
			reply = []byte(stalled)
		}
		if len(reply) > 0 {
			c.out = wire.AppendPub(c.out, &wire.Msg{Subject: slices.Clone(reply)})
		}
		return
	}
	meta, ok := parseReply(m.reply)
	if !ok {
		return
	}
	if c.gap(w, meta.consumerSeq, false) {
		c.giveUp(w)
		return
	}
	w.Seen = append(w.Seen, Delivery{
		At: c.load.world.Now(), StreamSeq: meta.streamSeq, ConsumerSeq: meta.consumerSeq, Count: meta.count,
		Pending: meta.pending, Time: meta.time, Value: valueOf(m.payload), Subject: string(m.subject), Boot: c.load.world.Boots(),
	})
	c.load.trace.Add(trace.Deliver, uint64(c.index), meta.streamSeq, nil)
}
