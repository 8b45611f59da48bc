package api

import (
	"encoding/json"

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
		c.gatherUsage(func(of map[uint64]usage) {
			stats := c.api.account(c.account, of)
			c.respond(jsapi.AccountInfoResponse{Response: c.response(), AccountStats: &stats})
		})
	})
}

// gatherUsage calls done with what the streams of the account use by group, as the servers say that lead them.
func (c *call) gatherUsage(done func(map[uint64]usage)) {
	of := c.api.usageHere(c.account) // stands for what no leader answers for
	add := func(list []usage) {
		for _, u := range list {
			if known, ok := of[u.Group]; !ok || known.Index <= u.Index {
				of[u.Group] = u
			}
		}
	}
	if !c.api.clustered() {
		done(of)
		return
	}
	servers := c.backend.Servers()
	waiting := len(servers)
	for _, server := range servers {
		q := &Question{What: AskUsage, Server: server, Account: c.account, WaitNanos: usageWaitNanos}
		c.backend.Ask(q, func(answer []byte) {
			var list []usage
			if answer != nil && json.Unmarshal(answer, &list) == nil {
				add(list)
			}
			if waiting--; waiting == 0 {
				done(of)
			}
		})
	}
}

// usageHere is what the streams of the account use of which this node has a replica, as applied here.
func (a *API) usageHere(account string) map[uint64]usage {
	of := map[uint64]usage{}
	for _, entry := range a.backend.Catalog().Streams(account) {
		if s, ok := a.backend.Stream(entry.Group); ok {
			state := s.State()
			of[entry.Group] = usage{entry.Group, s.Applied(), state.Bytes, state.Consumers}
		}
	}
	return of
}

// account returns what the account uses of JetStream and what it may use. Each replica of a stream counts.
func (a *API) account(account string, of map[uint64]usage) jsapi.AccountStats {
	stats := jsapi.AccountStats{Domain: a.config.Domain, API: a.Stats(account)}
	if limits, ok := a.backend.Limits(account); ok {
		stats.Limits = limits.Account
	}
	catalog := a.backend.Catalog()
	stats.ReservedMemory, stats.ReservedStore = catalog.Reserved(account)
	for _, entry := range catalog.Streams(account) {
		stats.Streams++
		u := of[entry.Group]
		stats.Consumers += u.Consumers
		bytes := u.Bytes * uint64(max(entry.Config.Replicas, 1))
		if entry.Config.Storage == jsapi.MemoryStorage {
			stats.Memory += bytes
		} else {
			stats.Store += bytes
		}
	}
	return stats
}
