package meta

import (
	"math"

	"weir/model/jsapi"
	"weir/model/subject"
)

// checkCreate holds a new stream against the limits and the other streams, in the order of the reference server.
func (m *Machine) checkCreate(id key, config *jsapi.StreamConfig, limits *jsapi.Limits) *jsapi.Error {
	streams := m.Streams(id.account)
	if limit := limits.Account.MaxStreams; limit > 0 && len(streams) >= limit || len(m.order) >= StreamsMax {
		return jsapi.CodeMaximumStreamsLimit.Err()
	}
	if refused := m.checkReservation(id, config, limits, config.MaxBytes); refused != nil {
		return refused
	}
	return checkOverlap(streams, id.name, config)
}

// checkUpdate holds a changed stream against the limits and the other streams. Only what it reserves in addition
// counts.
func (m *Machine) checkUpdate(old *Stream, config *jsapi.StreamConfig, limits *jsapi.Limits) *jsapi.Error {
	more := max(config.MaxBytes, 0) - max(old.Config.MaxBytes, 0)
	if more > 0 {
		if refused := m.checkReservation(key{old.Account, old.Name}, config, limits, more); refused != nil {
			return refused
		}
	}
	return checkOverlap(m.Streams(old.Account), old.Name, config)
}

// checkReservation refuses a stream whose reserved bytes do not fit. serverBytes is what it adds to the server's
// reservations. A stream without max_bytes needs at least one byte.
func (m *Machine) checkReservation(id key, config *jsapi.StreamConfig, limits *jsapi.Limits, serverBytes int64) *jsapi.Error {
	account := limits.Account
	if config.MaxConsumers > 0 && account.MaxConsumers > 0 && config.MaxConsumers > account.MaxConsumers {
		return jsapi.CodeMaximumConsumersLimit.Err()
	}
	accountMax, serverMax, code := account.MaxStore, limits.ServerMaxStore, jsapi.CodeStorageResourcesExceeded
	if config.Storage == jsapi.MemoryStorage {
		accountMax, serverMax, code = account.MaxMemory, limits.ServerMaxMemory, jsapi.CodeMemoryResourcesExceeded
	}
	accountReserved, serverReserved := int64(0), int64(0)
	for _, other := range m.order {
		if other.Config.Storage != config.Storage {
			continue
		}
		bytes := reservedBytes(other.Config)
		serverReserved = addSaturate(serverReserved, bytes)
		if other.Account == id.account && other.Name != id.name {
			accountReserved = addSaturate(accountReserved, bytes)
		}
	}
	own := max(config.MaxBytes, 1)
	if accountMax >= 0 && addSaturate(accountReserved, own) > accountMax {
		return code.Err()
	}
	if serverMax > 0 && addSaturate(serverReserved, max(serverBytes, 1)) > serverMax {
		return code.Err()
	}
	return nil
}

func reservedBytes(config *jsapi.StreamConfig) int64 { return max(config.MaxBytes, 0) }

func addSaturate(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// checkOverlap refuses subjects that another stream of the account captures.
func checkOverlap(streams []*Stream, name string, config *jsapi.StreamConfig) *jsapi.Error {
	for _, other := range streams {
		if other.Name == name {
			continue
		}
		for _, theirs := range other.Config.Subjects {
			for _, ours := range config.Subjects {
				if subject.Overlaps(theirs, ours) {
					return jsapi.CodeStreamSubjectOverlap.Err()
				}
			}
		}
	}
	return nil
}
