package stream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/model/command"
	"weir/model/consumer"
	"weir/model/effect"
	"weir/model/header"
	"weir/model/jsapi"
)

// copyOf restores a machine from all sections of m.
func copyOf(t *testing.T, m *Machine, plant Plant) *Machine {
	t.Helper()
	o := Options{Account: m.account, Name: m.name, Config: m.config, Incarnation: m.incarnation, Plant: plant}
	restored := New(o)
	ids := m.Sections(nil)
	slices.Reverse(ids) // any order will do
	for _, id := range ids {
		data, exists := m.AppendSection(nil, id)
		if !exists {
			t.Fatalf("section %#x does not exist", id)
		}
		if err := restored.RestoreSection(id, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := restored.Restored(); err != nil {
		t.Fatal(err)
	}
	return restored
}

func TestLargeStreamWithHolesComesBack(t *testing.T) {
	config := unlimited()
	config.Name, config.Subjects, config.MaxMsgsPerSubject = "S", []string{"s.>"}, 3
	m := New(Options{Account: "A", Name: "S", Config: &config, Incarnation: 3})
	random := rand.New(rand.NewPCG(1, 2))
	var out effect.List
	time := int64(0)
	apply := func(c command.Command) {
		time += int64(random.IntN(1000))
		out.Reset()
		m.Apply(m.Applied()+1, command.Append(command.AppendHeader(nil, time, 0), &c), &out)
	}
	for range 200_000 {
		apply(command.Command{Kind: command.Publish, Subject: fmt.Appendf(nil, "s.%d", random.IntN(20_000)), Payload: []byte("x")})
		if random.IntN(10) == 0 {
			apply(command.Command{Kind: command.DeleteMsg, StreamSeq: 1 + random.Uint64N(m.log.last)})
		}
	}
	apply(command.Command{Kind: command.Purge, StreamSeq: 100_000})
	restored := copyOf(t, m, Plant{})
	if restored.Digest() != m.Digest() || restored.State().NumDeleted != m.State().NumDeleted {
		t.Fatalf("digest %#x, %d deleted; want %#x, %d", restored.Digest(), restored.State().NumDeleted, m.Digest(), m.State().NumDeleted)
	}
	for _, filter := range []string{"s.1", "s.*"} {
		if got, want := restored.lastOf(filter), m.lastOf(filter); got != want {
			t.Fatalf("last of %q is %d, want %d", filter, got, want)
		}
	}
	// From here on both must number new subjects alike.
	for i := range 2000 {
		c := command.Command{Kind: command.Publish, Subject: fmt.Appendf(nil, "s.new.%d", i)}
		batch := command.Append(command.AppendHeader(nil, time, 0), &c)
		m.Apply(m.Applied()+1, batch, &out)
		restored.Apply(restored.Applied()+1, batch, &out)
	}
	a, b := m.Sections(nil), restored.Sections(nil)
	if !slices.Equal(a, b) {
		t.Fatalf("sections differ: %d and %d", len(a), len(b))
	}
	for _, id := range a {
		x, _ := m.AppendSection(nil, id)
		y, _ := restored.AppendSection(nil, id)
		if id&^sectionChunkMask != rowSection && string(x) != string(y) {
			t.Fatalf("section %#x differs", id)
		}
	}
}

func TestRemovalsRewriteNoRows(t *testing.T) {
	config := unlimited()
	config.Name, config.Subjects = "S", []string{"s.>"}
	m := New(Options{Name: "S", Config: &config})
	var out effect.List
	for i := range 10_000 {
		m.Apply(m.Applied()+1, command.AppendPublish(command.AppendHeader(nil, 1, 0), fmt.Appendf(nil, "s.%d", i%10), nil, nil), &out)
	}
	m.MarkClean()
	for seq := uint64(3); seq < 10_000; seq += 7 {
		m.Apply(m.Applied()+1, command.Append(command.AppendHeader(nil, 1, 0), &command.Command{Kind: command.DeleteMsg, StreamSeq: seq}), &out)
	}
	if got := m.DirtySections(nil); !slices.Equal(got, []uint64{headSection, liveSection}) {
		t.Fatalf("dirty sections %#x", got)
	}
	m.MarkClean()
	m.MarkDirty([]uint64{liveSection | 7})
	if got := m.DirtySections(nil); !slices.Equal(got, []uint64{liveSection | 7}) {
		t.Fatalf("dirty sections %#x", got)
	}
}

func TestSectionsThatDoNotBelongTogetherAreRefused(t *testing.T) {
	m := New(Options{Name: "S", Config: dedupConfig(), Incarnation: 4})
	for i := range 3000 {
		publishID(m, int64(i), fmt.Sprint(i))
	}
	for _, missing := range m.Sections(nil) {
		restored := New(Options{Name: "S", Config: dedupConfig(), Incarnation: 4})
		for _, id := range m.Sections(nil) {
			if data, _ := m.AppendSection(nil, id); id != missing {
				if err := restored.RestoreSection(id, data); err != nil {
					t.Fatal(err)
				}
			}
		}
		if restored.Restored() == nil {
			t.Fatalf("a state without section %#x was accepted", missing)
		}
	}
	other := New(Options{Name: "S", Config: dedupConfig(), Incarnation: 5})
	head, _ := m.AppendSection(nil, headSection)
	if other.RestoreSection(headSection, head) == nil {
		t.Fatal("the head of another incarnation was accepted")
	}
}

func TestPlantsAreVisible(t *testing.T) {
	config := dedupConfig()
	config.MaxMsgsPerSubject = 2
	m := New(Options{Name: "S", Config: config})
	for i := range 3 {
		publishID(m, 1, fmt.Sprint(i))
	}
	if got := publishID(copyOf(t, m, Plant{}), 2, "2"); !got.Flag || got.Seq != 3 {
		t.Fatalf("without a plant: %+v", got)
	}
	if got := publishID(copyOf(t, m, Plant{LoseDedup: true}), 2, "2"); got.Flag || got.Seq != 4 {
		t.Fatalf("without its window: %+v", got)
	}
	loose := copyOf(t, m, Plant{LoosePerSubject: true})
	publishID(loose, 2, "4")
	if got := loose.State().Msgs; got != 3 {
		t.Fatalf("with a loose limit: %d messages", got)
	}
	twice := copyOf(t, m, Plant{ApplyTwice: true})
	twice.Apply(twice.Applied()+1, nil, &effect.List{})
	if got := publishID(twice, 2, ""); got.Seq != 5 {
		t.Fatalf("with an entry applied twice: %+v", got)
	}
	if got := publishID(twice, 2, ""); got.Seq != 6 {
		t.Fatalf("after the entry that was applied twice: %+v", got)
	}
}

func TestConsumersComeBack(t *testing.T) {
	config := dedupConfig()
	config.Subjects = []string{"a.>"}
	m := New(Options{Name: "S", Config: config})
	var out effect.List
	apply := func(c command.Command) {
		m.Apply(m.Applied()+1, command.Append(command.AppendHeader(nil, 5, 0), &c), &out)
	}
	for _, s := range []string{"a.1", "a.2", "a.3", "a.1"} {
		apply(command.Command{Kind: command.Publish, Subject: []byte(s)})
	}
	put := jsapi.ConsumerConfig{Durable: "c", Name: "c", AckPolicy: jsapi.AckExplicit, AckWait: time.Second, FilterSubject: "a.1"}
	apply(command.Command{Kind: command.PutConsumer, Name: []byte("c"), Config: put.AppendJSON(nil)})
	apply(command.Command{Kind: command.Deliver, Consumer: 1, Token: 1, Count: 1})
	put.FilterSubject = "a.2"
	apply(command.Command{Kind: command.PutConsumer, Name: []byte("c"), Config: put.AppendJSON(nil)})
	restored := copyOf(t, m, Plant{})
	for _, machine := range []*Machine{m, restored} {
		// Message 1 is pending although the filters no longer select it: its removal has to end that.
		delete := command.Append(command.AppendHeader(nil, 6, 0), &command.Command{Kind: command.DeleteMsg, StreamSeq: 1})
		machine.Apply(machine.Applied()+1, delete, &out)
		info, ok := machine.ConsumerInfo("c")
		if !ok || info.NumAckPending != 0 || info.NumPending != 1 || info.Delivered.Consumer != 1 {
			t.Fatalf("consumer after the removal: %+v", info)
		}
	}
	if m.Digest() != restored.Digest() {
		t.Fatal("digests differ")
	}
	var _ consumer.Log = restored.consumers.byID[0]
}

func FuzzRestoreSection(f *testing.F) {
	m := New(Options{Name: "S", Config: dedupConfig()})
	publishID(m, 1, "x")
	ids := m.Sections(nil)
	for _, id := range ids {
		data, _ := m.AppendSection(nil, id)
		f.Add(id, data)
	}
	f.Fuzz(func(t *testing.T, fuzzed uint64, data []byte) {
		restored := New(Options{Name: "S", Config: dedupConfig()})
		for _, id := range ids {
			content, _ := m.AppendSection(nil, id)
			if id == fuzzed {
				content = data
			}
			if restored.RestoreSection(id, content) != nil {
				return
			}
		}
		if !slices.Contains(ids, fuzzed) && restored.RestoreSection(fuzzed, data) != nil {
			return
		}
		if restored.Restored() == nil {
			publishID(restored, 2, header.MsgID)
		}
	})
}
