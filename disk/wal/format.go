package wal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"weir/disk/record"
	"weir/spec/assert"
)

// version is the version of the format, written in every segment header.
const version = 1

// The types of frames.
const (
	frameHeader record.Type = 1 // start of a segment
	frameTable  record.Type = 2 // a part of the table of groups
	frameAppend record.Type = 3 // start of an append
	frameGroup  record.Type = 4 // what one group writes
	frameMark   record.Type = 5 // a slot of the mark file
)

// segmentHeader is the payload of a frameHeader: little-endian numbers of fixed width in the order of the fields, the
// version (16 bits) first.
type segmentHeader struct {
	id      uint64
	prev    uint64 // id of the segment before, 0 for the first
	prevEnd int64  // offset behind the last frame of the segment before; all of it was synced
	oldest  uint64 // no segment with a lower id was needed when this one was started
	groups  uint64 // entries of the table
	frames  uint32 // frames of the table

	created    uint64 // how many groups the log has ever had
	incomplete bool   // damage may hide groups that the table does not list (8 bits)
}

const segmentHeaderBytes = 2 + 5*8 + 4 + 8 + 1

func (h *segmentHeader) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, version)
	for _, n := range [...]uint64{h.id, h.prev, uint64(h.prevEnd), h.oldest, h.groups} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	dst = binary.LittleEndian.AppendUint32(dst, h.frames)
	dst = binary.LittleEndian.AppendUint64(dst, h.created)
	if h.incomplete {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func decodeSegmentHeader(p []byte) (segmentHeader, error) {
	if len(p) < 2 {
		return segmentHeader{}, errPayload
	}
	if v := binary.LittleEndian.Uint16(p); v != version {
		return segmentHeader{}, fmt.Errorf("version %d: %w", v, ErrVersion)
	}
	if len(p) != segmentHeaderBytes {
		return segmentHeader{}, errPayload
	}
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(p[2+8*i:]) }
	h := segmentHeader{id: n(0), prev: n(1), prevEnd: int64(n(2)), oldest: n(3), groups: n(4)}
	h.frames = binary.LittleEndian.Uint32(p[42:])
	h.created = binary.LittleEndian.Uint64(p[46:])
	h.incomplete = p[54] != 0
	if h.prevEnd < 0 {
		return segmentHeader{}, errPayload
	}
	return h, nil
}

// errPayload says that a payload with a good checksum does not decode: a fault of the writer, or a checksum beaten.
var errPayload = errors.New("malformed payload")

// Flags of group records and of table entries.
const (
	flagHardState = 1 << iota
	flagMeta
	flagEntries
	flagReset
	flagDrop
	flagDamaged // table entries only
	flagFirst   // group records only
	flagsEnd
)

// recordNumber is the number of a record of a group. The first record of a group has a number above all that an earlier
// group with the same id had: n begins at the number of groups so far, times numbersPerGroup, plus one.
type recordNumber struct {
	n     uint64
	first bool
}

// numbersPerGroup is how many numbers lie between those of two groups.
const numbersPerGroup = 1 << 40

// appendGroup appends the payload of a frameGroup:
//
//	group (8 bytes), flags (1), record number, compact, [term vote commit], [meta length, meta],
//	[first index, count, for each entry: term, type (1), length, data]
//
// Numbers without a width are unsigned varints.
func appendGroup(dst []byte, w *Write, number recordNumber) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(w.Group))
	flags := flagsOf(w)
	if number.first {
		flags |= flagFirst
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, number.n)
	dst = binary.AppendUvarint(dst, w.Compact)
	if w.HasHardState {
		dst = appendHardState(dst, w.HardState)
	}
	if w.Meta != nil {
		dst = binary.AppendUvarint(dst, uint64(len(w.Meta)))
		dst = append(dst, w.Meta...)
	}
	if len(w.Entries) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, w.Entries[0].Index)
	dst = binary.AppendUvarint(dst, uint64(len(w.Entries)))
	for i := range w.Entries {
		e := &w.Entries[i]
		assert.True(e.Index == w.Entries[0].Index+uint64(i), "entries are consecutive", w.Entries[0].Index, uint64(i), e.Index)
		dst = binary.AppendUvarint(dst, e.Term)
		dst = append(dst, e.Type)
		dst = binary.AppendUvarint(dst, uint64(len(e.Data)))
		dst = append(dst, e.Data...)
	}
	return dst
}

func flagsOf(w *Write) byte {
	var flags byte
	if w.HasHardState {
		flags |= flagHardState
	}
	if w.Meta != nil {
		flags |= flagMeta
	}
	if len(w.Entries) > 0 {
		flags |= flagEntries
	}
	if w.Reset {
		flags |= flagReset
	}
	if w.Drop {
		flags |= flagDrop
	}
	return flags
}

func appendHardState(dst []byte, h HardState) []byte {
	dst = binary.AppendUvarint(dst, h.Term)
	dst = binary.AppendUvarint(dst, h.Vote)
	return binary.AppendUvarint(dst, h.Commit)
}

// writeBound returns an upper bound of the frame that a write becomes.
func writeBound(w *Write) int {
	n := record.HeaderBytes + record.Align + 9 + 8*binary.MaxVarintLen64 + len(w.Meta)
	for i := range w.Entries {
		n += 2*binary.MaxVarintLen64 + 1 + len(w.Entries[i].Data)
	}
	return n
}

// parser reads the fields of a payload. After the first field that does not fit, bad is set and all further fields are
// zero.
type parser struct {
	p   []byte
	bad bool
}

func (r *parser) uvarint() uint64 {
	n, size := binary.Uvarint(r.p)
	if size <= 0 {
		r.p, r.bad = nil, true
		return 0
	}
	r.p = r.p[size:]
	return n
}

// bytes returns the next n bytes as a slice into the payload.
func (r *parser) bytes(n uint64) []byte {
	if n > uint64(len(r.p)) {
		r.p, r.bad = nil, true
		return nil
	}
	b := r.p[:n:n]
	r.p = r.p[n:]
	return b
}

func (r *parser) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *parser) uint64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *parser) hardState() HardState {
	return HardState{Term: r.uvarint(), Vote: r.uvarint(), Commit: r.uvarint()}
}

// decodeGroup reads a group record. Data, meta and entries are slices into the payload; entries is reused for the
// entries of the write.
func decodeGroup(payload []byte, entries []Entry) (w Write, number recordNumber, err error) {
	r := parser{p: payload}
	w.Group = GroupID(r.uint64())
	flags := r.byte()
	number = recordNumber{r.uvarint(), flags&flagFirst != 0}
	w.Compact = r.uvarint()
	w.Reset, w.Drop = flags&flagReset != 0, flags&flagDrop != 0
	if flags&flagHardState != 0 {
		w.HasHardState = true
		w.HardState = r.hardState()
	}
	if flags&flagMeta != 0 {
		w.Meta = r.bytes(r.uvarint())
	}
	if flags&flagEntries != 0 {
		first, count := r.uvarint(), r.uvarint()
		if count > uint64(len(r.p)) { // an entry takes three bytes at least
			return Write{}, recordNumber{}, errPayload
		}
		w.Entries = entries[:0]
		for i := range count {
			e := Entry{Index: first + i, Term: r.uvarint(), Type: r.byte()}
			e.Data = r.bytes(r.uvarint())
			w.Entries = append(w.Entries, e)
		}
	}
	if r.bad || len(r.p) > 0 || flags >= flagsEnd || flags&flagDamaged != 0 || number.n == 0 {
		return Write{}, recordNumber{}, errPayload
	}
	return w, number, nil
}

// appendInfo is the payload of a frameAppend: unsigned varints in the order of the fields, then the number of groups,
// and for each its id and its number.
type appendInfo struct {
	synced  int64  // the segment was synced up to here before the append was written
	since   int64  // groups lists the writes from here to this frame; its own offset in the first append of a segment
	created uint64 // how many groups the log has ever had, before this append
	groups  []listedGroup
}

// listedGroup says which record of a group is the newest one.
type listedGroup struct {
	id     GroupID
	number uint64
}

func (a *appendInfo) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(a.synced))
	dst = binary.AppendUvarint(dst, uint64(a.since))
	dst = binary.AppendUvarint(dst, a.created)
	dst = binary.AppendUvarint(dst, uint64(len(a.groups)))
	for i := range a.groups {
		dst = binary.AppendUvarint(dst, uint64(a.groups[i].id))
		dst = binary.AppendUvarint(dst, a.groups[i].number)
	}
	return dst
}

// appendBound returns an upper bound of the frame of an appendInfo that lists n groups.
func appendBound(n int) int { return record.Size((4 + 2*n) * binary.MaxVarintLen64) }

func decodeAppend(payload []byte) (appendInfo, error) {
	r := parser{p: payload}
	a := appendInfo{synced: int64(r.uvarint()), since: int64(r.uvarint()), created: r.uvarint()}
	count := r.uvarint()
	if count > uint64(len(r.p)) {
		return appendInfo{}, errPayload
	}
	for range count {
		a.groups = append(a.groups, listedGroup{GroupID(r.uvarint()), r.uvarint()})
	}
	if r.bad || len(r.p) > 0 || a.synced < 0 || a.since < 0 {
		return appendInfo{}, errPayload
	}
	return a, nil
}

// appendTableEntry appends the entry of one group to the payload of a frameTable, numbers as in appendGroup.
func appendTableEntry(dst []byte, g *group) []byte {
	var flags byte
	if g.hasHardState {
		flags |= flagHardState
	}
	if g.meta != nil {
		flags |= flagMeta
	}
	if g.damaged {
		flags |= flagDamaged
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(g.id))
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, g.records)
	dst = binary.AppendUvarint(dst, g.compact)
	dst = binary.AppendUvarint(dst, g.last)
	dst = appendHardState(dst, g.hardState)
	dst = binary.AppendUvarint(dst, uint64(len(g.meta)))
	return append(dst, g.meta...)
}

// decodeTable appends the groups of a table frame to dst. Meta is copied.
func decodeTable(dst []group, payload []byte) ([]group, error) {
	r := parser{p: payload}
	for len(r.p) > 0 && !r.bad {
		g := group{id: GroupID(r.uint64())}
		flags := r.byte()
		g.hasHardState, g.damaged = flags&flagHardState != 0, flags&flagDamaged != 0
		g.records, g.compact, g.last = r.uvarint(), r.uvarint(), r.uvarint()
		g.hardState = r.hardState()
		meta := r.bytes(r.uvarint())
		if flags&flagMeta != 0 {
			g.meta = append([]byte{}, meta...)
		}
		if flags >= flagFirst || g.records == 0 {
			r.bad = true
		}
		dst = append(dst, g)
	}
	if r.bad {
		return nil, errPayload
	}
	return dst, nil
}
