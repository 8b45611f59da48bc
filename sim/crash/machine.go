package crash

import (
	"encoding/binary"
	"fmt"
	"slices"

	"weir/disk/checkpoint"
	"weir/disk/memfs"
	"weir/disk/msgstore"
	"weir/disk/wal"
)

// command is what a log entry of a group says. It is a pure function of the workload, the group and the index, so that
// the judge knows every entry without having seen it.
type command struct {
	// messages is how many messages the entry stores, with the next sequences.
	messages int
	// forget is how many of the oldest living messages, and skip which one of the others, the entry removes.
	forget int
	skip   uint64 // 0: none
	key    uint64
}

func commandAt(seed uint64, id wal.GroupID, index uint64) command {
	key := memfs.Hash(seed, "command", uint64(id), index)
	c := command{messages: 1 + int(key%3), key: key}
	switch memfs.Hash(key, "kind") % 6 {
	case 0:
		c.forget = 1 + int(key>>8%4)
	case 1:
		c.skip = 1 + key>>16%7
	case 2:
		c.messages = 0
		c.skip = 1 + key>>16%3
	}
	return c
}

// encode returns the data of the entry: enough of the key to recognise it, and filling.
func (c *command) encode() []byte {
	return append(binary.LittleEndian.AppendUint64(nil, c.key), make([]byte, c.key>>24%200)...)
}

// message returns the nth message that the command stores, which has the sequence.
func (c *command) message(n int, seq uint64) msgstore.Msg {
	key := memfs.Hash(c.key, "message", uint64(n))
	start := int(key >> 32 % (noiseBytes - payloadBytesMax))
	payload := noise[start : start+int(key%payloadBytesMax)]
	m := msgstore.Msg{Seq: seq, Time: int64(key >> 1), Subject: fmt.Appendf(nil, "s.%d", key%5), Payload: payload}
	if key%3 == 0 {
		m.Header = []byte("NATS/1.0\r\nk: v\r\n\r\n")
	}
	return m
}

const (
	payloadBytesMax = 700
	noiseBytes      = 8192
)

// noise is what payloads are cut from: the first half repeats itself, so that some payloads compress.
var noise = func() []byte {
	b := make([]byte, noiseBytes)
	for i := range b {
		b[i] = byte(memfs.Hash(1, "noise", uint64(max(i, noiseBytes/2)+i%7)))
	}
	return b
}()

// stored is a living message: its sequence and the entry that stored it.
type stored struct {
	seq, index uint64
	n          int
}

// machine is the state of one group: what a stream's state machine is in a server.
type machine struct {
	seed    uint64
	id      wal.GroupID
	applied uint64
	last    uint64 // newest sequence
	living  []stored
	dirty   []uint64 // sections that changed since the last checkpoint
}

// chunkMessages is how many sequences one section holds.
const chunkMessages = 8

// effects is what applying an entry asks of the message store.
type effects struct {
	store  []msgstore.Msg
	forget []uint64
}

// apply brings the machine to the next index and fills in the effects, unless they are nil.
func (m *machine) apply(index uint64, e *effects) {
	c := commandAt(m.seed, m.id, index)
	m.applied = index
	for n := range c.messages {
		m.last++
		m.living = append(m.living, stored{m.last, index, n})
		m.touch(m.last)
		if e != nil {
			e.store = append(e.store, c.message(n, m.last))
		}
	}
	for range min(c.forget, len(m.living)) {
		m.remove(0, e)
	}
	if n := uint64(len(m.living)); c.skip > 0 && n > 0 {
		m.remove(int(c.skip%n), e)
	}
}

func (m *machine) remove(i int, e *effects) {
	if e != nil {
		e.forget = append(e.forget, m.living[i].seq)
	}
	m.touch(m.living[i].seq)
	m.living = slices.Delete(m.living, i, i+1)
}

func (m *machine) touch(seq uint64) {
	if id := 1 + seq/chunkMessages; !slices.Contains(m.dirty, id) {
		m.dirty = append(m.dirty, id)
	}
}

// sections returns what changed since the last call.
func (m *machine) sections() (put []checkpoint.Section, gone []uint64) {
	put = append(put, checkpoint.Section{ID: 0, Data: binary.LittleEndian.AppendUint64(nil, m.last)})
	for _, id := range m.dirty {
		var data []byte
		for _, s := range m.living {
			if 1+s.seq/chunkMessages == id {
				data = binary.LittleEndian.AppendUint64(data, s.seq)
				data = binary.LittleEndian.AppendUint64(data, s.index)
				data = append(data, byte(s.n))
			}
		}
		if data == nil {
			gone = append(gone, id)
			continue
		}
		put = append(put, checkpoint.Section{ID: id, Data: data})
	}
	m.dirty = m.dirty[:0]
	return put, gone
}

// restore loads the machine's sections of a checkpoint; others are ignored.
func (m *machine) restore(state *checkpoint.State, below uint64) error {
	m.applied = state.Index
	for _, s := range state.Sections {
		switch {
		case s.ID >= below:
		case s.ID == 0:
			m.last = binary.LittleEndian.Uint64(s.Data)
		default:
			for p := s.Data; len(p) >= 17; p = p[17:] {
				m.living = append(m.living, stored{binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:]), int(p[16])})
			}
		}
	}
	if !slices.IsSortedFunc(m.living, func(a, b stored) int { return int(a.seq) - int(b.seq) }) {
		return fmt.Errorf("group %d: the sections of the checkpoint at index %d are out of order", m.id, state.Index)
	}
	return nil
}

// stateAt returns the machine after all entries up to the index, computed from nothing.
func stateAt(seed uint64, id wal.GroupID, index uint64) *machine {
	m := &machine{seed: seed, id: id}
	for i := uint64(1); i <= index; i++ {
		m.apply(i, nil)
	}
	return m
}
