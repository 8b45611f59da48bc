package consumer

import (
	"encoding/binary"
	"errors"
	"fmt"

	"weir/model/fields"
	"weir/model/jsapi"
)

// codecVersion is the first byte of an encoded state.
const codecVersion = 1

// ErrMalformed is returned for bytes that are not a state of this version. They come from our own checkpoints,
// checksummed, so that this means a defect.
var ErrMalformed = errors.New("malformed consumer state")

// AppendState appends the canonical form of the state: equal states give equal bytes. It costs O(pending).
//
//	version, id, created, name, configuration (JSON), cursor, delivered, ack floor, count of messages to deliver,
//	skip list (count, then distances), pending (count, then entries)
//
// A position is its two sequences and its time. An entry is the distances of its sequences to those of the entry before,
// the distance of its time, its deliveries, its phase, and unless it is queued the distance of its deadline to its time,
// plus one, where 0 stands for never. Numbers are varints.
func (s *State) AppendState(dst []byte) []byte {
	dst = append(dst, codecVersion)
	dst = binary.AppendUvarint(dst, s.id)
	dst = binary.AppendVarint(dst, s.created)
	dst = fields.AppendText(dst, s.name)
	dst = fields.AppendText(dst, string(s.config.AppendJSON(nil)))
	dst = binary.AppendUvarint(dst, s.cursor)
	dst = appendPosition(dst, s.delivered)
	dst = appendPosition(dst, s.floor)
	dst = binary.AppendUvarint(dst, s.numPending)
	dst = binary.AppendUvarint(dst, uint64(s.skip.live))
	before := uint64(0)
	for _, seq := range s.skip.all(nil) {
		dst = binary.AppendUvarint(dst, seq-before)
		before = seq
	}
	return s.pending.append(dst)
}

func (p *pendingSet) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.live))
	var before entry
	for i := p.head; i < len(p.entries); i++ {
		e := &p.entries[i]
		if e.phase == gone {
			continue
		}
		dst = binary.AppendUvarint(dst, e.seq-before.seq)
		dst = binary.AppendUvarint(dst, e.cseq-before.cseq)
		dst = binary.AppendVarint(dst, e.last-before.last)
		dst = binary.AppendUvarint(dst, uint64(e.deliveries))
		dst = append(dst, byte(e.phase))
		if e.phase != queued {
			wait := uint64(0)
			if e.deadline != never {
				wait = uint64(e.deadline-e.last) + 1
			}
			dst = binary.AppendUvarint(dst, wait)
		}
		before = *e
	}
	return dst
}

func appendPosition(dst []byte, p Position) []byte {
	dst = binary.AppendUvarint(dst, p.Consumer)
	dst = binary.AppendUvarint(dst, p.Stream)
	return binary.AppendVarint(dst, p.Last)
}

// RestoreState reads what AppendState wrote. The log must already be in the state in which it was then; data is not kept.
func RestoreState(data []byte, log Log, options Options) (*State, error) {
	r := fields.NewReader(data)
	if r.Byte() != codecVersion {
		return nil, fmt.Errorf("%w: version of %d bytes", ErrMalformed, len(data))
	}
	s := &State{log: log, options: options}
	s.id, s.created, s.name = r.Uvarint(), r.Varint(), string(r.Bytes())
	config := r.Bytes()
	s.cursor, s.delivered, s.floor, s.numPending = r.Uvarint(), takePosition(&r), takePosition(&r), r.Uvarint()
	s.skip = takeSkipList(&r)
	s.pending.take(&r)
	if !r.Done() {
		return nil, fmt.Errorf("%w: %d of %d bytes are left", ErrMalformed, r.Len(), len(data))
	}
	var err error
	if s.config, err = jsapi.ParseConsumerConfig(config); err != nil {
		return nil, fmt.Errorf("restore consumer %d: %w", s.id, err)
	}
	s.rules = deriveRules(s.config)
	if s.floor.Consumer > s.delivered.Consumer || s.floor.Stream > s.delivered.Stream {
		return nil, fmt.Errorf("%w: ack floor %d/%d is beyond delivered %d/%d", ErrMalformed,
			s.floor.Consumer, s.floor.Stream, s.delivered.Consumer, s.delivered.Stream)
	}
	return s, nil
}

func takePosition(r *fields.Reader) Position {
	return Position{Consumer: r.Uvarint(), Stream: r.Uvarint(), Last: r.Varint()}
}

func takeSkipList(r *fields.Reader) skipList {
	n := r.Count()
	if n == 0 {
		return skipList{}
	}
	seqs := make([]uint64, 0, n)
	at := uint64(0)
	for range n {
		step := r.Uvarint()
		if step == 0 || step >= removedBit-at {
			r.Fail()
			return skipList{}
		}
		at += step
		seqs = append(seqs, at)
	}
	return newSkipList(seqs)
}

func (p *pendingSet) take(r *fields.Reader) {
	var before entry
	for range r.Count() {
		e := entry{
			seq: before.seq + r.Uvarint(), cseq: before.cseq + r.Uvarint(), last: before.last + r.Varint(),
			deliveries: uint32(r.Uvarint()), phase: phase(r.Byte()), deadline: never,
		}
		if e.phase < queued {
			if wait := r.Uvarint(); wait > 0 {
				e.deadline = e.last + int64(wait-1)
			}
		}
		if r.Failed() || e.phase > queued || e.seq <= before.seq || e.cseq <= before.cseq {
			r.Fail()
			return
		}
		p.restore(e)
		before = e
	}
}
