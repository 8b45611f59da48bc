package meta

import (
	"math"
	"math/bits"

	"weir/model/jsapi"
	"weir/spec/assert"
)

// Load is how much of the catalog's streams a server carries, counted over the replicas that shall stay.
type Load struct {
	// Replicas counts replicas, Preferred those that are their stream's preferred leader.
	Replicas, Preferred int
	// Memory and Store are the bytes that they reserve; sums that are too large are math.MaxInt64.
	Memory, Store int64
}

// Load returns what the server carries.
func (m *Machine) Load(server uint64) Load {
	l := m.loads[server]
	if l == nil {
		return Load{}
	}
	return Load{Replicas: l.replicas, Preferred: l.preferred, Memory: l.memory.value(), Store: l.store.value()}
}

// tally is a sum of reservations. Clients may reserve as much as they like, so that 64 bits are not enough, and what was
// added has to be taken out again exactly.
type tally struct{ high, low uint64 }

func (t *tally) add(n int64) {
	assert.True(n >= 0, "a reservation is not negative", uint64(n))
	var carry uint64
	t.low, carry = bits.Add64(t.low, uint64(n), 0)
	t.high += carry
}

func (t *tally) sub(n int64) {
	assert.True(n >= 0 && (t.high > 0 || t.low >= uint64(n)), "no more is taken from a sum than was added", uint64(n))
	var borrow uint64
	t.low, borrow = bits.Sub64(t.low, uint64(n), 0)
	t.high -= borrow
}

// value is the sum, or math.MaxInt64 when it is larger.
func (t *tally) value() int64 {
	if t.high > 0 || t.low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(t.low)
}

// load is what a server carries.
type load struct {
	replicas, preferred int
	memory, store       tally
}

func (l *load) reserved(storage jsapi.StorageType) *tally {
	if storage == jsapi.MemoryStorage {
		return &l.memory
	}
	return &l.store
}

// usage is what the streams of one account, or of all accounts, reserve.
type usage struct {
	// memory and store count once per stream, memoryAll and storeAll once per replica that was asked for.
	memory, store       tally
	memoryAll, storeAll tally
}

// sums returns the sums of the storage: once per stream, and once per replica.
func (u *usage) sums(storage jsapi.StorageType) (once, all *tally) {
	if storage == jsapi.MemoryStorage {
		return &u.memory, &u.memoryAll
	}
	return &u.store, &u.storeAll
}

func (u *usage) count(config *jsapi.StreamConfig, change func(*tally, int64)) {
	once, all := u.sums(config.Storage)
	change(once, reservedBytes(config))
	for range config.Replicas {
		change(all, reservedBytes(config))
	}
}

// count adds the stream to all sums.
func (m *Machine) count(s *Stream) { m.recount(s, (*tally).add, 1) }

// uncount takes the stream out of all sums.
func (m *Machine) uncount(s *Stream) { m.recount(s, (*tally).sub, -1) }

func (m *Machine) recount(s *Stream, change func(*tally, int64), sign int) {
	account := m.usages[s.Account]
	if account == nil {
		account = new(usage)
		m.usages[s.Account] = account
	}
	account.count(s.Config, change)
	m.total.count(s.Config, change)
	for i, r := range s.Replicas {
		l := m.loads[r.Server]
		if l == nil {
			l = new(load)
			m.loads[r.Server] = l
		}
		l.replicas += sign
		if i == 0 {
			l.preferred += sign
		}
		change(l.reserved(s.Config.Storage), reservedBytes(s.Config))
		assert.True(l.replicas >= l.preferred && l.preferred >= 0, "a server carries what was counted for it", r.Server)
	}
}
