package consumer

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"weir/model/effect"
	"weir/model/jsapi"
)

// pair runs a State and its naive twin side by side.
type pair struct {
	t     *rapid.T
	log   *fakeLog
	state *State
	twin  *naive
	list  effect.List
	batch Batch
}

var subjects = []string{"a", "b", "c.x", "c.y"}

func drawFilters(t *rapid.T) []string {
	return rapid.SampledFrom([][]string{nil, {"a"}, {"c.*"}, {"a", "c.x"}, {"b", "c.>"}}).Draw(t, "filters")
}

func drawLimits(t *rapid.T, c *jsapi.ConsumerConfig) {
	c.FilterSubjects = drawFilters(t)
	c.AckWait = time.Duration(rapid.SampledFrom([]int{5, 20}).Draw(t, "ack wait"))
	c.MaxDeliver = rapid.SampledFrom([]int{-1, 1, 2, 3}).Draw(t, "max deliver")
	c.MaxAckPending = rapid.SampledFrom([]int{-1, 1, 4}).Draw(t, "max ack pending")
	c.BackOff = rapid.SampledFrom([][]time.Duration{nil, {3, 9}, {30, 1}}).Draw(t, "backoff")
}

func drawConfig(t *rapid.T) *jsapi.ConsumerConfig {
	c := &jsapi.ConsumerConfig{Name: "C"}
	c.DeliverPolicy = jsapi.DeliverPolicy(rapid.IntRange(0, int(jsapi.DeliverLastPerSubject)).Draw(t, "deliver"))
	c.AckPolicy = rapid.SampledFrom([]jsapi.AckPolicy{jsapi.AckNone, jsapi.AckAll, jsapi.AckExplicit}).Draw(t, "ack")
	drawLimits(t, c)
	switch c.DeliverPolicy {
	case jsapi.DeliverByStartSequence:
		c.OptStartSeq = rapid.Uint64Range(1, 20).Draw(t, "start")
	case jsapi.DeliverByStartTime:
		at := jsapi.Time(rapid.Int64Range(0, 120).Draw(t, "start time"))
		c.OptStartTime = &at
	}
	return c
}

func (p *pair) store() {
	seq := p.log.store(rapid.SampledFrom(subjects).Draw(p.t, "subject"), p.batch.Time, rapid.IntRange(0, 40).Draw(p.t, "size"))
	if p.log.Matches(p.state.Filters(), seq) {
		p.state.Stored(&p.batch, seq)
	}
}

func (p *pair) remove(seq uint64) {
	matched := p.log.Matches(p.state.Filters(), seq)
	if p.log.find(seq) == nil {
		return
	}
	p.log.remove(seq)
	why := rapid.SampledFrom([]Removal{Deleted, Limited}).Draw(p.t, "why")
	p.state.Removed(&p.batch, seq, matched, why)
	p.twin.removed(seq, why)
}

func (p *pair) purge() {
	first := rapid.Uint64Range(1, p.log.last+1).Draw(p.t, "first")
	p.log.messages = slices.DeleteFunc(p.log.messages, func(m fakeMessage) bool { return m.seq < first })
	first = p.log.First()
	p.state.Purged(&p.batch, first)
	p.twin.purged(first)
}

func (p *pair) delivery() Delivery {
	d := Delivery{
		StreamSeq:   rapid.Uint64Range(0, p.log.last+2).Draw(p.t, "stream seq"),
		ConsumerSeq: rapid.Uint64Range(0, p.state.delivered.Consumer+2).Draw(p.t, "consumer seq"),
		Deliveries:  rapid.Uint64Range(0, 3).Draw(p.t, "deliveries"),
	}
	if n := len(p.twin.pending); n > 0 && rapid.Bool().Draw(p.t, "pending one") {
		e := p.twin.pending[rapid.IntRange(0, n-1).Draw(p.t, "entry")]
		d = Delivery{StreamSeq: e.seq, ConsumerSeq: p.state.delivered.Consumer, Deliveries: e.deliveries}
	}
	return d
}

func (p *pair) term() {
	d := p.delivery()
	live := p.twin.find(d.StreamSeq) >= 0
	p.state.Term(&p.batch, d, "why")
	flag := p.twin.settle(p.batch.Time, d)
	if live {
		p.twin.emit(effect.Effect{Kind: effect.Terminated, Consumer: 7, Seq: d.StreamSeq, ConsumerSeq: d.ConsumerSeq,
			Deliveries: d.Deliveries, Text: "why"})
	}
	p.twin.result(flag)
}

func (p *pair) reset() {
	seq := rapid.SampledFrom([]uint64{0, 0, 1, 3, 9, p.log.last + 2}).Draw(p.t, "reset")
	got, refused := p.state.Reset(&p.batch, seq)
	if want, ok := p.twin.reset(seq); ok != (refused == nil) || want != got {
		p.t.Fatalf("reset to %d: %d, %v, twin %d, %v", seq, got, refused, want, ok)
	}
}

func (p *pair) step() {
	b, now := &p.batch, p.batch.Time
	switch rapid.IntRange(0, 16).Draw(p.t, "op") {
	case 0, 1, 2, 3:
		p.store()
	case 4, 5, 6:
		req := Request{Token: 3, Count: rapid.Uint64Range(0, 6).Draw(p.t, "count")}
		req.MaxBytes = rapid.SampledFrom([]uint64{0, 0, 40, 120}).Draw(p.t, "max bytes")
		p.state.Deliver(b, req)
		p.twin.deliver(now, req)
	case 7, 8:
		d := p.delivery()
		p.state.Ack(b, d)
		p.twin.result(p.twin.settle(now, d))
	case 9:
		d, delay := p.delivery(), rapid.Int64Range(-1, 30).Draw(p.t, "delay")
		p.state.Nak(b, d, delay)
		p.twin.nak(now, d, delay)
	case 10:
		d := p.delivery()
		p.state.Progress(b, d)
		if i := p.twin.find(d.StreamSeq); i >= 0 && !p.twin.pending[i].queued {
			p.twin.pending[i].nacked = false
		}
		p.twin.progress(now, d)
	case 11:
		p.term()
	case 12:
		d := p.delivery()
		p.state.Release(b, d)
		p.twin.release(d)
	case 13:
		p.remove(rapid.Uint64Range(0, p.log.last).Draw(p.t, "victim"))
	case 14:
		if rapid.Bool().Draw(p.t, "purge") {
			p.purge()
		}
	case 15:
		next := *p.state.Config()
		drawLimits(p.t, &next)
		p.state.Update(b, &next)
		p.twin.update(&next)
	case 16:
		p.reset()
	}
	p.state.Tick(b)
	p.twin.tick(now)
}

// compare holds state and twin against each other, effects first.
func (p *pair) compare(before bool) {
	woke := false
	got := slices.DeleteFunc(slices.Clone(p.list.Effects), func(e effect.Effect) bool {
		woke = woke || e.Kind == effect.Wake
		return e.Kind == effect.Wake
	})
	if diff := cmp.Diff(p.twin.out, got, cmpopts.EquateEmpty()); diff != "" {
		p.t.Fatalf("effects (-twin +state):\n%s", diff)
	}
	if now := p.state.Deliverable(); !before && now && !woke {
		p.t.Fatalf("there is something to deliver that was not there before, and no Wake")
	}
	type view struct {
		Delivered, Floor Position
		NumPending       uint64
		NumAckPending    int
		Deliverable      bool
		Deadline         int64
	}
	s, n := p.state, p.twin
	got1 := view{s.Delivered(), s.AckFloor(), s.NumPending(), s.NumAckPending(), s.Deliverable(), 0}
	got1.Deadline, _ = s.Deadline()
	want := view{n.delivered, n.floor, n.numPending(), len(n.pending), n.deliverable(), 0}
	if i := n.nextDue(); i >= 0 {
		want.Deadline = n.pending[i].deadline
	}
	if diff := cmp.Diff(want, got1); diff != "" {
		p.t.Fatalf("state (-twin +state):\n%s", diff)
	}
}

// reload replaces the state by what its bytes restore.
func (p *pair) reload() {
	data := p.state.AppendState(nil)
	restored, err := RestoreState(data, p.log, p.state.options)
	if err != nil {
		p.t.Fatalf("restore: %v", err)
	}
	if restored.Digest() != p.state.Digest() {
		p.t.Fatalf("the restored state has another digest")
	}
	if again := restored.AppendState(nil); !bytes.Equal(again, data) {
		p.t.Fatalf("the restored state has other bytes:\n%x\n%x", data, again)
	}
	p.state = restored
}

func TestStateEqualsNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pair{t: t, log: &fakeLog{}}
		p.batch = Batch{Time: 100, Out: &p.list}
		for range rapid.IntRange(0, 12).Draw(t, "messages before") {
			p.log.store(rapid.SampledFrom(subjects).Draw(t, "subject"), p.batch.Time, 10)
			p.batch.Time++
		}
		config := drawConfig(t)
		p.state = New(Params{ID: 7, Name: "C", Config: config, Options: Options{Stream: "S"}}, p.log, p.batch.Time)
		p.twin = newNaive(config, p.log)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p.batch.Index++
			p.batch.Time += rapid.Int64Range(0, 6).Draw(t, "nanos")
			p.list.Reset()
			p.twin.out = nil
			before := p.state.Deliverable()
			p.step()
			p.compare(before)
			if rapid.IntRange(0, 9).Draw(t, "reload") == 0 {
				p.reload()
			}
		}
	})
}
