package wal

import (
	"errors"
	"fmt"
	"io"

	"weir/disk/record"
	"weir/disk/vfs"
	"weir/spec/assert"
)

// scan reads one segment.
type scan struct {
	r    *recovery
	file *segmentFile
	data []byte

	first, last bool  // place in the chain
	off         int64 // where the next frame should start
	limit       int64 // where the segment ends at the latest
	durable     int64 // everything before was synced
	unreadable  int64 // behind the last sector that the device does not give, or 0
	looked      bool
	tailEnd     int64 // behind the last good header that look found
	sound       bool  // header and table are good
	appendAt    int64 // offset of the newest good append frame, or 0
	recent      recent
	info        SegmentInfo
}

// load reads the file of a segment. Sectors that the device does not give are read as zeros and remembered.
func (r *recovery) load(file *segmentFile) (*scan, error) {
	f, err := r.fs.Open(r.dir + "/" + segmentName(file.id))
	if err != nil {
		return nil, fmt.Errorf("open segment %d: %w", file.id, err)
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("segment %d: %w", file.id, err), f.Close())
	}
	s := &scan{r: r, file: file, data: make([]byte, size), limit: size}
	s.info = SegmentInfo{ID: file.id, FileBytes: size}
	n, err := f.ReadAt(s.data, 0)
	for off := int64(n); off < size && err != nil && !errors.Is(err, io.EOF); off += pageBytes {
		off = off / pageBytes * pageBytes
		_, err = f.ReadAt(s.data[off:min(off+pageBytes, size)], off)
		if err != nil && (r.opts.Patient || !errors.Is(err, vfs.ErrIO)) {
			return nil, errors.Join(fmt.Errorf("read segment %d: %w", file.id, err), f.Close())
		}
		if err != nil {
			s.unreadable = min(off+pageBytes, size)
			r.note("segment %d is unreadable at %d", file.id, off)
		}
		err = vfs.ErrIO // read on page by page
	}
	return s, f.Close()
}

func (s *scan) place() record.Place { return record.Place{Segment: s.file.id, Offset: s.off} }

// next reads the frame at the current offset.
func (s *scan) next() (record.Frame, error) {
	return record.Next(s.data[min(s.off, s.limit):s.limit], s.place(), s.durable) // a file may end inside of padding
}

// look searches the rest of the segment, from an offset that may not hold a frame, for evidence of how far it was
// synced, and for the end of the last frame.
func (s *scan) look(from int64) {
	if s.looked {
		return
	}
	s.looked = true
	if s.unreadable > from {
		s.durable = max(s.durable, s.unreadable)
	}
	for off := from; off < s.limit; {
		at, ok := record.Find(s.data[off:s.limit], record.Place{Segment: s.file.id, Offset: off})
		if !ok {
			return
		}
		frame, err := record.Next(s.data[at:s.limit], record.Place{Segment: s.file.id, Offset: at}, 0)
		if err == nil && frame.Type == frameAppend {
			if info, err := decodeAppend(frame.Payload); err == nil {
				s.durable = max(s.durable, info.synced)
			}
		}
		off = at + record.Align
		if frame.End > 0 {
			s.tailEnd = max(s.tailEnd, frame.End)
		}
		if err == nil {
			off = frame.End
		}
	}
}

// run reads the segment. It returns true, having changed nothing, when the segment is torn from its header on.
func (s *scan) run() (torn bool) {
	table, ok := s.readTable()
	switch {
	case ok:
		s.sound = true
		s.reconcile(table)
	case s.last && s.durable == 0 && !s.evidence():
		return true
	default:
		s.damage(0)
		s.tableLost()
		s.off = 0
	}
	for s.off < s.limit {
		frame, err := s.next()
		if err == nil && s.take(frame) {
			s.off = frame.End
			s.info.End = s.off
			continue
		}
		if s.r.opts.Plant.StopAtFirstBad || s.off >= s.durable && !s.evidence() {
			break
		}
		s.damage(s.off)
		if !s.skip(frame) {
			break
		}
	}
	if s.off >= s.limit && s.off < s.durable && !s.r.opts.Plant.StopAtFirstBad {
		s.damage(s.off) // the file is shorter than what was synced of it
	}
	if len(s.info.Damage) > 0 {
		s.info.End = min(max(s.info.End, s.durable), s.limit)
	}
	return false
}

// evidence reports whether something behind the current offset says that it was synced.
func (s *scan) evidence() bool {
	if s.r.opts.Plant.StopAtFirstBad {
		return false
	}
	s.look(s.off)
	return s.off < s.durable
}

// skip moves behind a bad frame to the next good header, or returns false where there is none.
func (s *scan) skip(bad record.Frame) bool {
	from := s.off + record.Align
	if bad.End > 0 && bad.End <= s.limit {
		from = bad.End
	}
	if from >= s.limit {
		return false
	}
	next, ok := record.Find(s.data[from:s.limit], record.Place{Segment: s.file.id, Offset: from})
	s.off = next
	return ok
}

// damage notes a bad frame at an offset that was synced.
func (s *scan) damage(off int64) {
	s.info.Damage = append(s.info.Damage, off)
	if s.r.pending == nil {
		s.r.pending = &record.Place{Segment: s.file.id, Offset: off}
	}
	if n := len(s.info.Damage); n <= damageNotesMax {
		s.r.note("segment %d is damaged at %d", s.file.id, off)
	}
}

// damageNotesMax bounds the notes about one segment.
const damageNotesMax = 16

// readTable reads header and table and moves behind them, or returns false and does not move.
func (s *scan) readTable() ([]group, bool) {
	if !s.file.sound {
		return nil, false
	}
	var table []group
	start := s.off
	frame, err := s.next()
	for n := uint32(0); err == nil && n < s.file.header.frames; n++ {
		s.off = frame.End
		frame, err = s.next()
		if err == nil && frame.Type != frameTable {
			err = errPayload
		}
		if err == nil {
			table, err = decodeTable(table, frame.Payload)
		}
	}
	if err != nil || uint64(len(table)) != s.file.header.groups {
		s.off = start
		return nil, false
	}
	s.off = frame.End
	s.info.End = s.off
	return table, true
}

// take handles a good frame, or returns false where it makes no sense.
func (s *scan) take(frame record.Frame) bool {
	switch frame.Type {
	case frameHeader, frameTable:
		return !s.sound // parts of a header that is damaged elsewhere
	case frameAppend:
		info, err := decodeAppend(frame.Payload)
		if err != nil {
			return false
		}
		s.info.Appends++
		s.durable = max(s.durable, info.synced)
		if s.r.pending != nil {
			s.explain(&info)
		}
		s.appendAt = s.off
		s.recent.prune(s.off)
		return true
	case frameGroup:
		w, number, err := decodeGroup(frame.Payload, s.r.scratch)
		if err != nil {
			return false
		}
		s.r.scratch = w.Entries
		s.info.Records++
		s.recent.add(recentWrite{s.appendAt, w.Group, number.n})
		s.r.record(&w, number, s.place())
		return true
	}
	return false
}

// explain attributes pending damage by the append frame behind it, at the current offset.
func (s *scan) explain(info *appendInfo) {
	r := s.r
	if info.since == s.off && r.pending.Segment == s.file.id && !s.first {
		r.pending = nil // the first append: only the header was damaged, and it repeats what older segments say
		return
	}
	start := record.Place{Segment: s.file.id, Offset: info.since}
	damage := *r.pending
	if before(damage, start) {
		r.suspectAll(damage, nil)
	}
	r.pending = nil
	for _, listed := range info.groups {
		f := r.groups[listed.id]
		if f != nil && f.records >= listed.number {
			continue
		}
		if ended, ok := r.gone[listed.id]; ok && f == nil && ended >= listed.number {
			continue
		}
		if f == nil {
			f = &found{group: group{id: listed.id}}
			r.groups[listed.id] = f
			r.created++
		}
		f.records, f.suspect = listed.number, false
		f.lose(damage, &r.live)
	}
	if info.created != r.created {
		r.created = info.created
		r.hide()
	}
}

// lose forgets what was read of the log of the group: a record is missing.
func (f *found) lose(damage record.Place, live *refs) {
	f.gap = true
	f.blame(damage)
	f.entries, f.owned = nil, 0
	f.unpin(live)
}

// record applies a group record.
func (r *recovery) record(w *Write, number recordNumber, at record.Place) {
	if r.visit != nil {
		r.visit(at, *w)
	}
	f := r.groups[w.Group]
	if f != nil && number.first && number.n > f.records {
		f.unpin(&r.live) // the end of an earlier group with the id was lost, and concerns nobody
		f = nil
	}
	if f == nil {
		f = &found{group: group{id: w.Group}}
		r.groups[w.Group] = f
		r.created++
		if number.first {
			f.records = number.n - 1
		}
	}
	if number.n != f.records+1 {
		damage := at
		if r.pending != nil {
			damage = *r.pending
		}
		f.lose(damage, &r.live)
	}
	f.records, f.at, f.suspect = number.n, at, false
	if w.Drop {
		f.unpin(&r.live)
		delete(r.groups, w.Group)
		r.gone[w.Group] = number.n
		return
	}
	if w.Reset {
		f.gap, f.why, f.told = false, nil, 0
		f.entries, f.owned = nil, 0
	}
	if f.gap && len(w.Entries) > 0 {
		f.last = max(f.last, w.Entries[0].Index-1)
	}
	if !f.apply(w, at.Segment, &r.live) {
		f.lose(at, &r.live)
		f.last = w.Entries[0].Index - 1
		ok := f.apply(w, at.Segment, &r.live)
		assert.True(ok, "entries follow a gap", w.Entries[0].Index)
	}
	f.keep(w.Entries)
}

// keep appends entries, which may overwrite a suffix, and drops what is compacted.
func (f *found) keep(entries []Entry) {
	if len(entries) > 0 {
		n := 0
		if len(f.entries) > 0 && entries[0].Index > f.entries[0].Index {
			n = int(entries[0].Index - f.entries[0].Index)
		}
		f.entries = append(f.entries[:n], entries...)
		f.owned = min(f.owned, n)
	}
	if len(f.entries) > 0 && f.entries[0].Index <= f.compact {
		n := min(f.compact-f.entries[0].Index+1, uint64(len(f.entries)))
		f.entries = f.entries[n:]
		f.owned = max(0, f.owned-int(n))
	}
}

// own copies the data of the entries that still lie in the buffer of a segment, so that the buffer can go.
func (f *found) own() {
	size := 0
	for i := range f.entries[f.owned:] {
		size += len(f.entries[f.owned+i].Data)
	}
	buf := make([]byte, 0, size)
	for i := f.owned; i < len(f.entries); i++ {
		e := &f.entries[i]
		start := len(buf)
		buf = append(buf, e.Data...)
		e.Data = buf[start:len(buf):len(buf)]
	}
	f.owned = len(f.entries)
}

// reconcile holds the groups against the table of a segment, which is the truth at its start.
func (s *scan) reconcile(table []group) {
	r := s.r
	listed := make(map[GroupID]bool, len(table))
	for i := range table {
		t := &table[i]
		listed[t.id] = true
		f := r.groups[t.id]
		if f == nil {
			f = &found{group: group{id: t.id}}
			r.groups[t.id] = f
		}
		if f.records != t.records && !s.first {
			damage := record.Place{Segment: r.live.segments[0].id}
			if r.pending != nil {
				damage = *r.pending
			}
			f.lose(damage, &r.live)
		}
		f.records, f.compact, f.last, f.damaged = t.records, t.compact, t.last, t.damaged
		f.hardState, f.hasHardState, f.meta = t.hardState, t.hasHardState, t.meta
		f.gap, f.suspect = false, false
		if t.damaged && f.told == 0 {
			f.told = s.file.id
		}
		f.release(&r.live)
		f.keep(nil)
	}
	for id, f := range r.groups { // order-free: removes entries
		if !listed[id] {
			f.unpin(&r.live)
			delete(r.groups, id)
			r.gone[id] = f.records
		}
	}
	r.pending, r.news, r.created = nil, false, s.file.header.created
	r.out.Incomplete = s.file.header.incomplete
}

// tableLost notes that nothing repeats the state of groups that are idle since, unless the segment was the first ever
// or older segments are read.
func (s *scan) tableLost() {
	r := s.r
	if s.first && (!s.file.sound || s.file.header.prev != 0) {
		r.hide()
		r.note("the table of segment %d is damaged: groups that wrote nothing since are unknown", s.file.id)
	}
}
