package meta

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/subject"
)

func limitsOf(account jsapi.AccountLimits) *jsapi.Limits { return &jsapi.Limits{Account: account} }

func normalised(t interface{ Fatalf(string, ...any) }, config jsapi.StreamConfig) *jsapi.StreamConfig {
	if err := config.Normalize(limitsOf(jsapi.Unlimited()), false); err != nil {
		t.Fatalf("normalize %q: %v", config.Name, err)
	}
	return &config
}

func apply(m *Machine, at int64, commands ...command.Command) []effect.Effect {
	batch := command.AppendHeader(nil, at, 1)
	for i := range commands {
		batch = command.Append(batch, &commands[i])
	}
	var out effect.List
	m.Apply(m.Applied()+1, batch, &out)
	return out.Effects
}

func result(t *testing.T, effects []effect.Effect) effect.Effect {
	t.Helper()
	last := effects[len(effects)-1]
	if last.Kind != effect.Result {
		t.Fatalf("the last effect is of kind %d, want a result", last.Kind)
	}
	return last
}

func TestCreateIsIdempotentAndRefusesAnotherConfig(t *testing.T) {
	m := New()
	limits := limitsOf(jsapi.Unlimited())
	config := normalised(t, jsapi.StreamConfig{Name: "S", Subjects: []string{"a.>"}})
	first := result(t, apply(m, 5, Create("A", config, limits)))
	if first.Err != nil || !first.Flag || first.Group != FirstGroup {
		t.Fatalf("first create: %+v", first)
	}
	again := result(t, apply(m, 6, Create("A", config, limits)))
	if again.Err != nil || again.Flag || again.Group != first.Group {
		t.Fatalf("second create: %+v", again)
	}
	other := normalised(t, jsapi.StreamConfig{Name: "S", Subjects: []string{"b"}})
	if r := result(t, apply(m, 7, Create("A", other, limits))); !jsapi.CodeStreamNameExist.Is(r.Err) {
		t.Fatalf("create with another configuration: %v", r.Err)
	}
	if s := m.Stream("A", "S"); s.Created != 5 || s.Version != 1 {
		t.Fatalf("refused creates changed the stream: %+v", s)
	}
}

func TestGroupIsNeverReused(t *testing.T) {
	m := New()
	config := normalised(t, jsapi.StreamConfig{Name: "S"})
	limits := limitsOf(jsapi.Unlimited())
	first := result(t, apply(m, 1, Create("A", config, limits))).Group
	apply(m, 2, Delete(m.Stream("A", "S")))
	second := result(t, apply(m, 3, Create("A", config, limits))).Group
	if second <= first {
		t.Fatalf("group %d follows group %d", second, first)
	}
	stale := command.Command{Kind: command.DeleteStream, Account: []byte("A"), Name: []byte("S"), Version: first}
	if r := result(t, apply(m, 4, stale)); !jsapi.CodeStreamNotFound.Is(r.Err) {
		t.Fatalf("delete of the former incarnation: %v", r.Err)
	}
}

func TestOverlapIsRefusedWithinAnAccountOnly(t *testing.T) {
	m := New()
	limits := limitsOf(jsapi.Unlimited())
	apply(m, 1, Create("A", normalised(t, jsapi.StreamConfig{Name: "S1", Subjects: []string{"a.*"}}), limits))
	overlapping := normalised(t, jsapi.StreamConfig{Name: "S2", Subjects: []string{"a.b"}})
	if r := result(t, apply(m, 2, Create("A", overlapping, limits))); !jsapi.CodeStreamSubjectOverlap.Is(r.Err) {
		t.Fatalf("overlap in the account: %v", r.Err)
	}
	if r := result(t, apply(m, 3, Create("B", overlapping, limits))); r.Err != nil {
		t.Fatalf("overlap with another account: %v", r.Err)
	}
}

func TestLimitsOfTheCommandCount(t *testing.T) {
	account := jsapi.Unlimited()
	account.MaxStreams, account.MaxStore = 2, 1000
	limits := limitsOf(account)
	m := New()
	config := func(name string, bytes int64) *jsapi.StreamConfig {
		return normalised(t, jsapi.StreamConfig{Name: name, MaxBytes: bytes})
	}
	steps := []struct {
		name string
		c    command.Command
		want jsapi.Code
	}{
		{"fits", Create("A", config("S1", 600), limits), 0},
		{"does not fit beside it", Create("A", config("S2", 600), limits), jsapi.CodeStorageResourcesExceeded},
		{"fits exactly", Create("A", config("S2", 400), limits), 0},
		{"one stream too many", Create("A", config("S3", 0), limits), jsapi.CodeMaximumStreamsLimit},
		{"update beyond the rest", Update("A", config("S2", 401), limits), jsapi.CodeStorageResourcesExceeded},
		{"update to less", Update("A", config("S1", 500), limits), 0},
		{"update into what that freed", Update("A", config("S2", 500), limits), 0},
	}
	for _, step := range steps {
		r := result(t, apply(m, 1, step.c))
		if got := r.Err; step.want == 0 && got != nil || step.want != 0 && !step.want.Is(got) {
			t.Fatalf("%s: got %v, want code %d", step.name, got, step.want)
		}
	}
}

// twin is the catalog as a plain map, with overlap found by comparing every pair.
type twin map[string]*jsapi.StreamConfig

func (w twin) overlaps(name string, config *jsapi.StreamConfig) bool {
	for other, theirs := range w { // order-free: any overlap is an overlap
		for _, a := range theirs.Subjects {
			for _, b := range config.Subjects {
				if other != name && subject.Overlaps(a, b) {
					return true
				}
			}
		}
	}
	return false
}

func TestRandomHistoryEqualsPlainMapAndSurvivesRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, plain := New(), twin{}
		limits := limitsOf(jsapi.Unlimited())
		subjects := rapid.SampledFrom([]string{"a", "b", "a.*", "a.b", "c.>", "c.d"})
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := fmt.Sprintf("S%d", rapid.IntRange(0, 4).Draw(t, "name"))
			config := normalised(t, jsapi.StreamConfig{
				Name: name, Subjects: []string{subjects.Draw(t, "subject")},
				MaxMsgs: int64(rapid.IntRange(1, 2).Draw(t, "max")),
			})
			existing := plain[name]
			var want jsapi.Code
			var c command.Command
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				c = Create("A", config, limits)
				switch {
				case existing != nil && !existing.Equal(config):
					want = jsapi.CodeStreamNameExist
				case existing == nil && plain.overlaps(name, config):
					want = jsapi.CodeStreamSubjectOverlap
				default:
					plain[name] = config
				}
			case 1:
				c = Update("A", config, limits)
				switch {
				case existing == nil:
					want = jsapi.CodeStreamNotFound
				case plain.overlaps(name, config):
					want = jsapi.CodeStreamSubjectOverlap
				default:
					plain[name] = config
				}
			case 2:
				c = command.Command{Kind: command.DeleteStream, Account: []byte("A"), Name: []byte(name)}
				if existing == nil {
					want = jsapi.CodeStreamNotFound
				}
				delete(plain, name)
			}
			effects := apply(m, int64(i), c)
			got := effects[len(effects)-1].Err
			if want == 0 && got != nil || want != 0 && !want.Is(got) {
				t.Fatalf("step %d on %s: got %v, want %d", i, name, got, want)
			}
		}
		compareWithTwin(t, m, plain)
		compareWithRestored(t, m)
	})
}

func compareWithTwin(t *rapid.T, m *Machine, plain twin) {
	streams := m.Streams("A")
	if len(streams) != len(plain) || len(m.Streams("")) != 0 || len(m.Streams("B")) != 0 {
		t.Fatalf("catalog holds %d streams, the map %d", len(streams), len(plain))
	}
	for i, s := range streams {
		if i > 0 && streams[i-1].Name >= s.Name {
			t.Fatalf("%q follows %q", s.Name, streams[i-1].Name)
		}
		if !s.Config.Equal(plain[s.Name]) || m.ByGroup(s.Group) != s || m.Stream("A", s.Name) != s {
			t.Fatalf("stream %q differs", s.Name)
		}
	}
}

func compareWithRestored(t *rapid.T, m *Machine) {
	again := New()
	for _, id := range m.DirtySections(nil) {
		data, ok := m.AppendSection(nil, id)
		if !ok {
			continue
		}
		if err := again.RestoreSection(id, data); err != nil {
			t.Fatalf("section %d: %v", id, err)
		}
	}
	if err := again.Restored(); err != nil {
		t.Fatalf("restored: %v", err)
	}
	if again.Digest() != m.Digest() || again.Applied() != m.Applied() {
		t.Fatalf("digest %x after restore, %x before", again.Digest(), m.Digest())
	}
	if dirty := again.DirtySections(nil); len(dirty) != 0 {
		t.Fatalf("a restored machine has dirty sections %v", dirty)
	}
}

func FuzzRestoreSection(f *testing.F) {
	m := New()
	apply(m, 1, Create("A", normalised(f, jsapi.StreamConfig{Name: "S"}), limitsOf(jsapi.Unlimited())))
	head, _ := m.AppendSection(nil, headSection)
	stream, _ := m.AppendSection(nil, FirstGroup)
	f.Add(uint64(0), head)
	f.Add(FirstGroup, stream)
	f.Fuzz(func(t *testing.T, id uint64, data []byte) {
		m := New()
		if m.RestoreSection(id, data) != nil {
			return
		}
		again, ok := m.AppendSection(nil, id)
		if !ok {
			t.Fatalf("section %d was restored and is not there", id)
		}
		if err := New().RestoreSection(id, again); err != nil {
			t.Fatalf("section %d cannot be read back: %v", id, err)
		}
	})
}
