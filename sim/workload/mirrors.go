package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"weir/linearizability/history"
)

// MirrorFinal is the read-back of a mirror.
type MirrorFinal struct {
	// Last is its last sequence, Messages are what it holds, ascending.
	Last     uint64
	Messages []history.Message
	// Behind says that it did not get everything, and why: bytes of what it copies are damaged.
	Behind string
}

// startMirrors lets the administrator create the mirrors at their times, and ask their leaders to step down.
func (l *Workload) startMirrors() {
	for i := range l.plan.Rebirths {
		b := &Reborn{load: l, spec: &l.plan.Rebirths[i]}
		l.Rebirths = append(l.Rebirths, b)
		l.at(b.spec.AtMillis*1_000_000, b.begin)
	}
	for i := range l.plan.Mirrors {
		m := &l.plan.Mirrors[i]
		l.at(m.AtMillis*1_000_000, func() { l.createMirror(i) })
		for _, at := range m.StepMillis {
			l.at(at*1_000_000, func() {
				l.admin().whenReady(func() {
					l.admin().request(request{subject: "$JS.API.STREAM.LEADER.STEPDOWN." + m.Name}, func(*message) {})
				})
			})
		}
	}
}

func (l *Workload) createMirror(i int) {
	m := &l.plan.Mirrors[i]
	stream := &l.plan.Streams[m.Stream]
	copied := map[string]any{"name": stream.Name}
	if m.Key >= 0 {
		copied["filter_subject"] = stream.Subject(m.Key)
	}
	if m.StartSeq > 0 {
		copied["opt_start_seq"] = m.StartSeq
	}
	body, err := json.Marshal(map[string]any{
		"name": m.Name, "mirror": copied, "storage": "file", "allow_direct": true, "num_replicas": max(m.Replicas, 1),
	})
	if err != nil {
		panic("workload: a mirror's configuration cannot be encoded: " + err.Error())
	}
	l.ask(request{subject: "$JS.API.STREAM.CREATE." + m.Name, body: body}, func(answer *message) {
		if refused(answer) && !l.world.Rotten() {
			l.later(func() { l.createMirror(i) })
		}
	})
}

// ReadMirrors lets the administrator read everything that the mirrors hold, once they have what their streams have. done is
// set when it has.
func (l *Workload) ReadMirrors(done *bool) { l.readMirror(0, done) }

// mirrorState is what STREAM.INFO says of a mirror.
type mirrorState struct {
	Error  *apiError   `json:"error"`
	State  streamState `json:"state"`
	Mirror struct {
		Lag   uint64    `json:"lag"`
		Error *apiError `json:"error"`
	} `json:"mirror"`
}

func (l *Workload) readMirror(i int, done *bool) {
	if i == len(l.plan.Mirrors) {
		l.readReborn(0, done)
		return
	}
	again := func() { l.later(func() { l.readMirror(i, done) }) }
	next := func() { l.readMirror(i+1, done) }
	name := l.plan.Mirrors[i].Name
	l.ask(request{subject: "$JS.API.STREAM.INFO." + name}, func(m *message) {
		var info mirrorState
		if json.Unmarshal(m.payload, &info) != nil {
			again()
			return
		}
		final := &MirrorFinal{Last: info.State.Last}
		switch {
		case info.Error != nil && l.world.Rotten():
			next()
		case info.Error != nil:
			again()
		case info.State.Last >= l.wantedOfMirror(i):
			l.readMirrorAll(i, &info, final, next)
		case info.Mirror.Error != nil && l.world.Rotten():
			final.Behind = info.Mirror.Error.Description
			l.readMirrorAll(i, &info, final, next)
		default:
			again()
		}
	})
}

// wantedOfMirror is the last sequence that a mirror needs: that of the last message of its stream that it copies.
func (l *Workload) wantedOfMirror(i int) uint64 {
	m := &l.plan.Mirrors[i]
	final := l.Finals[m.Stream]
	if final == nil {
		return 0
	}
	for _, msg := range slices.Backward(final.Messages) {
		if m.Key < 0 || msg.Subject == l.plan.Streams[m.Stream].Subject(m.Key) {
			return msg.Seq
		}
	}
	return 0
}

// readMirrorAll reads every sequence of a mirror.
func (l *Workload) readMirrorAll(i int, info *mirrorState, final *MirrorFinal, done func()) {
	var reads []func(done func())
	for seq := max(info.State.First, 1); seq <= info.State.Last; seq++ {
		reads = append(reads, func(done func()) { l.readMirrorSeq(i, seq, final, done) })
	}
	together(reads, func() {
		slices.SortFunc(final.Messages, func(a, b history.Message) int { return cmp.Compare(a.Seq, b.Seq) })
		l.Mirrors[i] = final
		done()
	})
}

func (l *Workload) readMirrorSeq(i int, seq uint64, final *MirrorFinal, done func()) {
	ask := request{subject: "$JS.API.DIRECT.GET." + l.plan.Mirrors[i].Name, body: fmt.Appendf(nil, `{"seq":%d}`, seq)}
	l.ask(ask, func(m *message) {
		switch {
		case m.status == 404:
		case m.status != 0 && !l.world.Rotten():
			l.later(func() { l.readMirrorSeq(i, seq, final, done) })
			return
		case m.status != 0: // it can not be read
		default:
			msg := history.Message{
				Subject: field(m.header, "Nats-Subject"), Value: valueOf(m.payload), MsgID: field(m.header, "Nats-Msg-Id"),
			}
			msg.Seq, _ = strconv.ParseUint(field(m.header, "Nats-Sequence"), 10, 64)
			if at, err := time.Parse(time.RFC3339Nano, field(m.header, "Nats-Time-Stamp")); err == nil {
				msg.Time = at.UnixNano()
			}
			final.Messages = append(final.Messages, msg)
		}
		done()
	})
}
