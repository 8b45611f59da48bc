package stream

import (
	"fmt"
	"runtime"
	"testing"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
)

const benchBatch = 100

// benchMachine returns a machine and a batch of publishes on the given number of subjects.
func benchMachine(subjects int, config jsapi.StreamConfig) (*Machine, func(n int) []byte) {
	config.Name, config.Subjects = "S", []string{"s.>"}
	m := New(Options{Account: "A", Name: "S", Config: &config, Incarnation: 1})
	payload := make([]byte, 128)
	var batch []byte
	next := 0
	return m, func(n int) []byte {
		batch = command.AppendHeader(batch[:0], int64(next)*1000, 0)
		for range n {
			batch = command.AppendPublish(batch, fmt.Appendf(nil, "s.%d", next%subjects), nil, payload)
			next++
		}
		return batch
	}
}

func unlimited() jsapi.StreamConfig {
	return jsapi.StreamConfig{MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1, MaxConsumers: -1}
}

func benchPublish(b *testing.B, subjects int, config jsapi.StreamConfig) {
	m, batch := benchMachine(subjects, config)
	var out effect.List
	b.ReportAllocs()
	for i := 0; i < b.N; i += benchBatch {
		b.StopTimer()
		entry := batch(benchBatch)
		out.Reset()
		b.StartTimer()
		m.Apply(m.Applied()+1, entry, &out)
	}
}

func BenchmarkPublishOneSubject(b *testing.B) { benchPublish(b, 1, unlimited()) }

func BenchmarkPublishThousandSubjects(b *testing.B) { benchPublish(b, 1000, unlimited()) }

func BenchmarkPublishMillionSubjectsHistoryOne(b *testing.B) {
	config := unlimited()
	config.MaxMsgsPerSubject = 1
	benchPublish(b, 1_000_000, config)
}

func BenchmarkPublishAtMaxMsgs(b *testing.B) {
	config := unlimited()
	config.MaxMsgs = 10_000
	benchPublish(b, 1, config)
}

// filled returns a machine with a million messages and its sections.
func filled(subjects int) (*Machine, []uint64, [][]byte) {
	m, batch := benchMachine(subjects, unlimited())
	var out effect.List
	for range 1_000_000 / benchBatch {
		out.Reset()
		m.Apply(m.Applied()+1, batch(benchBatch), &out)
	}
	ids := m.Sections(nil)
	data := make([][]byte, len(ids))
	for i, id := range ids {
		data[i], _ = m.AppendSection(nil, id)
	}
	return m, ids, data
}

func benchRestore(b *testing.B, subjects int) {
	_, ids, data := filled(subjects)
	b.ResetTimer()
	for range b.N {
		config := unlimited()
		m := New(Options{Account: "A", Name: "S", Config: &config, Incarnation: 1})
		for i, id := range ids {
			if err := m.RestoreSection(id, data[i]); err != nil {
				b.Fatal(err)
			}
		}
		if err := m.Restored(); err != nil {
			b.Fatal(err)
		}
	}
	total := 0
	for _, d := range data {
		total += len(d)
	}
	b.ReportMetric(float64(total)/1e6, "sectionbytes/msg")
}

func BenchmarkRestoreMillionOneSubject(b *testing.B) { benchRestore(b, 1) }

func BenchmarkRestoreMillionThousandSubjects(b *testing.B) { benchRestore(b, 1000) }

func BenchmarkRestoreMillionSubjects(b *testing.B) { benchRestore(b, 1_000_000) }

func benchMemory(b *testing.B, subjects int, bound float64) {
	for range b.N {
		before := heapBytes()
		m, _, _ := filled(subjects)
		per := float64(heapBytes()-before) / 1e6
		b.ReportMetric(per, "heapbytes/msg")
		if per > bound {
			b.Fatalf("%.1f bytes per message, the bound is %.1f", per, bound)
		}
		runtime.KeepAlive(m)
	}
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func BenchmarkMemoryOneSubject(b *testing.B) { benchMemory(b, 1, 35) }

func BenchmarkMemoryMillionSubjects(b *testing.B) { benchMemory(b, 1_000_000, 250) }

func putBenchConsumer(m *Machine, name string, filters ...string) {
	config := jsapi.ConsumerConfig{Durable: name, Name: name, AckPolicy: jsapi.AckExplicit, AckWait: 30e9, MaxDeliver: -1,
		MaxAckPending: 1000, FilterSubjects: filters}
	c := command.Command{Kind: command.PutConsumer, Name: []byte(name), Config: config.AppendJSON(nil)}
	m.Apply(m.Applied()+1, command.Append(command.AppendHeader(nil, 0, 0), &c), &effect.List{})
}

func BenchmarkPublishWithThreeConsumers(b *testing.B) {
	m, batch := benchMachine(100, unlimited())
	putBenchConsumer(m, "all")
	putBenchConsumer(m, "some", "s.1.>", "s.*")
	putBenchConsumer(m, "one", "s.7")
	var out effect.List
	b.ReportAllocs()
	for i := 0; i < b.N; i += benchBatch {
		b.StopTimer()
		entry := batch(benchBatch)
		out.Reset()
		b.StartTimer()
		m.Apply(m.Applied()+1, entry, &out)
	}
}

// BenchmarkDeliverAndAck hands out and acknowledges messages of a wildcard filter, a hundred at a time.
func BenchmarkDeliverAndAck(b *testing.B) {
	m, batch := benchMachine(10, unlimited())
	putBenchConsumer(m, "some", "s.1", "s.2", "s.3", "s.4", "s.5")
	var out effect.List
	for i := 0; i < 2*b.N; i += benchBatch {
		out.Reset()
		m.Apply(m.Applied()+1, batch(benchBatch), &out)
	}
	var entry []byte
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += benchBatch {
		out.Reset()
		deliver := command.Command{Kind: command.Deliver, Consumer: 1, Count: benchBatch}
		entry = command.Append(command.AppendHeader(entry[:0], 1, 0), &deliver)
		m.Apply(m.Applied()+1, entry, &out)
		entry = command.AppendHeader(entry[:0], 1, 0)
		for _, e := range out.Effects {
			if e.Kind == effect.Handoff {
				ack := command.Command{Kind: command.Ack, Consumer: 1, StreamSeq: e.Seq, ConsumerSeq: e.ConsumerSeq, Deliveries: 1}
				entry = command.Append(entry, &ack)
			}
		}
		out.Reset()
		m.Apply(m.Applied()+1, entry, &out)
	}
}

func BenchmarkDigest(b *testing.B) {
	m, batch := benchMachine(10, unlimited())
	putBenchConsumer(m, "all")
	m.Apply(m.Applied()+1, batch(benchBatch), &effect.List{})
	for range b.N {
		m.Digest()
	}
}

// BenchmarkCheckpointStep saves what a hundred publishes with removals of random old messages make dirty.
func BenchmarkCheckpointStep(b *testing.B) {
	config := unlimited()
	config.MaxMsgsPerSubject = 1
	m, batch := benchMachine(100_000, config)
	var out effect.List
	for range 2000 {
		out.Reset()
		m.Apply(m.Applied()+1, batch(benchBatch), &out)
	}
	var ids []uint64
	var data []byte
	b.ResetTimer()
	for range b.N {
		out.Reset()
		m.Apply(m.Applied()+1, batch(benchBatch), &out)
		ids = m.DirtySections(ids[:0])
		data = data[:0]
		for _, id := range ids {
			data, _ = m.AppendSection(data, id)
		}
		m.MarkClean()
	}
	b.ReportMetric(float64(len(data)), "bytes/step")
}
