package stream

import "math/bits"

// The digest of a machine is a sum of hashes of its parts. Sums are commutative: a part is added when it appears and
// subtracted when it goes, whatever the order, so the digest of a million messages costs nothing to read.

const (
	mixA uint64 = 0x9e3779b97f4a7c15
	mixB uint64 = 0xd1342543de82ef95
)

// mix folds the 128-bit product of its inputs. It is a fast hash against accidents, not against adversaries.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^mixA, b^mixB)
	return hi ^ lo
}

// hashText hashes a text; equal texts hash equally as string and as bytes.
func hashText[T ~string | ~[]byte](text T) uint64 {
	h := mix(uint64(len(text)), mixA)
	i := 0
	for ; i+8 <= len(text); i += 8 {
		h = mix(h, load64(text, i))
	}
	var tail uint64
	for ; i < len(text); i++ {
		tail = tail<<8 | uint64(text[i])
	}
	return mix(h, tail)
}

func load64[T ~string | ~[]byte](s T, i int) uint64 {
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
		uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}

// hashMessage is the share of one message in the digest.
func hashMessage(seq uint64, r row, subjectHash uint64) uint64 {
	return mix(mix(seq, uint64(r.time)), mix(subjectHash, uint64(r.size)))
}

// Digest returns a hash of the complete logical state: equal on all replicas that applied the same index. Its cost
// depends on the number of consumers alone.
func (m *Machine) Digest() uint64 {
	h := mix(m.applied, uint64(m.clock))
	h = mix(h, hashText(m.account)^hashText(m.name)<<1)
	h = mix(h, m.incarnation)
	h = mix(h, m.configVersion)
	h = mix(h, m.configHash)
	h = mix(h, m.log.first)
	h = mix(h, m.log.last)
	h = mix(h, uint64(m.log.lastTime))
	h = mix(h, m.log.bytes)
	h = mix(h, m.log.live.Len())
	h = mix(h, m.log.sum)
	h = mix(h, m.dedup.digest())
	h = mix(h, hashText(m.lastMsgID))
	if m.copied != (Copied{}) {
		h = mix(h, mix(m.copied.Incarnation, m.copied.Through))
	}
	if m.plant.BlindDigest {
		return h
	}
	return mix(h, m.consumersDigest())
}
