package wal

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"weir/disk/record"
	"weir/disk/vfs"
)

// Scan reads the log in a directory without writing anything, for a person or a test. It finds what Open would find.
// visit, unless nil, is called for every good group record in order; its slices are valid during the call only.
func Scan(fs vfs.FS, dir string, visit func(place record.Place, w Write)) (Recovered, error) {
	r := recovery{fs: fs, dir: dir, visit: visit}
	err := r.run()
	return r.out, err
}

// recovery reads a log. It writes nothing.
type recovery struct {
	fs    vfs.FS
	dir   string
	opts  Options
	visit func(record.Place, Write)

	ids    []uint64 // segment files, ascending
	mark   mark
	marked bool           // the mark file exists
	chain  []*segmentFile // live segments, ascending
	groups map[GroupID]*found
	gone   map[GroupID]uint64 // dropped groups, with the number of their newest record
	live   refs
	// pending is the place of damage that nothing behind it has explained yet.
	pending *record.Place
	created uint64 // how many groups the log has had so far
	scratch []Entry
	tail    *scan // of the last segment
	news    bool  // damage that no table tells of yet

	out Recovered
}

// found is the state of a group so far.
type found struct {
	group
	entries []Entry      // from above the compaction mark, or from above a gap, to last
	owned   int          // how many entries, the first ones, have data outside of the buffers of segments
	at      record.Place // of the newest good record
	gap     bool         // records were lost, and nothing since repeats the state
	suspect bool         // records may have been lost
	told    uint64       // the first segment whose table says that the group is damaged
	why     error        // the damage that concerns the group
}

// segmentFile is a segment as far as its first page tells.
type segmentFile struct {
	id     uint64
	header segmentHeader
	sound  bool // the header frame is good; the table may still be bad
}

func (r *recovery) note(format string, args ...any) {
	r.out.Notes = append(r.out.Notes, fmt.Sprintf(format, args...))
}

// run reads everything.
func (r *recovery) run() error {
	r.groups, r.gone = map[GroupID]*found{}, map[GroupID]uint64{}
	if err := r.list(); err != nil {
		return err
	}
	if err := r.findChain(); err != nil {
		return err
	}
	if len(r.chain) == 0 {
		r.noteLost()
		return nil
	}
	for again := true; again && len(r.chain) > 0; {
		var err error
		if again, err = r.readChain(); err != nil {
			return err
		}
	}
	if len(r.chain) == 0 {
		r.noteLost()
	}
	r.conclude()
	return nil
}

// noteLost notes that nothing is left of the log, if it ever held something.
func (r *recovery) noteLost() {
	if r.mark.number > 0 {
		r.note("the log was synced to segment %d at %d, but no segment is there", r.mark.segment, r.mark.offset)
		r.hide()
	}
}

// list finds the segment files and reads the mark.
func (r *recovery) list() error {
	names, err := r.fs.List(r.dir)
	if err != nil {
		return fmt.Errorf("list the log: %w", err)
	}
	for _, name := range names {
		if id, ok := parseSegmentName(name); ok {
			r.ids = append(r.ids, id)
		}
		if name == markName {
			r.marked = true
		}
	}
	slices.Sort(r.ids)
	if !r.marked {
		return nil
	}
	f, err := r.fs.Open(r.dir + "/" + markName)
	if err != nil {
		return fmt.Errorf("open the mark of the log: %w", err)
	}
	var note string
	r.mark, note, err = readMark(f, r.opts.Patient)
	if note != "" && len(r.ids) > 0 {
		r.note("%s", note)
	}
	return errors.Join(err, f.Close())
}

// findChain decides which files are live: the newest segment that has a header or holds synced frames, and those that
// it and its predecessors name.
func (r *recovery) findChain() error {
	files := map[uint64]*segmentFile{}
	var newest *segmentFile
	for _, id := range r.ids {
		file, err := r.readHeader(id)
		if err != nil {
			return err
		}
		files[id] = file
		if file.sound {
			newest = file
		}
	}
	oldest, top := uint64(0), newest
	if newest != nil {
		oldest = newest.header.oldest
	}
	for i := len(r.ids) - 1; i >= 0 && (newest == nil || r.ids[i] > newest.id); i-- {
		synced, err := r.holdsSynced(r.ids[i])
		if err != nil {
			return err
		}
		if synced {
			top = files[r.ids[i]]
			break
		}
	}
	for top != nil {
		r.chain = append(r.chain, top)
		top = r.before(top, oldest, files)
	}
	slices.Reverse(r.chain)
	return nil
}

// before returns the live segment before one, or nil.
func (r *recovery) before(file *segmentFile, oldest uint64, files map[uint64]*segmentFile) *segmentFile {
	below := file.id
	if file.sound {
		if file.header.prev == 0 || file.header.prev < oldest {
			return nil
		}
		if prev := files[file.header.prev]; prev != nil {
			return prev
		}
		below = file.header.prev // given up, unless the groups tell otherwise
	}
	i, _ := slices.BinarySearch(r.ids, below)
	if i == 0 || r.ids[i-1] < oldest {
		return nil
	}
	return files[r.ids[i-1]]
}

// readHeader reads the header frame of a segment.
func (r *recovery) readHeader(id uint64) (*segmentFile, error) {
	f, err := r.fs.Open(r.dir + "/" + segmentName(id))
	if err != nil {
		return nil, fmt.Errorf("open segment %d: %w", id, err)
	}
	page := make([]byte, record.Size(segmentHeaderBytes))
	n, err := f.ReadAt(page, 0)
	if n < len(page) && errors.Is(err, vfs.ErrIO) {
		if r.opts.Patient {
			return nil, errors.Join(fmt.Errorf("read the header of segment %d: %w", id, err), f.Close())
		}
		r.note("segment %d: the header is unreadable: %v", id, err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("close segment %d: %w", id, err)
	}
	file := &segmentFile{id: id}
	frame, err := record.Next(page[:n], record.Place{Segment: id}, 0)
	if err != nil || frame.Type != frameHeader {
		return file, nil
	}
	file.header, err = decodeSegmentHeader(frame.Payload)
	if errors.Is(err, ErrVersion) {
		return nil, fmt.Errorf("segment %d: %w", id, err)
	}
	file.sound = err == nil && file.header.id == id
	return file, nil
}

// holdsSynced reports whether a segment without a good header holds frames that were synced: then its header is
// damaged. Otherwise it was never used, or its first append is torn. A good mark decides, since it is saved with the
// first append of every segment; without one the file is searched.
func (r *recovery) holdsSynced(id uint64) (bool, error) {
	if r.opts.Plant.StopAtFirstBad {
		return false, nil
	}
	if r.mark.number > 0 {
		return r.mark.segment == id && r.mark.offset > 0, nil
	}
	s, err := r.load(&segmentFile{id: id})
	if err != nil {
		return false, err
	}
	s.look(0)
	return s.durable > 0, nil
}

// readChain reads the live segments in order. When the last one turns out to be torn from its very header, it leaves
// the chain, and again is true: everything is to be read anew.
func (r *recovery) readChain() (again bool, err error) {
	r.groups, r.gone = map[GroupID]*found{}, map[GroupID]uint64{}
	r.pending, r.live.segments, r.out.Segments, r.created = nil, nil, nil, 0
	for _, file := range r.chain {
		r.live.segments = append(r.live.segments, segmentRef{id: file.id})
	}
	for i, file := range r.chain {
		s, err := r.load(file)
		if err != nil {
			return false, err
		}
		s.first, s.last = i == 0, i == len(r.chain)-1
		if !s.last {
			if next := r.chain[i+1]; next.sound && next.header.prev == file.id {
				s.limit = min(next.header.prevEnd, int64(len(s.data)))
				s.durable = next.header.prevEnd
			} else {
				s.look(0)
				s.durable = max(s.durable, s.tailEnd)
			}
		} else if r.mark.segment == file.id {
			s.durable = r.mark.offset
		}
		if torn := s.run(); torn {
			r.chain, r.live.segments = r.chain[:i], nil
			return true, nil
		}
		r.out.Segments = append(r.out.Segments, s.info)
		r.tail = s
		for _, f := range r.groups { // order-free: each on its own
			if f.owned < len(f.entries) {
				f.own()
			}
		}
	}
	return false, nil
}

// conclude judges every group.
func (r *recovery) conclude() {
	if n := len(r.chain); n > 0 && r.mark.segment > r.chain[n-1].id {
		r.note("segment %d was synced to %d and is missing", r.mark.segment, r.mark.offset)
		r.suspectAll(record.Place{Segment: r.mark.segment}, r.pending)
		r.hide()
	}
	if r.pending != nil {
		r.suspectAll(*r.pending, nil)
		r.hide()
	}
	keep := uint64(0)
	for _, id := range slices.Sorted(maps.Keys(r.groups)) {
		f := r.groups[id]
		if err := f.verdict(); err != nil {
			r.out.Damaged = append(r.out.Damaged, Damage{id, fmt.Errorf("group %d: %w", id, err)})
			if !f.damaged {
				r.news, f.told = true, math.MaxUint64
			}
			keep = max(keep, f.told)
			f.damaged, f.entries = true, nil
			f.unpin(&r.live)
			continue
		}
		g := Group{ID: id, HardState: f.hardState, HasHardState: f.hasHardState, Compact: f.compact, Entries: f.entries}
		if f.meta != nil {
			g.Meta = append([]byte{}, f.meta...)
		}
		r.out.Groups = append(r.out.Groups, g)
	}
	for i := range r.live.segments {
		r.live.segments[i].keep = r.live.segments[i].id < keep
	}
}

// verdict returns nil for a group that lost nothing, or an error that wraps ErrCorrupt.
func (f *found) verdict() error {
	why := f.why
	if why == nil {
		why = ErrCorrupt
	}
	switch {
	case f.damaged:
		return fmt.Errorf("found damaged at an earlier start: %w", why)
	case f.gap:
		return fmt.Errorf("records before number %d are missing: %w", f.records, why)
	case f.suspect:
		return fmt.Errorf("records after number %d may be missing: %w", f.records, why)
	case f.last > f.compact && (len(f.entries) == 0 || f.entries[0].Index != f.compact+1):
		return fmt.Errorf("entries between %d and %d are missing: %w", f.compact+1, f.last, why)
	}
	return nil
}

// suspectAll marks the groups that have no good record behind the damage. also, unless nil, is a second place.
func (r *recovery) suspectAll(damage record.Place, also *record.Place) {
	if also != nil && before(*also, damage) {
		damage = *also
	}
	for _, f := range r.groups { // order-free: sets flags
		if before(f.at, damage) {
			f.suspect = true
			f.blame(damage)
		}
	}
	r.pending = nil
}

// hide notes that the damage may have taken the only traces of a group.
func (r *recovery) hide() { r.news, r.out.Incomplete = true, true }

func (f *found) blame(damage record.Place) {
	if f.why == nil {
		f.why = fmt.Errorf("segment %d at %d: %w", damage.Segment, damage.Offset, ErrCorrupt)
	}
}

func before(a, b record.Place) bool {
	return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Offset, b.Offset)) < 0
}
