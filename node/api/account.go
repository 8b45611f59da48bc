package api

import (
	"weir/model/jsapi"
	"weir/model/meta"
)

// accountInfo answers INFO.
func (c *call) accountInfo([]byte) {
	c.backend.Barrier(meta.Group, func(err *jsapi.Error) {
		if err != nil {
			c.refuse(err)
			return
		}
		stats := c.api.Account(c.account)
		c.respond(jsapi.AccountInfoResponse{Response: c.response(), AccountStats: &stats})
	})
}

// Account returns what the account uses of JetStream and what it may use, as applied on this node.
func (a *API) Account(account string) jsapi.AccountStats {
	stats := jsapi.AccountStats{Domain: a.config.Domain, API: a.Stats(account)}
	if limits, ok := a.backend.Limits(account); ok {
		stats.Limits = limits.Account
	}
	catalog := a.backend.Catalog()
	stats.ReservedMemory, stats.ReservedStore = catalog.Reserved(account)
	for _, entry := range catalog.Streams(account) {
		stats.Streams++
		s, ok := a.backend.Stream(entry.Group)
		if !ok {
			continue
		}
		state := s.State()
		stats.Consumers += state.Consumers
		if entry.Config.Storage == jsapi.MemoryStorage {
			stats.Memory += state.Bytes
		} else {
			stats.Store += state.Bytes
		}
	}
	return stats
}
