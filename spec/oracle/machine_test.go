package oracle_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/stream"
	"weir/spec/oracle"
)

func TestMain(m *testing.M) {
	// A failing run is printed whole; files of it would only lie about. -rapid.checks asks for more or fewer runs.
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.checks": "2000"} { // order-free: flags
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}

// machineRun drives a state machine and the oracle with the same commands. It keeps what storage would keep: message
// bodies, the sections of the last checkpoint, the log since.
type machineRun struct {
	t      *rapid.T
	config *jsapi.StreamConfig
	// first is the configuration at birth.
	first *jsapi.StreamConfig
	// plant are the faults of the machine.
	plant   stream.Plant
	version uint64
	machine *stream.Machine
	oracle  *oracle.Stream
	now     int64
	index   uint64

	bodies   map[uint64]string
	sections map[uint64][]byte
	log      [][]byte
	ids      map[string]uint64
	nextID   uint64
	handoffs []delivered
	trace    []string

	// batch gathers the commands of the next entry, expect what each has to answer.
	batch  []command.Command
	expect []expectation
}

// delivered remembers a handoff for later acknowledgements.
type delivered struct {
	name                  string
	seq, cseq, deliveries uint64
}

// expectation says what the effects of one command have to say, in the form that describe gives them.
type expectation struct {
	what, want string
}

var limits = jsapi.Limits{Account: jsapi.Unlimited()}

func newMachineRun(t *rapid.T, plant stream.Plant) *machineRun {
	r := &machineRun{
		t: t, plant: plant, now: 1_700_000_000_000_000_000, bodies: map[uint64]string{}, sections: map[uint64][]byte{},
		ids: map[string]uint64{}, nextID: 1, version: 1,
	}
	r.config = drawConfig(t)
	if err := r.config.Normalize(&limits, false); err != nil {
		t.Fatalf("config %+v: %v", r.config, err)
	}
	r.first = r.config
	r.machine = r.birth()
	r.oracle = oracle.New(r.config)
	r.trace = append(r.trace, brief(r.config))
	return r
}

func (r *machineRun) birth() *stream.Machine {
	return stream.New(stream.Options{
		Account: "A", Name: "S", Config: r.first, ConfigVersion: 1, Created: 1, Incarnation: 7, Plant: r.plant,
	})
}

// do adds a command to the batch. The oracle has carried it out already, with the answer want.
func (r *machineRun) do(c command.Command, what, want string) {
	r.batch = append(r.batch, c)
	r.expect = append(r.expect, expectation{what, want})
	r.trace = append(r.trace, fmt.Sprintf("%d: %s -> %s", r.now%1_000_000_000_000, what, want))
}

// flush applies the batch and compares answers, bodies and state.
func (r *machineRun) flush() {
	if len(r.batch) == 0 {
		return
	}
	entry := command.AppendHeader(nil, r.now, r.index)
	for i := range r.batch {
		entry = command.Append(entry, &r.batch[i])
	}
	before := map[uint64]bool{}
	for _, s := range r.machine.Consumers() {
		before[s.ID()] = r.machine.Deliverable(s.ID()).Any()
	}
	var out effect.List
	r.index++
	r.machine.Apply(r.index, entry, &out)
	r.log = append(r.log, entry)
	r.store(out.Effects)
	for i, e := range r.expect {
		r.compare(e.what, describe(out.Effects, int32(i), r.batch[i].Kind), e.want)
	}
	r.batch, r.expect = nil, nil
	r.compareExceeded(out.Effects)
	r.compareState()
	for _, s := range r.machine.Consumers() {
		if was, known := before[s.ID()]; known && !was && r.machine.Deliverable(s.ID()).Any() {
			woken := slices.ContainsFunc(out.Effects, func(e effect.Effect) bool {
				return e.Kind == effect.Wake && e.Consumer == s.ID()
			})
			if !woken {
				r.fail("consumer %s has something to deliver and was not woken", s.Name())
			}
		}
	}
}

func (r *machineRun) fail(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(r.trace, "\n"))
}

func (r *machineRun) compare(what, got, want string) {
	r.t.Helper()
	if got != want {
		r.fail("%s\nmachine: %s\noracle:  %s", what, got, want)
	}
}

// describe prints the answer to one command.
func describe(effects []effect.Effect, ordinal int32, kind command.Kind) string {
	var b strings.Builder
	results := 0
	for _, e := range effects {
		if e.Cmd != ordinal {
			continue
		}
		switch {
		case e.Kind == effect.Result && e.Err != nil:
			results++
			fmt.Fprintf(&b, "error %d %q ", e.Err.ErrCode, e.Err.Description)
		case e.Kind == effect.Result && kind == command.Publish:
			results++
			fmt.Fprintf(&b, "seq %d duplicate %v ", e.Seq, e.Flag)
		case e.Kind == effect.Result && kind == command.Purge:
			results++
			fmt.Fprintf(&b, "purged %d ", e.N)
		case e.Kind == effect.Result && (kind == command.Ack || kind == command.Term):
			results++
			fmt.Fprintf(&b, "answered %v ", e.Flag)
		case e.Kind == effect.Result:
			results++
		case e.Kind == effect.Handoff:
			fmt.Fprintf(&b, "%d/%d x%d pending %d, ", e.Seq, e.ConsumerSeq, e.Deliveries, e.N)
		case e.Kind == effect.Delivered:
			fmt.Fprintf(&b, "%d delivered, stop %d ", e.N, e.Stop)
		}
	}
	if wanted := 1; results != wanted && kind != command.Tick {
		fmt.Fprintf(&b, "%d results", results)
	}
	return strings.TrimSpace(b.String())
}

// store carries out storage effects.
func (r *machineRun) store(effects []effect.Effect) {
	for _, e := range effects {
		switch e.Kind {
		case effect.Store:
			if _, there := r.bodies[e.Seq]; there {
				r.fail("message %d is stored twice", e.Seq)
			}
			r.bodies[e.Seq] = fmt.Sprintf("%s %q %q", e.Subject, e.Header, e.Payload)
		case effect.Forget:
			for seq := range r.bodies { // order-free: each is judged on its own
				if seq >= e.Seq && seq <= e.N {
					delete(r.bodies, seq)
				}
			}
		}
	}
}

// compareExceeded compares the reports of messages that reached max_deliver.
func (r *machineRun) compareExceeded(effects []effect.Effect) {
	got := map[string][]uint64{}
	for _, e := range effects {
		if e.Kind == effect.MaxDeliveries {
			name := r.nameOf(e.Consumer)
			got[name] = append(got[name], e.Seq)
		}
	}
	for _, c := range r.oracle.Consumers {
		want := slices.Sorted(slices.Values(c.Exceeded))
		c.Exceeded = nil
		r.compare("exceeded of "+c.Name, fmt.Sprint(slices.Sorted(slices.Values(got[c.Name]))), fmt.Sprint(want))
	}
}

func (r *machineRun) nameOf(id uint64) string {
	for name, known := range r.ids { // order-free: ids are unique
		if known == id {
			return name
		}
	}
	return ""
}

// compareState compares everything that can be asked for.
func (r *machineRun) compareState() {
	m, o := r.machine, r.oracle
	s := m.State()
	counts, _ := m.SubjectCounts(">", 0, 1000)
	perSubject := map[string]uint64{}
	for _, c := range counts {
		perSubject[c.Subject] = c.Msgs
	}
	var deleted []uint64
	if len(o.Messages) > 0 {
		deleted = o.Deleted()
	}
	first := int64(0)
	if len(o.Messages) > 0 {
		first = o.Messages[0].Time
	}
	r.compare("state",
		fmt.Sprint(s.Msgs, s.Bytes, s.FirstSeq, s.LastSeq, int64(s.FirstTime), int64(s.LastTime), s.NumSubjects, s.NumDeleted, perSubject, m.Deleted(1000)),
		fmt.Sprint(len(o.Messages), o.Bytes(), o.First, o.Last, first, o.LastTime, len(o.PerSubject("")), len(deleted), o.PerSubject(""), deleted))
	if has := m.Copied(); has.Incarnation != o.Copied.Incarnation || has.Through != o.Copied.Through {
		r.fail("copied %+v, oracle has %+v", has, o.Copied)
	}
	bodies := map[uint64]string{}
	for _, msg := range o.Messages {
		bodies[msg.Seq] = fmt.Sprintf("%s %q %q", msg.Subject, msg.Header, msg.Payload)
	}
	if !maps.Equal(bodies, r.bodies) {
		r.fail("bodies\nstored: %v\noracle: %v", r.bodies, bodies)
	}
	if len(m.Consumers()) != len(o.Consumers) {
		r.fail("%d consumers, oracle has %d", len(m.Consumers()), len(o.Consumers))
	}
	for _, c := range o.Consumers {
		info, ok := m.ConsumerInfo(c.Name)
		if !ok {
			r.fail("consumer %s does not exist", c.Name)
		}
		d := m.Deliverable(r.ids[c.Name])
		r.compare("consumer "+c.Name,
			fmt.Sprint(info.Delivered.Consumer, info.Delivered.Stream, " floor ", info.AckFloor.Consumer, info.AckFloor.Stream,
				" acks ", info.NumAckPending, " redelivered ", info.NumRedelivered, " pending ", info.NumPending, d.Any()),
			fmt.Sprint(c.Delivered.Consumer, c.Delivered.Stream, " floor ", c.Floor.Consumer, c.Floor.Stream,
				" acks ", len(c.Pending), " redelivered ", c.NumRedelivered(), " pending ", c.NumPending(), c.Deliverable()))
	}
	if due := o.Deadline(); due != 0 && (m.Deadline() == 0 || m.Deadline() > due) {
		r.fail("deadline %d, oracle has %d", m.Deadline(), due)
	}
}

// checkpoint saves the sections that changed.
func (r *machineRun) checkpoint() {
	for _, id := range r.machine.DirtySections(nil) {
		data, exists := r.machine.AppendSection(nil, id)
		if exists {
			r.sections[id] = data
		} else {
			delete(r.sections, id)
		}
	}
	r.machine.MarkClean()
	r.log = nil
	ids := slices.Sorted(maps.Keys(r.sections))
	if whole := r.machine.Sections(nil); !slices.Equal(whole, ids) {
		r.fail("sections %x, saved were %x", whole, ids)
	}
	for _, id := range ids {
		if data, _ := r.machine.AppendSection(nil, id); !bytes.Equal(data, r.sections[id]) && !reencodes(id) {
			r.fail("section %x changed and was not dirty", id)
		}
	}
	r.trace = append(r.trace, "checkpoint")
}

// reencodes says that a section may encode differently without being dirty: rows of messages that are gone (kind 2), and
// the duplicate window (kind 5), whose bounds are in the head.
func reencodes(id uint64) bool { return id>>56 == 2 || id>>56 == 5 }

// restart recovers from the checkpoint and the log, and goes on with what came of that.
func (r *machineRun) restart() {
	m := r.birth()
	ids := slices.Sorted(maps.Keys(r.sections))
	for _, i := range rapid.Permutation(ids).Draw(r.t, "order") {
		if err := m.RestoreSection(i, r.sections[i]); err != nil {
			r.fail("restore: %v", err)
		}
	}
	if err := m.Restored(); err != nil {
		r.fail("restore: %v", err)
	}
	for i, entry := range r.log {
		var out effect.List
		m.Apply(r.index-uint64(len(r.log)-1-i), entry, &out)
	}
	r.compare("digest after restart", fmt.Sprint(m.Digest(), m.Applied()), fmt.Sprint(r.machine.Digest(), r.machine.Applied()))
	r.machine = m
	r.trace = append(r.trace, "restart")
	r.compareState()
}

func TestMachineAgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { runMachine(t, stream.Plant{}) })
}

func runMachine(t *rapid.T, plant stream.Plant) {
	r := newMachineRun(t, plant)
	for range rapid.IntRange(5, 60).Draw(t, "steps") {
		r.step()
	}
	r.flush()
}
