package engine

import (
	"maps"
	"slices"

	"weir/model/jsapi"
	"weir/node/api"
	"weir/node/auth"
	"weir/node/event"
	"weir/node/monitor"
	"weir/node/route"
	"weir/node/session"
	"weir/transport/wire"
)

// counters count what monitoring shows and no session remembers.
type counters struct {
	start  event.Time
	total  uint64
	closed []monitor.Connection // the last ClosedMax, oldest first
	// listed counts the subscriptions in the lists of closed, of which those before bare have none.
	listed, bare int
	// Traffic of connections that are gone, in all and by account.
	past        session.Stats
	pastOf      map[string]*monitor.Tenant
	slow, stale uint64
}

// noteClosed remembers a connection that is gone.
func (c *counters) noteClosed(s *session.Session, now int64) {
	stats := s.Stats()
	c.past.InMsgs += stats.InMsgs
	c.past.InBytes += stats.InBytes
	c.past.OutMsgs += stats.OutMsgs
	c.past.OutBytes += stats.OutBytes
	of := c.pastOf[s.Identity().Account]
	if of == nil {
		of = &monitor.Tenant{}
		c.pastOf[s.Identity().Account] = of
	}
	addTraffic(of, &stats)
	switch s.Closed() {
	case wire.SlowConsumerPendingBytes, wire.SlowConsumerWriteDeadline:
		c.slow++
		of.SlowConsumers++
	case wire.StaleConnection:
		c.stale++
	}
	shown := showConnection(s)
	shown.StopNanos, shown.Reason = now, s.Closed().String()
	shown.Subscriptions, shown.List = len(s.LastSubs()), showSubs(s.LastSubs())
	if old := len(c.closed) - ClosedMax; old >= ClosedMax {
		for i := range c.closed[:old] {
			c.listed -= len(c.closed[i].List)
		}
		c.closed = append(c.closed[:0], c.closed[old:]...)
		c.bare = max(c.bare-old, 0)
	}
	c.closed = append(c.closed, shown)
	for c.listed += len(shown.List); c.listed > ClosedSubsMax; c.bare++ {
		c.listed -= len(c.closed[c.bare].List)
		c.closed[c.bare].List = nil
	}
}

// Snapshot describes the engine to monitoring. It costs what is asked for.
func (e *Engine) Snapshot(now event.Time, want monitor.Want) monitor.Snapshot {
	s := monitor.Snapshot{NowNanos: now.Wall}
	s.Traffic = monitor.Traffic{
		InMsgs: e.counters.past.InMsgs, InBytes: e.counters.past.InBytes,
		OutMsgs: e.counters.past.OutMsgs, OutBytes: e.counters.past.OutBytes,
		SlowConsumers: e.counters.slow, StaleConnections: e.counters.stale,
		TotalConnections: e.counters.total, OpenConnections: len(e.sessions),
	}
	tenants := e.showTenants(&s)
	for _, id := range slices.Sorted(maps.Keys(e.sessions)) {
		c := e.sessions[id].session
		stats := c.Stats()
		if t := tenants[c.Identity().Account]; t != nil {
			addTraffic(t, &stats)
			t.Connections++
		}
		s.Traffic.InMsgs += stats.InMsgs
		s.Traffic.InBytes += stats.InBytes
		s.Traffic.OutMsgs += stats.OutMsgs
		s.Traffic.OutBytes += stats.OutBytes
		if want.Connections {
			s.Connections = append(s.Connections, showConnection(c))
		}
		if want.Connections && want.Subscriptions {
			s.Connections[len(s.Connections)-1].List = showSubs(c.Subs())
		}
	}
	if want.Closed {
		s.Closed = e.counters.closed[max(0, len(e.counters.closed)-ClosedMax):]
	}
	for _, a := range e.accounts {
		routes := a.routes.Stats()
		s.Subscriptions.Count += a.routes.Len()
		s.Subscriptions.Inserts += routes.Inserts
		s.Subscriptions.Removes += routes.Removes
		s.Subscriptions.Matches += routes.Matches
		s.Subscriptions.Hits += routes.Hits
	}
	if e.config.JetStream.Enabled {
		s.JetStream = e.showJetStream(want)
	}
	if e.clustered() {
		s.Cluster = e.showCluster()
	}
	return s
}

// showTenants lists the accounts with what clients did that are gone. It returns them by name too.
func (e *Engine) showTenants(s *monitor.Snapshot) map[string]*monitor.Tenant {
	s.Tenants = make([]monitor.Tenant, len(e.accounts))
	named := make(map[string]*monitor.Tenant, len(e.accounts))
	for i, a := range e.accounts {
		t := &s.Tenants[i]
		if past := e.counters.pastOf[a.name]; past != nil {
			*t = *past
		}
		t.Name, t.JetStream, t.Subscriptions = a.name, a.limits != nil, a.routes.Len()
		named[a.name] = t
	}
	return named
}

func addTraffic(t *monitor.Tenant, stats *session.Stats) {
	t.InMsgs += stats.InMsgs
	t.InBytes += stats.InBytes
	t.OutMsgs += stats.OutMsgs
	t.OutBytes += stats.OutBytes
}

func showConnection(s *session.Session) monitor.Connection {
	stats := s.Stats()
	connect := s.Connect()
	shown := monitor.Connection{
		ID: uint64(s.ID()), IP: s.Address(), Port: s.Port(), StartNanos: stats.StartWall, LastNanos: stats.LastActivityWall,
		RTTNanos: stats.RoundTripNanos, PendingBytes: int64(s.PendingBytes()),
		InMsgs: stats.InMsgs, OutMsgs: stats.OutMsgs, InBytes: stats.InBytes, OutBytes: stats.OutBytes,
		Subscriptions: len(s.Subs()), Name: connect.Name, Lang: connect.Lang, Version: connect.Version,
		WebSocket: s.Way() == auth.WebSocket,
		User:      s.Identity().User, Account: s.Identity().Account,
	}
	identity := s.Identity()
	shown.AccountTag, shown.Issuer, shown.Tags = identity.AccountTag, identity.Issuer, identity.Tags
	t := s.TLS()
	if t == nil {
		return shown
	}
	shown.TLS = &monitor.TLS{Version: t.Version, Cipher: t.Cipher, First: t.First}
	if t.Certificate != nil {
		for _, p := range t.Certificate.Peers {
			shown.TLS.Peers = append(shown.TLS.Peers, monitor.PeerCertificate(p))
		}
	}
	return shown
}

func showSubs(subs []*route.Sub) []monitor.Subscription {
	var list []monitor.Subscription
	for _, sub := range subs {
		list = append(list, monitor.Subscription{
			Subject: sub.Pattern, Queue: sub.Queue, SID: string(sub.Sid), Msgs: sub.Delivered, Max: sub.Max,
		})
	}
	return list
}

func (e *Engine) showJetStream(want monitor.Want) *monitor.JetStream {
	j := e.config.JetStream
	api := e.api.Total()
	shown := &monitor.JetStream{
		StoreDir: j.StoreDir, MaxMemory: j.Limits.ServerMaxMemory, MaxStorage: j.Limits.ServerMaxStore,
		SyncIntervalNanos: j.SyncIntervalNanos, Strict: j.Strict, Domain: j.Domain, UniqueTag: j.UniqueTag,
		APITotal: api.Total, APIErrors: api.Errors, APILevel: jsapi.APILevel,
	}
	if e.failure != nil {
		shown.Failure = e.failure.Error() + "; changes are refused until the server is started again, on a disk that is well"
	} else if e.full != nil {
		shown.Failure = e.full.Error() + "; changes are refused until there is space on the disk, and go on by themselves then"
	} else if e.short {
		shown.Failure = errShort.Error()
	}
	if !e.opened {
		shown.Recovering = len(e.recovered) + 1
	}
	for _, a := range e.accounts {
		if a.limits == nil {
			continue
		}
		account := e.showAccount(a, shown, want)
		shown.Memory += account.Memory
		shown.Storage += account.Storage
		memory, storage := e.catalog.Reserved(a.name)
		shown.ReservedMemory += memory
		shown.ReservedStorage += storage
		shown.Accounts = append(shown.Accounts, account)
	}
	if e.clustered() {
		here := e.catalog.Load(uint64(e.config.Server))
		shown.ReservedMemory, shown.ReservedStorage = uint64(here.Memory), uint64(here.Store)
		if e.meta.replica != nil {
			shown.HAAssets++ // the catalog
		}
	}
	return shown
}

// showAccount describes the streams of an account and adds them to the totals.
func (e *Engine) showAccount(a *account, shown *monitor.JetStream, want monitor.Want) monitor.Account {
	api := e.api.Stats(a.name)
	account := monitor.Account{
		Name: a.name, ReservedMemory: a.limits.Account.MaxMemory, ReservedStorage: a.limits.Account.MaxStore,
		APITotal: api.Total, APIErrors: api.Errors,
	}
	for _, entry := range e.catalog.Streams(a.name) {
		g := e.byName[streamKey{entry.Account, entry.Name}]
		if g == nil {
			shown.Recovering++
			continue
		}
		if g.replica == nil && g.damaged == nil {
			continue // it is on other servers
		}
		shown.Streams++
		if g.damaged != nil {
			account.Streams = append(account.Streams, monitor.Stream{
				Info: jsapi.StreamInfo{Config: *entry.Config, Created: jsapi.Time(entry.Created)}, Failure: e.notServed(g),
			})
			continue
		}
		e.showStream(g, shown, &account, want)
	}
	return account
}

// showStream adds a stream to the totals and, when it is wanted, to the list.
func (e *Engine) showStream(g *group, shown *monitor.JetStream, account *monitor.Account, want monitor.Want) {
	state := g.stream.State()
	shown.Consumers += state.Consumers
	shown.Messages += state.Msgs
	shown.Bytes += state.Bytes
	if g.durable() {
		account.Storage += state.Bytes
	} else {
		account.Memory += state.Bytes
	}
	if g.leads() {
		shown.StreamsLed++
		shown.ConsumersLed += state.Consumers
	} else if g.replica.Broken() == nil && !e.clustered() {
		shown.Recovering++
	}
	if len(g.replica.Members()) > 1 {
		shown.HAAssets += 1 + state.Consumers
	}
	if !want.Streams {
		return
	}
	s := monitor.Stream{Led: g.leads(), Info: jsapi.StreamInfo{
		Config: *g.stream.Config(), Created: jsapi.Time(g.entry.Created), State: state, TimeStamp: jsapi.Time(e.wall),
		Cluster: e.members(g.id), Mirror: e.showMirror(g),
	}}
	if e.clustered() {
		s.Behind, s.RaftGroup = e.behind(g), groupName(g.id, g.entry)
	}
	s.Damage, s.Unsaved = damageOf(g), unsaved(g)
	if want.Consumers {
		for _, c := range g.stream.Consumers() {
			if info, ok := g.stream.ConsumerInfo(c.Name()); ok {
				info.NumWaiting, info.PushBound = e.desk.Activity(uint64(g.id), c.ID())
				info.TimeStamp, info.Config = jsapi.Time(e.wall), c.Config()
				if e.clustered() {
					info.Cluster = api.ConsumerMembers(s.Info.Cluster, g.entry, c.Config())
				}
				s.Consumers = append(s.Consumers, info)
			}
		}
	}
	account.Streams = append(account.Streams, s)
}
