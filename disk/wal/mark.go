package wal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"weir/disk/record"
	"weir/disk/vfs"
)

const (
	markName      = "mark"
	markSlotBytes = 4096
	markSlots     = 2
	markSegment   = 1<<64 - 1 // the segment id that slots are bound to: no segment has it
	markBytes     = 3 * 8
)

// mark is a synced position: everything before the offset of the segment, and every older live segment, was synced.
type mark struct {
	number  uint64 // counts marks; the slot is number modulo the number of slots
	segment uint64
	offset  int64
}

// markFile holds the two slots. They are written in turn, so that a torn write leaves the older one.
type markFile struct {
	f    vfs.File
	last mark
}

func (m *markFile) close() error {
	if m.f == nil {
		return nil
	}
	return m.f.Close()
}

// SaveMark stores how far the log is synced, so that damage to the newest appends cannot pass for a torn end. It costs a
// write and a sync of its own, and nothing when the mark is up to date. The owner calls it when the log has been idle.
func (l *Log) SaveMark() error {
	if l.err != nil {
		return l.err
	}
	next := mark{l.mark.last.number + 1, l.id, l.synced}
	if next.segment == l.mark.last.segment && next.offset == l.mark.last.offset || l.synced == 0 {
		return nil
	}
	if err := l.mark.save(next); err != nil {
		return l.failed(fmt.Errorf("save mark of segment %d at %d: %w", l.id, l.synced, err))
	}
	return nil
}

func (m *markFile) save(next mark) error {
	at := record.Place{Segment: markSegment, Offset: int64(next.number%markSlots) * markSlotBytes}
	slot := record.Begin(make([]byte, 0, markSlotBytes))
	slot = binary.LittleEndian.AppendUint64(slot, next.number)
	slot = binary.LittleEndian.AppendUint64(slot, next.segment)
	slot = binary.LittleEndian.AppendUint64(slot, uint64(next.offset))
	slot = record.Finish(slot, 0, frameMark, at)
	if _, err := m.f.WriteAt(slot, at.Offset); err != nil {
		return err
	}
	if err := m.f.Sync(); err != nil {
		return err
	}
	m.last = next
	return nil
}

// readMark returns the newest good slot, or the zero mark with a note where there is none in an existing file. A slot that
// the device does not read is an error when patient, else a damaged slot.
func readMark(f vfs.File, patient bool) (newest mark, note string, err error) {
	data := make([]byte, markSlots*markSlotBytes)
	bad := 0
	for i := range int64(markSlots) {
		at := record.Place{Segment: markSegment, Offset: i * markSlotBytes}
		slot := data[at.Offset : at.Offset+markSlotBytes]
		n, err := f.ReadAt(slot, at.Offset)
		if err != nil && errors.Is(err, vfs.ErrIO) {
			if patient {
				return mark{}, "", fmt.Errorf("read the mark: %w", err)
			}
			n = 0 // an unreadable slot is a damaged slot
		}
		frame, err := record.Next(slot[:n], at, 0)
		if err != nil || frame.Type != frameMark || len(frame.Payload) != markBytes {
			bad++
			continue
		}
		m := mark{binary.LittleEndian.Uint64(frame.Payload), binary.LittleEndian.Uint64(frame.Payload[8:]),
			int64(binary.LittleEndian.Uint64(frame.Payload[16:]))}
		if m.number > newest.number {
			newest = m
		}
	}
	if bad == markSlots {
		note = "both slots of the mark are unreadable"
	}
	return newest, note, nil
}
