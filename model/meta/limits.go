package meta

import (
	"math"

	"weir/model/jsapi"
)

// checkCreate holds a new stream against the limits and the other streams, in the order of the reference server, which
// is another in a cluster.
func (m *Machine) checkCreate(id key, p *proposal) *jsapi.Error {
	streams := m.Streams(id.account)
	if p.Limits.Clustered {
		if refused := m.checkOverlap(id.account, 0, p.Config); refused != nil {
			return refused
		}
	}
	if limit := p.Limits.Account.MaxStreams; limit > 0 && len(streams) >= limit || len(m.order) >= StreamsMax {
		return jsapi.CodeMaximumStreamsLimit.Err()
	}
	if refused := m.checkReservation(id, p, p.Config.MaxBytes); refused != nil {
		return refused
	}
	if p.Limits.Clustered {
		return nil
	}
	return m.checkOverlap(id.account, 0, p.Config)
}

// checkUpdate holds a changed stream against the limits and the other streams. Only what it reserves in addition
// counts.
func (m *Machine) checkUpdate(old *Stream, p *proposal) *jsapi.Error {
	more := max(p.Config.MaxBytes, 0) - max(old.Config.MaxBytes, 0)
	if more > 0 || p.Config.Replicas > old.Config.Replicas {
		if refused := m.checkReservation(key{old.Account, old.Name}, p, more); refused != nil {
			return refused
		}
	}
	if refused := m.checkServers(old, p, more); refused != nil {
		return refused
	}
	return m.checkOverlap(old.Account, old.Group, p.Config)
}

// checkReservation refuses a stream whose reserved bytes do not fit. serverBytes is what it adds to the reservations of
// a server alone; in a cluster the placement looks after the servers. A stream without max_bytes needs at least one byte.
// An account pays for every replica.
func (m *Machine) checkReservation(id key, p *proposal, serverBytes int64) *jsapi.Error {
	account, config := &p.Limits.Account, p.Config
	if config.MaxConsumers > 0 && account.MaxConsumers > 0 && config.MaxConsumers > account.MaxConsumers {
		return jsapi.CodeMaximumConsumersLimit.Err()
	}
	accountMax, serverMax, code := account.MaxStore, p.Limits.ServerMaxStore, jsapi.CodeStorageResourcesExceeded
	if config.Storage == jsapi.MemoryStorage {
		accountMax, serverMax, code = account.MaxMemory, p.Limits.ServerMaxMemory, jsapi.CodeMemoryResourcesExceeded
	}
	if accountMax >= 0 {
		var reserved tally
		if u := m.usages[id.account]; u != nil {
			_, all := u.sums(config.Storage)
			reserved = *all
		}
		if old := m.byName[id]; old != nil && old.Config.Storage == config.Storage {
			for range old.Config.Replicas {
				reserved.sub(reservedBytes(old.Config))
			}
		}
		for range config.Replicas {
			reserved.add(max(config.MaxBytes, 1))
		}
		if exceeds(&reserved, accountMax) {
			return code.Err()
		}
	}
	if serverMax > 0 && !p.Limits.Clustered {
		once, _ := m.total.sums(config.Storage)
		reserved := *once
		reserved.add(max(serverBytes, 1))
		if exceeds(&reserved, serverMax) {
			return code.Err()
		}
	}
	return nil
}

// checkServers refuses an update for which a server that has a replica lacks the room.
func (m *Machine) checkServers(old *Stream, p *proposal, more int64) *jsapi.Error {
	if more <= 0 || !p.Limits.Clustered {
		return nil
	}
	for _, r := range old.Replicas {
		room := m.servers[r.Server].room(p.Config.Storage)
		if room > 0 && !m.fits(r.Server, p.Config.Storage, more) {
			if p.Config.Storage == jsapi.MemoryStorage {
				return jsapi.CodeMemoryResourcesExceeded.Err()
			}
			return jsapi.CodeStorageResourcesExceeded.Err()
		}
	}
	return nil
}

// fits reports whether the server has room for more bytes.
func (m *Machine) fits(server uint64, storage jsapi.StorageType, more int64) bool {
	room := m.servers[server].room(storage)
	if room <= 0 {
		return true
	}
	var reserved tally
	if l := m.loads[server]; l != nil {
		reserved = *l.reserved(storage)
	}
	reserved.add(max(more, 0))
	return !exceeds(&reserved, room)
}

func exceeds(sum *tally, limit int64) bool {
	return sum.high > 0 || sum.low > math.MaxInt64 || int64(sum.low) > limit
}

func reservedBytes(config *jsapi.StreamConfig) int64 { return max(config.MaxBytes, 0) }
