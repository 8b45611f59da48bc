package stream

import (
	"encoding/binary"
	"math/bits"

	"weir/model/fields"
)

// The forms in which a live section says which messages of a page exist.
const (
	liveNone byte = iota
	// liveAll: every message of the page.
	liveAll
	// liveRun: those in [lo, hi], two uvarints that count from the first of the page.
	liveRun
	// liveBits: 16 words of 8 bytes, little endian, in which the lowest bit is the first message.
	liveBits
)

const livePages = liveChunkSeqs / pageRows

// appendLive appends the forms of the pages of one chunk: 64 bytes for a full chunk, 8256 for one full of holes.
func (m *Machine) appendLive(dst []byte, chunk uint64) ([]byte, bool) {
	exists := false
	for number := chunk * livePages; number < (chunk+1)*livePages; number++ {
		p := m.log.pages.pages[number]
		if p == nil {
			dst = append(dst, liveNone)
			continue
		}
		exists = true
		dst = p.appendLive(dst)
	}
	return dst, exists
}

func (p *page) appendLive(dst []byte) []byte {
	if p.live == pageRows {
		return append(dst, liveAll)
	}
	lo, hi := p.bounds()
	if p.live == hi-lo+1 {
		dst = binary.AppendUvarint(append(dst, liveRun), uint64(lo))
		return binary.AppendUvarint(dst, uint64(hi))
	}
	dst = append(dst, liveBits)
	for _, word := range p.bits {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	return dst
}

// bounds returns the indexes of the first and the last message of a page that has any.
func (p *page) bounds() (lo, hi int) {
	i, j := 0, len(p.bits)-1
	for p.bits[i] == 0 {
		i++
	}
	for p.bits[j] == 0 {
		j--
	}
	return i*64 + bits.TrailingZeros64(p.bits[i]), j*64 + 63 - bits.LeadingZeros64(p.bits[j])
}

// restoreLive adds the messages of a chunk to the live set.
func (m *Machine) restoreLive(r *fields.Reader, chunk uint64) {
	if chunk > SeqMax/liveChunkSeqs || m.log.live.CountRange(chunk*liveChunkSeqs, (chunk+1)*liveChunkSeqs-1) > 0 {
		r.Fail()
		return
	}
	for number := chunk * livePages; number < (chunk+1)*livePages && !r.Failed(); number++ {
		first := number * pageRows
		switch form := r.Byte(); form {
		case liveNone:
		case liveAll:
			m.log.live.AddRange(first, first+pageRows-1)
		case liveRun:
			lo, hi := r.Uvarint(), r.Uvarint()
			if lo > hi || hi >= pageRows {
				r.Fail()
				return
			}
			m.log.live.AddRange(first+lo, first+hi)
		case liveBits:
			for i := range uint64(pageRows / 64) {
				m.restoreWord(r.Fixed64(), first+i*64)
			}
		default:
			r.Fail()
		}
	}
}

// restoreWord adds the messages of the set bits, which count from first.
func (m *Machine) restoreWord(word, first uint64) {
	for word != 0 {
		lo := bits.TrailingZeros64(word)
		run := bits.TrailingZeros64(^(word >> lo))
		m.log.live.AddRange(first+uint64(lo), first+uint64(lo+run-1))
		if lo+run == 64 {
			return
		}
		word = word >> (lo + run) << (lo + run)
	}
}
