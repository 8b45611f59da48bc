package workload

import (
	"cmp"
	"encoding/json"
	"slices"

	"weir/linearizability/history"
)

// retryAfter is how long the administrator waits before it repeats a request.
const retryAfter = second / 10

// ask sends a request of the administrator until it is answered, and gives the answer to done.
func (l *Workload) ask(r request, done func(m *message)) {
	c := l.admin()
	c.whenReady(func() {
		c.request(r, func(m *message) {
			if m == nil || m.status == 503 {
				l.later(func() { l.ask(r, done) })
				return
			}
			done(m)
		})
	})
}

// later runs f after retryAfter. It is a call without a request, whose time-out is what is wanted.
func (l *Workload) later(f func()) { l.at(l.world.Now()+retryAfter, f) }

// at runs f at a time.
func (l *Workload) at(time int64, f func()) {
	l.tokens++
	k := &call{client: l.admin(), token: l.tokens, delay: true, done: func(*message) { f() }}
	l.calls[k.token] = k
	l.world.After(max(time, l.world.Now()), uint64(k.client.index), timerCall|k.token)
}

// createStream creates the i-th stream of the plan and everything after it.
func (l *Workload) createStream(i int) {
	if i == len(l.plan.Streams) {
		l.createConsumer(0)
		return
	}
	s := &l.plan.Streams[i]
	l.ask(request{subject: "$JS.API.STREAM.CREATE." + s.Name, body: l.streamConfig(i, "")}, func(m *message) {
		if refused(m) && !l.world.Rotten() { // Damage is not mended by trying again.
			l.later(func() { l.createStream(i) })
			return
		}
		l.createStream(i + 1)
	})
}

func refused(m *message) bool {
	var answer struct {
		Error *apiError `json:"error"`
	}
	return json.Unmarshal(m.payload, &answer) != nil || answer.Error != nil
}

// streamConfig is the body of STREAM.CREATE and STREAM.UPDATE of the i-th stream.
func (l *Workload) streamConfig(i int, description string) []byte {
	s := &l.plan.Streams[i]
	config := map[string]any{
		"name": s.Name, "subjects": []string{s.Prefix + ".>"}, "storage": "file", "retention": "limits",
		"allow_direct": true, "num_replicas": l.replicas[i], "discard": "old",
		"max_msgs": -1, "max_bytes": -1, "max_msgs_per_subject": -1, "max_consumers": -1,
		"description": description,
	}
	if s.MaxMsgs > 0 {
		config["max_msgs"] = s.MaxMsgs
	}
	if s.MaxBytes > 0 {
		config["max_bytes"] = s.MaxBytes
	}
	if s.MaxMsgsPerSubject > 0 {
		config["max_msgs_per_subject"] = s.MaxMsgsPerSubject
	}
	if s.MaxAgeMillis > 0 {
		config["max_age"] = s.MaxAgeMillis * 1_000_000
	}
	if s.WindowMillis > 0 {
		config["duplicate_window"] = s.WindowMillis * 1_000_000
	}
	if s.KV {
		config["discard"], config["deny_delete"], config["allow_rollup_hdrs"] = "new", true, true
	}
	body, err := json.Marshal(config)
	if err != nil {
		panic("workload: a stream configuration cannot be encoded: " + err.Error())
	}
	return body
}

// createConsumer creates the i-th consumer of the plan and everything after it, then lets the clients begin.
func (l *Workload) createConsumer(i int) {
	if i == len(l.plan.Consumers) {
		l.ready = true
		l.startMirrors()
		for _, c := range l.clients[:l.plan.Clients] {
			l.world.After(l.world.Now(), uint64(c.index), timerNext)
		}
		return
	}
	spec := &l.plan.Consumers[i]
	stream := &l.plan.Streams[spec.Stream]
	config := map[string]any{
		"durable_name": spec.Name, "ack_policy": "explicit", "deliver_policy": "all", "replay_policy": "instant",
		"ack_wait": spec.AckWaitMillis * 1_000_000, "max_deliver": spec.MaxDeliver, "max_ack_pending": spec.MaxAckPending,
	}
	if spec.Key >= 0 {
		config["filter_subject"] = stream.Subject(spec.Key)
	}
	if len(spec.BackoffMillis) > 0 {
		var backoff []int64
		for _, ms := range spec.BackoffMillis {
			backoff = append(backoff, ms*1_000_000)
		}
		config["backoff"] = backoff
		delete(config, "ack_wait")
	}
	body, err := json.Marshal(map[string]any{"stream_name": stream.Name, "config": config})
	if err != nil {
		panic("workload: a consumer configuration cannot be encoded: " + err.Error())
	}
	l.ask(request{subject: "$JS.API.CONSUMER.DURABLE.CREATE." + stream.Name + "." + spec.Name, body: body}, func(m *message) {
		if refused(m) && !l.world.Rotten() {
			l.later(func() { l.createConsumer(i) })
			return
		}
		l.createConsumer(i + 1)
	})
}

// rottenDrainMax is how long the administrator pulls from a consumer of a damaged node before it gives up: the stream may
// rightly have stopped at a message that cannot be read.
const rottenDrainMax = 30 * second

// Drain lets the administrator take and acknowledge everything that the consumers still have to deliver. done is set
// when every consumer says that nothing is left, or that it cannot be reached for a reason that waiting does not mend.
func (l *Workload) Drain(done *bool) { l.drain(0, l.world.Now(), done) }

// drain drains the i-th consumer, begun at the given time, and everything after it.
func (l *Workload) drain(i int, begun int64, done *bool) {
	if i == len(l.plan.Consumers) {
		*done = true
		return
	}
	l.consumerInfo(i, func(state *ConsumerState) {
		if l.world.Rotten() && (state == nil || l.world.Now()-begun > rottenDrainMax) {
			l.Consumers[i] = nil
			l.drain(i+1, l.world.Now(), done)
			return
		}
		if state == nil {
			l.later(func() { l.drain(i, begun, done) })
			return
		}
		l.Consumers[i] = state
		if state.Pending == 0 && state.AckPending == 0 {
			l.drain(i+1, l.world.Now(), done)
			return
		}
		c := l.admin()
		c.whenReady(func() { c.fetch(i, 50, 300, func() { l.drain(i, begun, done) }) })
	})
}

// consumerInfo asks for the state of a consumer; state is nil when the server does not serve it.
func (l *Workload) consumerInfo(i int, done func(state *ConsumerState)) {
	call := l.world.Now()
	l.ask(request{subject: l.consumerInfoSubject(i)}, func(m *message) { done(l.consumerState(i, call, m)) })
}

func (l *Workload) consumerInfoSubject(i int) string {
	spec := &l.plan.Consumers[i]
	return "$JS.API.CONSUMER.INFO." + l.plan.Streams[spec.Stream].Name + "." + spec.Name
}

// consumerState reads CONSUMER.INFO; nil when it is an error or nothing.
func (l *Workload) consumerState(i int, call int64, m *message) *ConsumerState {
	var answer struct {
		Error       *apiError `json:"error"`
		Delivered   SeqPair   `json:"delivered"`
		AckFloor    SeqPair   `json:"ack_floor"`
		AckPending  uint64    `json:"num_ack_pending"`
		Redelivered uint64    `json:"num_redelivered"`
		Pending     uint64    `json:"num_pending"`
	}
	if m == nil || m.status != 0 || json.Unmarshal(m.payload, &answer) != nil || answer.Error != nil {
		return nil
	}
	l.States = append(l.States, ConsumerState{
		Consumer: i, Call: call, Return: l.world.Now(), Delivered: answer.Delivered, AckFloor: answer.AckFloor,
		AckPending: answer.AckPending, Redelivered: answer.Redelivered, Pending: answer.Pending,
	})
	state := l.States[len(l.States)-1]
	return &state
}

// ReadBack lets the administrator read everything that is stored. done is set when it has.
func (l *Workload) ReadBack(done *bool) { l.readBack(0, done) }

func (l *Workload) readBack(i int, done *bool) {
	if i == len(l.plan.Streams) {
		*done = true
		return
	}
	c := l.admin()
	c.whenReady(func() {
		c.info(i, func(state *streamState) {
			switch {
			case state.Down != "" && l.world.Rotten():
				l.Finals[i] = &Final{Down: state.Down}
				l.readBack(i+1, done)
			case state.Down != "":
				l.later(func() { l.readBack(i, done) })
			default:
				l.readAll(i, state, func() { l.readBack(i+1, done) })
			}
		})
	})
}

// readAll reads every sequence of a stream and the last message of every subject: all at once, or one after the other
// for the second judge, whose search suffers from operations that overlap.
func (l *Workload) readAll(stream int, state *streamState, done func()) {
	c := l.admin()
	final := &Final{At: l.world.Now(), First: state.First, Count: state.Messages}
	final.Last = state.Last
	spec := &l.plan.Streams[stream]
	var reads []func(done func())
	for seq := state.First; seq <= state.Last && seq > 0; seq++ {
		reads = append(reads, func(done func()) { l.readSeq(final, stream, seq, done) })
	}
	for key := range spec.Keys {
		reads = append(reads, func(done func()) { c.getLastOn(stream, spec.Subject(key), false, done) })
	}
	reads = append(reads, func(done func()) { c.getLastOn(stream, spec.Prefix+".>", spec.Keys%2 == 0, done) })
	finish := func() {
		slices.SortFunc(final.Messages, func(a, b history.Message) int { return cmp.Compare(a.Seq, b.Seq) })
		l.Finals[stream] = final
		done()
	}
	if l.plan.Porcupine {
		inTurn(reads, finish)
	} else {
		together(reads, finish)
	}
}

// readSeq reads one sequence for the read-back, until it is answered or its bytes may be damaged.
func (l *Workload) readSeq(final *Final, stream int, seq uint64, done func()) {
	l.admin().whenReady(func() {
		at := len(l.History.Records)
		l.admin().getSeq(stream, seq, func() {
			r := &l.History.Records[at]
			switch {
			case r.Outcome == history.Unknown && l.world.Rotten():
				final.Unread = append(final.Unread, seq)
			case r.Outcome == history.Unknown:
				l.later(func() { l.readSeq(final, stream, seq, done) })
				return
			case r.Seq != 0:
				final.Messages = append(final.Messages, history.Message{
					Seq: r.Seq, Subject: r.Subject, Value: r.Value, MsgID: r.MsgID, Time: r.Time,
				})
			}
			done()
		})
	})
}

// inTurn begins each step when the one before is done.
func inTurn(steps []func(done func()), finish func()) {
	if len(steps) == 0 {
		finish()
		return
	}
	steps[0](func() { inTurn(steps[1:], finish) })
}

// together begins all steps at once.
func together(steps []func(done func()), finish func()) {
	left := len(steps) + 1
	end := func() {
		if left--; left == 0 {
			finish()
		}
	}
	for _, step := range steps {
		step(end)
	}
	end()
}
