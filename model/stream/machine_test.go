package stream

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/header"
	"weir/model/jsapi"
	"weir/model/seqset"
	"weir/model/subject"
)

var (
	testSubjects = []string{"a.1", "a.2", "a.b.c", "b.1", "b"}
	testFilters  = []string{"a.*", "a.>", "*.1", ">", "b", "a.1", "c.none", "*"}
)

// world runs a machine and its twin side by side, and keeps what a node would: checkpoints and the log behind them.
type world struct {
	t       *rapid.T
	m       *Machine
	twin    twin
	version uint64
	index   uint64
	saved   map[uint64][]byte
	suffix  [][]byte
	results []effect.Effect
	effects []effect.Effect
	kept    map[uint64]bool
}

func options(config *jsapi.StreamConfig) Options {
	return Options{Account: "ACC", Name: "S", Config: config.Clone(), Created: 5, Incarnation: 9}
}

func drawConfig(t *rapid.T) jsapi.StreamConfig {
	c := jsapi.StreamConfig{Name: "S", Subjects: []string{"a.>", "b", "b.>"}, MaxConsumers: -1}
	limit := func(name string, values ...int64) int64 { return rapid.SampledFrom(values).Draw(t, name) }
	c.MaxMsgs = limit("max_msgs", -1, -1, 1, 5, 20)
	c.MaxBytes = limit("max_bytes", -1, -1, 60, 300, 1500)
	c.MaxMsgsPerSubject = limit("max_msgs_per_subject", -1, 1, 2, 5)
	c.MaxMsgSize = int32(limit("max_msg_size", -1, -1, -1, 150))
	c.MaxAge = time.Duration(limit("max_age", 0, 0, int64(time.Second), int64(time.Minute)))
	c.DuplicateWindow = time.Duration(limit("duplicate_window", 0, int64(time.Second), int64(time.Minute)))
	c.Discard = rapid.SampledFrom([]jsapi.DiscardPolicy{jsapi.DiscardOld, jsapi.DiscardNew}).Draw(t, "discard")
	c.Storage = rapid.SampledFrom([]jsapi.StorageType{jsapi.FileStorage, jsapi.MemoryStorage}).Draw(t, "storage")
	c.AllowRollup = rapid.Bool().Draw(t, "allow_rollup")
	c.DiscardNewPerSubject = c.Discard == jsapi.DiscardNew && c.MaxMsgsPerSubject > 0 && rapid.Bool().Draw(t, "discard_new_per_subject")
	c.DenyPurge = limit("deny_purge", 0, 0, 0, 0, 1) == 1
	c.DenyDelete = limit("deny_delete", 0, 0, 0, 1) == 1
	return c
}

func newWorld(t *rapid.T) *world {
	config := drawConfig(t)
	config.FirstSeq = rapid.SampledFrom([]uint64{0, 0, 1, 1000, 65530}).Draw(t, "first_seq")
	w := &world{t: t, m: New(options(&config)), saved: make(map[uint64][]byte), kept: make(map[uint64]bool)}
	w.twin = twin{config: config, ids: make(map[string]twinID), clock: 1}
	if config.FirstSeq > 0 {
		w.twin.first, w.twin.last = config.FirstSeq, config.FirstSeq-1
	}
	return w
}

// apply proposes commands as one entry and collects the results.
func (w *world) apply(commands ...command.Command) {
	batch := command.AppendHeader(nil, w.twin.clock, 7)
	for i := range commands {
		batch = command.Append(batch, &commands[i])
	}
	w.index++
	var out effect.List
	w.m.Apply(w.index, batch, &out)
	w.suffix = append(w.suffix, batch)
	w.effects = out.Effects
	w.results = w.results[:0]
	for _, e := range out.Effects {
		switch e.Kind {
		case effect.Result:
			w.results = append(w.results, e)
		case effect.Store:
			w.kept[e.Seq] = true
		case effect.Forget:
			for seq := e.Seq; seq <= e.N; seq++ {
				delete(w.kept, seq)
			}
		}
	}
	want := 0
	for i := range commands {
		if commands[i].Kind != command.Tick {
			want++
		}
	}
	if len(w.results) != want {
		w.t.Fatalf("%d results for %d commands", len(w.results), want)
	}
}

func text(err *jsapi.Error) string {
	if err == nil {
		return ""
	}
	return err.Description
}

func (w *world) drawPublish() (twinPublish, command.Command) {
	t := w.t
	maybe := func(name string, chance int, values ...string) string {
		if rapid.IntRange(0, chance).Draw(t, name+"?") > 0 {
			return ""
		}
		return rapid.SampledFrom(values).Draw(t, name)
	}
	p := twinPublish{
		subject: rapid.SampledFrom(testSubjects).Draw(t, "subject"),
		payload: rapid.IntRange(0, 100).Draw(t, "payload"),
		id:      maybe("id", 2, "x", "y", "z"),
		rollup:  maybe("rollup", 8, "sub", "ALL"),
	}
	known := fmt.Sprint(w.twin.lastOf(p.subject))
	p.expectSubject = maybe("expected subject seq", 5, known, known, "0", "3", "junk")
	p.expectLast = maybe("expected last", 9, fmt.Sprint(w.twin.last), "7")
	p.expectID = maybe("expected id", 12, "x", w.twin.lastID)
	p.filter = maybe("filter", 12, testFilters...)
	var hdr []byte
	for _, field := range [][2]string{
		{header.MsgID, p.id}, {header.Rollup, p.rollup}, {header.ExpectedLastSubjectSeq, p.expectSubject},
		{header.ExpectedLastSeq, p.expectLast}, {header.ExpectedLastMsgID, p.expectID},
		{header.ExpectedLastSubjectSeqSubject, p.filter}, {"Other", maybe("other", 3, "o")},
	} {
		if field[1] != "" {
			hdr = header.Append(hdr, field[0], field[1])
		}
	}
	p.header = len(hdr)
	return p, command.Command{Kind: command.Publish, Subject: []byte(p.subject), Header: hdr, Payload: make([]byte, p.payload)}
}

func (w *world) publish(t *rapid.T) {
	p, c := w.drawPublish()
	w.apply(c)
	seq, duplicate, refusal := w.twin.publish(p)
	r := w.results[0]
	if got := text(r.Err); got != refusal || r.Err == nil && (r.Seq != seq || r.Flag != duplicate) {
		t.Fatalf("publish %+v: sequence %d, duplicate %v, error %q; the twin says %d, %v, %q", p, r.Seq, r.Flag, got, seq, duplicate, refusal)
	}
}

func (w *world) purge(t *rapid.T) {
	filter := rapid.SampledFrom(append([]string{""}, testFilters...)).Draw(t, "filter")
	seq := rapid.SampledFrom([]uint64{0, 0, 1, w.twin.first, w.twin.first + 2, w.twin.last, w.twin.last + 1, w.twin.last + 70}).Draw(t, "seq")
	keep := rapid.SampledFrom([]uint64{0, 0, 0, 1, 3}).Draw(t, "keep")
	w.apply(command.Command{Kind: command.Purge, Text: []byte(filter), StreamSeq: seq, Keep: keep})
	count, refusal := w.twin.purge(filter, seq, keep)
	if r := w.results[0]; text(r.Err) != refusal || r.N != count {
		t.Fatalf("purge %q below %d keep %d: %d, %q; the twin says %d, %q", filter, seq, keep, r.N, text(r.Err), count, refusal)
	}
}

func (w *world) delete(t *rapid.T) {
	seq := rapid.Uint64Range(w.twin.first, w.twin.last+1).Draw(t, "seq")
	w.apply(command.Command{Kind: command.DeleteMsg, StreamSeq: seq})
	if got, want := text(w.results[0].Err), w.twin.delete(seq); got != want {
		t.Fatalf("delete %d: %q, the twin says %q", seq, got, want)
	}
}

func (w *world) update(t *rapid.T) {
	config := drawConfig(t)
	config.Storage = w.twin.config.Storage
	config.Sealed = rapid.IntRange(0, 9).Draw(t, "sealed") == 0
	config.Subjects = rapid.SampledFrom([][]string{config.Subjects, {"a.>", "b", "b.*"}, {"a.>"}, {">"}}).Draw(t, "subjects")
	w.version++
	w.apply(command.Command{Kind: command.PutStream, Version: w.version, Config: config.AppendJSON(nil)})
	maps.DeleteFunc(w.twin.ids, func(_ string, id twinID) bool {
		return w.twin.clock-id.time >= int64(w.twin.config.DuplicateWindow) || config.DuplicateWindow == 0
	})
	w.twin.config = config
	w.twin.enforce()
}

// pass lets time go by, and ticks when the machine asks for it.
func (w *world) pass(t *rapid.T) {
	w.twin.clock += rapid.SampledFrom([]int64{1, int64(100 * time.Millisecond), int64(time.Second), int64(30 * time.Second)}).Draw(t, "time")
	for at := w.m.Deadline(); at != 0 && at <= w.twin.clock; at = w.m.Deadline() {
		w.apply(command.Command{Kind: command.Tick})
		w.twin.tick()
	}
}

func (w *world) save() {
	for _, id := range w.m.DirtySections(nil) {
		if data, exists := w.m.AppendSection(nil, id); exists {
			w.saved[id] = data
		} else {
			delete(w.saved, id)
		}
	}
	w.m.MarkClean()
	w.suffix = nil
	ids := w.m.Sections(nil)
	if len(ids) != len(w.saved) {
		w.t.Fatalf("%d sections exist, %d are saved", len(ids), len(w.saved))
	}
	for _, id := range ids {
		if id&^sectionChunkMask == dedupSection {
			continue // what the ring has passed stays in the section until the chunk goes
		}
		if data, exists := w.m.AppendSection(nil, id); !exists || string(data) != string(w.saved[id]) {
			w.t.Fatalf("section %#x changed without being dirty", id)
		}
	}
}

// crash replaces the machine by one made of the saved sections and the log behind them.
func (w *world) crash() {
	restored := New(options(&w.twin.config))
	if len(w.saved) == 0 {
		return
	}
	for id, data := range w.saved {
		if err := restored.RestoreSection(id, data); err != nil {
			w.t.Fatalf("restore: %v", err)
		}
	}
	if err := restored.Restored(); err != nil {
		w.t.Fatalf("restored: %v", err)
	}
	for _, batch := range w.suffix {
		var out effect.List
		restored.Apply(restored.Applied()+1, batch, &out)
	}
	if restored.Digest() != w.m.Digest() {
		w.t.Fatalf("digest differs after a restart")
	}
	w.m = restored
	w.save()
}

// check compares every answer of the machine with that of the twin.
func (w *world) check(t *rapid.T) {
	state, want := w.m.State(), jsapi.StreamState{
		Msgs: uint64(len(w.twin.msgs)), Bytes: w.twin.bytes(), FirstSeq: w.twin.first, LastSeq: w.twin.last,
		LastTime: jsapi.Time(w.twin.lastTs), NumSubjects: len(w.twin.subjects()), Consumers: len(w.m.Consumers()),
	}
	var deleted []uint64
	if len(w.twin.msgs) > 0 {
		want.FirstTime = jsapi.Time(w.twin.msgs[0].time)
		at := 0
		for seq := w.twin.first; seq <= w.twin.last; seq++ {
			if at < len(w.twin.msgs) && w.twin.msgs[at].seq == seq {
				at++
			} else {
				deleted = append(deleted, seq)
			}
		}
		want.NumDeleted = len(deleted)
	}
	if diff := cmp.Diff(want, state); diff != "" {
		t.Fatalf("state (-twin +machine):\n%s", diff)
	}
	if diff := cmp.Diff(deleted, w.m.Deleted(1<<20)); diff != "" {
		t.Fatalf("deleted (-twin +machine):\n%s", diff)
	}
	for _, msg := range w.twin.msgs {
		meta, ok := w.m.Get(msg.seq)
		if want := (Meta{Seq: msg.seq, Time: msg.time, Subject: msg.subject, Size: msg.len}); !ok || meta != want {
			t.Fatalf("message %d is %+v, %v, the twin has %+v", msg.seq, meta, ok, want)
		}
		if !w.kept[msg.seq] {
			t.Fatalf("storage was not told to keep %d", msg.seq)
		}
	}
	if len(w.kept) != len(w.twin.msgs) {
		t.Fatalf("storage keeps %d messages, the twin has %d", len(w.kept), len(w.twin.msgs))
	}
	w.checkFilters(t)
	w.checkConsumers(t)
	w.checkClean(t)
	w.checkViews(t)
}

// checkClean holds the sections that do not count as changed against what was saved of them. Rows of messages that are
// gone, and ids that the duplicate window has left, may differ.
func (w *world) checkClean(t *rapid.T) {
	if len(w.saved) == 0 {
		return
	}
	dirty, present := w.m.DirtySections(nil), map[uint64]bool{}
	for _, id := range w.m.Sections(nil) {
		present[id] = true
		if kind := id &^ sectionChunkMask; kind == rowSection || kind == dedupSection || slices.Contains(dirty, id) {
			continue
		}
		if data, _ := w.m.AppendSection(nil, id); !slices.Equal(data, w.saved[id]) {
			t.Fatalf("section %#x differs from what was saved and does not count as changed", id)
		}
	}
	for id := range w.saved {
		if !present[id] && !slices.Contains(dirty, id) {
			t.Fatalf("section %#x is gone and does not count as changed", id)
		}
	}
}

// checkViews collects what the views of consumers should hold.
func (w *world) checkViews(t *rapid.T) {
	for key, v := range w.m.consumers.views.byKey {
		if v.kind != ownSet {
			continue
		}
		var want seqset.Set
		w.m.collect(v.filters, &want)
		seq, ok := want.First()
		for got, there := v.own.First(); ok || there; got, there = v.own.Next(got + 1) {
			if ok != there || got != seq {
				t.Fatalf("view %q holds %d (%v), a search finds %d (%v)", key, got, there, seq, ok)
			}
			seq, ok = want.Next(seq + 1)
		}
	}
}

func (w *world) checkFilters(t *rapid.T) {
	for _, filter := range testFilters {
		list := w.twin.matching(filter)
		last, ok := w.m.LastBySubject(filter)
		if last.Seq != w.twin.lastOf(filter) || ok != (len(list) > 0) {
			t.Fatalf("last of %q is %d, the twin has %d", filter, last.Seq, w.twin.lastOf(filter))
		}
		counts := make(map[string]uint64)
		for _, msg := range list {
			counts[msg.subject]++
		}
		got, total := w.m.SubjectCounts(filter, 0, 100)
		for _, c := range got {
			if counts[c.Subject] != c.Msgs {
				t.Fatalf("%q has %d messages, the twin has %d", c.Subject, c.Msgs, counts[c.Subject])
			}
		}
		if total != len(counts) || len(got) != total {
			t.Fatalf("%d subjects match %q, the twin has %d", total, filter, len(counts))
		}
		from := w.twin.first + uint64(len(w.twin.msgs))/2
		next, _ := w.m.NextBySubject(filter, from)
		i := slices.IndexFunc(list, func(msg twinMsg) bool { return msg.seq >= from })
		if i >= 0 && next.Seq != list[i].seq || i < 0 && next.Seq != 0 {
			t.Fatalf("next of %q from %d is %d", filter, from, next.Seq)
		}
		later := slices.DeleteFunc(slices.Clone(list), func(msg twinMsg) bool { return msg.seq < from })
		if got := w.m.CountFrom(filter, from); got != uint64(len(later)) {
			t.Fatalf("%d messages match %q from %d on, the twin has %d", got, filter, from, len(later))
		}
		var lasts []uint64
		for i, msg := range list {
			if !slices.ContainsFunc(list[i+1:], func(later twinMsg) bool { return later.subject == msg.subject }) {
				lasts = append(lasts, msg.seq)
			}
		}
		if seqs, ok := w.m.MultiLast([]string{filter, "a.1"}, 0, 100); filter == "a.*" && (!ok || !slices.Equal(seqs, lasts)) {
			t.Fatalf("last of each of %q: %v, the twin has %v", filter, seqs, lasts)
		}
	}
	for _, at := range []int64{0, w.twin.clock / 2, w.twin.clock, w.twin.clock + 1} {
		if got, want := w.m.SeqAtTime(at), w.twin.seqAt(at); got != want {
			t.Fatalf("sequence at %d is %d, the twin has %d", at, got, want)
		}
	}
}

// checkConsumers recounts what the consumers have to deliver.
func (w *world) checkConsumers(t *rapid.T) {
	for _, s := range w.m.Consumers() {
		if s.Config().DeliverPolicy == jsapi.DeliverLastPerSubject {
			continue
		}
		want := uint64(0)
		for _, msg := range w.twin.msgs {
			if msg.seq > s.Delivered().Stream && selects(s.Filters(), msg.subject) {
				want++
			}
		}
		if s.NumPending() != want {
			t.Fatalf("consumer %q with filters %v at %d has %d pending, a recount gives %d",
				s.Name(), s.Filters(), s.Delivered().Stream, s.NumPending(), want)
		}
	}
}

func selects(filters []string, text string) bool {
	return len(filters) == 0 || slices.ContainsFunc(filters, func(f string) bool { return subject.Matches(text, f) })
}

func (w *world) putConsumer(t *rapid.T) {
	name := rapid.SampledFrom([]string{"c1", "c2", "c3"}).Draw(t, "name")
	config := jsapi.ConsumerConfig{Durable: name, Name: name, AckPolicy: jsapi.AckExplicit, AckWait: 2 * time.Second,
		MaxDeliver: 3, MaxAckPending: rapid.SampledFrom([]int{3, 100}).Draw(t, "max_ack_pending")}
	if state := w.m.ConsumerByName(name); state != nil {
		config.DeliverPolicy = state.Config().DeliverPolicy // an update may not change it
	} else {
		config.DeliverPolicy = rapid.SampledFrom([]jsapi.DeliverPolicy{jsapi.DeliverAll, jsapi.DeliverNew, jsapi.DeliverLast,
			jsapi.DeliverLastPerSubject}).Draw(t, "policy")
	}
	config.FilterSubjects = rapid.SampledFrom([][]string{nil, {"a.*"}, {"a.1"}, {"a.>", "b"}, {"b", "b.*"}, {"*.1"}}).Draw(t, "filters")
	w.apply(command.Command{Kind: command.PutConsumer, Name: []byte(name), Config: config.AppendJSON(nil)})
}

func (w *world) useConsumer(t *rapid.T) {
	states := w.m.Consumers()
	if len(states) == 0 {
		return
	}
	s := rapid.SampledFrom(states).Draw(t, "consumer")
	delivery := command.Command{Consumer: s.ID(), StreamSeq: rapid.Uint64Range(w.twin.first, w.twin.last+1).Draw(t, "seq"),
		ConsumerSeq: rapid.Uint64Range(0, s.Delivered().Consumer+1).Draw(t, "consumer seq"), Deliveries: 1}
	switch rapid.IntRange(0, 6).Draw(t, "use") {
	case 0, 1, 2:
		w.apply(command.Command{Kind: command.Deliver, Consumer: s.ID(), Token: 5, Count: rapid.Uint64Range(1, 4).Draw(t, "count")})
		w.checkHandoffs(t, s.Filters())
	case 3, 4:
		delivery.Kind = command.Ack
		w.apply(delivery)
	case 5:
		delivery.Kind = command.Nak
		w.apply(delivery)
	default:
		w.apply(command.Command{Kind: command.DeleteConsumer, Name: []byte(s.Name())})
	}
}

func (w *world) checkHandoffs(t *rapid.T, filters []string) {
	for _, e := range w.effects {
		if e.Kind != effect.Handoff {
			continue
		}
		if meta, ok := w.m.Get(e.Seq); !ok || !selects(filters, meta.Subject) {
			t.Fatalf("message %d (%v, %q) was handed off to filters %v", e.Seq, ok, meta.Subject, filters)
		}
	}
}

func TestMachineAgreesWithTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		publish := w.publish
		t.Repeat(map[string]func(*rapid.T){
			"publish": publish, "publish2": publish, "publish3": publish, "publish4": publish,
			"purge":  w.purge,
			"delete": func(t *rapid.T) { w.delete(t) },
			"update": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
					w.update(t)
				}
			},
			"pass":        w.pass,
			"save":        func(*rapid.T) { w.save() },
			"crash":       func(*rapid.T) { w.crash() },
			"putConsumer": w.putConsumer,
			"useConsumer": w.useConsumer, "useConsumer2": w.useConsumer,
			"": w.check,
		})
	})
}

func TestRefusedPublishChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.apply()
		for range 30 {
			before, log := w.m.Digest(), w.m.log.live.Len()
			_, c := w.drawPublish()
			w.apply(c)
			if w.results[0].Err == nil {
				continue
			}
			// The digest covers the applied index: compare with what it would be without the refusal.
			w.m.applied--
			if w.m.Digest() != before || w.m.log.live.Len() != log {
				t.Fatalf("refusal %q changed the state", w.results[0].Err)
			}
			w.m.applied++
		}
	})
}

func TestSectionsOfDamagedInputAreRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range 20 {
			_, c := w.drawPublish()
			w.apply(c)
		}
		w.save()
		ids := slices.Sorted(func(yield func(uint64) bool) {
			for id := range w.saved {
				if !yield(id) {
					return
				}
			}
		})
		id := rapid.SampledFrom(ids).Draw(t, "section")
		data := slices.Clone(w.saved[id])
		if cut := rapid.IntRange(0, len(data)-1).Draw(t, "cut"); rapid.Bool().Draw(t, "truncate") {
			data = data[:cut]
		} else {
			data[cut] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		m := New(options(&w.twin.config))
		for _, other := range ids {
			content := w.saved[other]
			if other == id {
				content = data
			}
			if err := m.RestoreSection(other, content); err != nil {
				return
			}
		}
		if m.Restored() == nil && m.Digest() != w.m.Digest() {
			t.Fatalf("a damaged section %#x was accepted and the state differs", id)
		}
	})
}
