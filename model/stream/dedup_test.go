package stream

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/header"
	"weir/model/jsapi"
)

func TestDedupTableAgreesWithMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window = 1000
		table := newDedupTable(newDirtySet())
		naive := make(map[string]dedupEntry)
		now := int64(0)
		for seq := uint64(1); seq < 400; seq++ {
			now += rapid.SampledFrom([]int64{0, 1, 5, 5, 700}).Draw(t, "time")
			for range rapid.SampledFrom([]int{1, 1, 1, 300}).Draw(t, "burst") {
				id := fmt.Sprintf("id%d", (now*7+int64(seq))%997)
				entry := dedupEntry{key: keyOf([]byte(id)), seq: seq, time: now}
				old, known := naive[id]
				known = known && now-old.time < window
				got, found := table.find(entry.key, now, window)
				if found != known || found && got != old.seq {
					t.Fatalf("id %s at %d: found %v at %d, the map says %v at %d", id, now, found, got, known, old.seq)
				}
				if !known {
					table.insert(entry, window)
					naive[id] = entry
				}
				seq++
			}
			if rapid.IntRange(0, 5).Draw(t, "tick") == 0 {
				table.forget(now, window, ExpireMax)
			}
		}
		table.forget(now+window, window, DedupEntriesMax)
		if table.len() != 0 || len(table.index) != 0 || table.chunks != nil || table.sum != 0 {
			t.Fatalf("%d entries, %d keys, sum %#x are left of an expired table", table.len(), len(table.index), table.sum)
		}
	})
}

func publishID(m *Machine, time int64, id string) effect.Effect {
	batch := command.AppendPublish(command.AppendHeader(nil, time, 0), []byte("a"), header.Append(nil, header.MsgID, id), nil)
	var out effect.List
	m.Apply(m.Applied()+1, batch, &out)
	for _, e := range out.Effects {
		if e.Kind == effect.Result {
			return e
		}
	}
	panic("no result")
}

func dedupConfig() *jsapi.StreamConfig {
	config := unlimited()
	config.Name, config.Subjects, config.DuplicateWindow = "S", []string{"a"}, 100
	return &config
}

func TestFullDedupTableRefusesInsteadOfForgetting(t *testing.T) {
	m := New(Options{Name: "S", Config: dedupConfig()})
	publishID(m, 1, "x")
	// Stands for as many entries as the table takes.
	m.dedup.first -= DedupEntriesMax - 1
	if got := publishID(m, 2, "y"); !jsapi.CodeInsufficientResources.Is(got.Err) {
		t.Fatalf("a publish beyond the bound got %+v", got)
	}
	if got := publishID(m, 2, "x"); got.Err != nil || !got.Flag {
		t.Fatalf("a duplicate at the bound got %+v", got)
	}
}

func TestDuplicateIsTakenAgainExactlyAtTheEndOfTheWindow(t *testing.T) {
	m := New(Options{Name: "S", Config: dedupConfig()})
	publishID(m, 1000, "x")
	if got := publishID(m, 1099, "x"); !got.Flag || got.Seq != 1 {
		t.Fatalf("inside the window: %+v", got)
	}
	if got := publishID(m, 1100, "x"); got.Flag || got.Seq != 2 {
		t.Fatalf("at the end of the window: %+v", got)
	}
}

func TestIdleWindowAsksForOneTickAndGivesItsMemoryBack(t *testing.T) {
	m := New(Options{Name: "S", Config: dedupConfig()})
	for i := range 3000 {
		publishID(m, 1000, fmt.Sprint(i))
	}
	if got := m.Deadline(); got != 1100 {
		t.Fatalf("deadline %d", got)
	}
	var out effect.List
	m.Apply(m.Applied()+1, command.Append(command.AppendHeader(nil, 1100, 0), &command.Command{Kind: command.Tick}), &out)
	if m.Deadline() != 0 || m.dedup.len() != 0 {
		t.Fatalf("deadline %d, %d entries are left", m.Deadline(), m.dedup.len())
	}
}
