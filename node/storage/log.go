package storage

import (
	"errors"

	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/node/event"
)

// appendLog carries out consecutive operations on the log, as one append where that is possible, and completes them in
// order.
func (s *Storage) appendLog(ops []event.Op, done []event.Completion) []event.Completion {
	for len(ops) > 0 {
		if ops[0].Kind == event.Probe {
			s.logReserve.make()
			done = append(done, event.Completion{Ticket: ops[0].Ticket, Kind: event.Probe, Short: s.logReserve.spent})
			ops = ops[1:]
			continue
		}
		if ops[0].Resume {
			s.stalled = nil
		}
		var m merge
		n := 0
		for n < len(ops) && (n == 0 || !ops[n].Resume) && ops[n].Kind == event.Persist && m.add(ops[n].Writes, n == 0) {
			n++
		}
		err := s.stalled
		if err == nil {
			err = s.appendWithReserve(&m)
			if s.options.Plant.NoSpaceIsSuccess && errors.Is(err, vfs.ErrNoSpace) {
				err = nil
			}
			s.stalled = err
		}
		for i := range ops[:n] {
			done = append(done, event.Completion{Ticket: ops[i].Ticket, Kind: event.Persist, Err: err, Short: s.logReserve.spent})
		}
		ops = ops[n:]
	}
	return done
}

// MergedBytesMax bounds the data of operations that are appended together.
const MergedBytesMax = 16 << 20

// merge gathers writes for appends in each of which a group occurs once, as the log wants it.
type merge struct {
	writes []wal.Write
	at     map[wal.GroupID]int
	bytes  int
	single bool // writes is the caller's slice, which is not to be changed
}

// add takes the writes of one operation; false means that they do not go together with the ones before. The first
// operation is always taken.
func (m *merge) add(writes []wal.Write, first bool) bool {
	if first && distinct(writes) {
		m.writes, m.single = writes, true
		m.bytes = dataBytes(writes)
		return true
	}
	bytes := dataBytes(writes)
	if !first && m.bytes+bytes > MergedBytesMax {
		return false
	}
	m.own()
	for i := range writes {
		if !first && !m.fits(&writes[i]) {
			return false
		}
	}
	m.bytes += bytes
	for i := range writes {
		m.put(&writes[i])
	}
	return true
}

// own makes writes the merge's own and indexes it by group.
func (m *merge) own() {
	if m.at != nil {
		return
	}
	m.at = make(map[wal.GroupID]int)
	taken := m.writes
	m.writes = make([]wal.Write, 0, len(taken)+4)
	for i := range taken {
		m.put(&taken[i])
	}
	m.single = false
}

// fits reports whether the write can be joined with what the merge holds of its group.
func (m *merge) fits(w *wal.Write) bool {
	i, ok := m.at[w.Group]
	return !ok || joinable(&m.writes[i], w)
}

// joinable reports whether b can be appended in one write with a, which comes before it.
func joinable(a, b *wal.Write) bool {
	if a.Drop || b.Drop || b.Reset {
		return false
	}
	if len(a.Entries) == 0 || len(b.Entries) == 0 {
		return true
	}
	return b.Entries[0].Index == a.Entries[len(a.Entries)-1].Index+1
}

func (m *merge) put(w *wal.Write) {
	i, ok := m.at[w.Group]
	if !ok {
		m.at[w.Group] = len(m.writes)
		m.writes = append(m.writes, *w)
		return
	}
	joined := &m.writes[i]
	if !joinable(joined, w) {
		// Within one operation the order decides: what comes later gets an append of its own.
		m.at[w.Group] = len(m.writes)
		m.writes = append(m.writes, *w)
		return
	}
	if len(w.Entries) > 0 {
		joined.Entries = append(joined.Entries[:len(joined.Entries):len(joined.Entries)], w.Entries...)
	}
	if w.HasHardState {
		joined.HasHardState, joined.HardState = true, w.HardState
	}
	if w.Meta != nil {
		joined.Meta = w.Meta
	}
	joined.Compact = max(joined.Compact, w.Compact)
}

// append appends everything, starting a further append wherever a group comes a second time.
func (m *merge) append(log *wal.Log) error {
	if m.single || distinct(m.writes) {
		return log.Append(m.writes)
	}
	for len(m.writes) > 0 {
		n := 1
		for n < len(m.writes) && distinct(m.writes[:n+1]) {
			n++
		}
		if err := log.Append(m.writes[:n]); err != nil {
			return err
		}
		m.writes = m.writes[n:]
	}
	return nil
}

// distinctScanMax is the number of writes up to which pairs are compared.
const distinctScanMax = 16

// distinct reports whether every group occurs once.
func distinct(writes []wal.Write) bool {
	if len(writes) <= distinctScanMax {
		for i := range writes {
			for j := range writes[:i] {
				if writes[i].Group == writes[j].Group {
					return false
				}
			}
		}
		return true
	}
	seen := make(map[wal.GroupID]bool, len(writes))
	for i := range writes {
		if seen[writes[i].Group] {
			return false
		}
		seen[writes[i].Group] = true
	}
	return true
}

func dataBytes(writes []wal.Write) int {
	n := 0
	for i := range writes {
		for j := range writes[i].Entries {
			n += len(writes[i].Entries[j].Data)
		}
	}
	return n
}

// Sync makes the log durable in lazy mode.
func (s *Storage) Sync() error { return s.log.Sync() }

// IdleLog does a bounded piece of what keeps later appends fast and damage recognisable. The owner calls it when the
// log has nothing to do, not beside an append; it returns whether there is more to do.
func (s *Storage) IdleLog() (more bool, err error) {
	more, err = s.log.PrepareNext(IdleBytes)
	if err != nil || more {
		return more, err
	}
	return false, s.log.SaveMark()
}

// IdleBytes is how much of the next segment one call of IdleLog prepares.
const IdleBytes = 1 << 20
