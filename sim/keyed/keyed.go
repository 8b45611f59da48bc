// Package keyed is the simulator's randomness: draws are a hash of a seed and of what the draw is about.
//
// Because a draw is keyed by its content and not by how many draws came before, removing one operation or one fault
// from a plan leaves all other draws as they were. The package promises equal results for equal arguments on every
// machine and uses integers only. It is not meant to resist an adversary.
package keyed

import (
	"math/bits"

	"weir/disk/memfs"
	"weir/spec/assert"
)

// Key is a seed from which everything random of one run is drawn.
type Key uint64

// Draw returns a uniform number for the domain and the identifiers.
func (k Key) Draw(domain string, ids ...uint64) uint64 { return memfs.Hash(uint64(k), domain, ids...) }

// Below returns a uniform number in [0, n).
func (k Key) Below(n uint64, domain string, ids ...uint64) uint64 {
	assert.True(n > 0, "n > 0", n)
	high, _ := bits.Mul64(memfs.Hash(uint64(k), domain, ids...), n)
	return high
}

// Chance is true with the probability of perMille thousandths.
func (k Key) Chance(perMille uint64, domain string, ids ...uint64) bool {
	return k.Below(1000, domain, ids...) < perMille
}

// Exp returns a number with an exponential distribution of the given mean, at most about 44 times the mean. Its
// logarithm is interpolated in integers: floating point may be fused differently on different processors.
func (k Key) Exp(mean int64, domain string, ids ...uint64) int64 {
	return exponential(memfs.Hash(uint64(k), domain, ids...), mean)
}

// meanMax bounds the mean of an exponential draw, so that the product fits into 64 bits.
const meanMax = 1 << 40

func exponential(u uint64, mean int64) int64 {
	assert.True(mean >= 0 && mean < meanMax, "0 <= mean < 2^40", uint64(mean))
	zeros := bits.LeadingZeros64(u | 1)
	mantissa := int64(u << (zeros + 1) >> 48)
	log2 := int64(zeros+1)<<16 - mantissa // -log2 of u/2^64, in 2^-16
	const ln2 = 45426                     // ln 2 in 2^-16
	return mean * log2 >> 16 * ln2 >> 16
}

// Rand returns a sequence of draws for code that needs many of one kind, such as the generator of plans.
func (k Key) Rand(domain string, ids ...uint64) *Rand {
	return &Rand{state: memfs.Hash(uint64(k), domain, ids...)}
}

// Rand is a sequence of draws (splitmix64). It is for generating data, never for the run of a plan.
type Rand struct{ state uint64 }

// Uint64 returns the next uniform number.
func (r *Rand) Uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns a uniform number in [0, n).
func (r *Rand) Below(n int) int {
	assert.True(n > 0, "n > 0", uint64(n))
	high, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int(high)
}

// Between returns a uniform number in [lo, hi].
func (r *Rand) Between(lo, hi int) int { return lo + r.Below(hi-lo+1) }

// Chance is true with the probability of perMille thousandths.
func (r *Rand) Chance(perMille int) bool { return r.Below(1000) < perMille }

// Exp returns a number with an exponential distribution.
func (r *Rand) Exp(mean int) int { return int(exponential(r.Uint64(), int64(mean))) }

// LogBetween returns a number in [lo, hi] whose logarithm is about uniform: every doubling is equally likely.
func (r *Rand) LogBetween(lo, hi int) int {
	doublings := bits.Len(uint(hi / lo))
	low := lo << r.Below(doublings)
	return min(hi, low+r.Below(low+1))
}

// Pick returns one of the values.
func Pick[T any](r *Rand, values ...T) T { return values[r.Below(len(values))] }
