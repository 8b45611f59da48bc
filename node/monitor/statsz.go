package monitor

import "weir/model/jsapi"

// statsz is how a server describes itself to whoever looks for servers.
type statsz struct {
	Start            jsapi.Time     `json:"start"`
	Mem              int64          `json:"mem"`
	Cores            int            `json:"cores"`
	CPU              float64        `json:"cpu"`
	Connections      int            `json:"connections"`
	TotalConnections uint64         `json:"total_connections"`
	ActiveAccounts   int            `json:"active_accounts"`
	Subscriptions    int            `json:"subscriptions"`
	Sent             volume         `json:"sent"`
	SentToClients    volume         `json:"sent_to_clients"`
	Received         volume         `json:"received"`
	FromClients      volume         `json:"received_from_clients"`
	SlowConsumers    uint64         `json:"slow_consumers"`
	Routes           []routeStat    `json:"routes,omitempty"`
	ActiveServers    int            `json:"active_servers"`
	JetStream        *varzJetStream `json:"jetstream,omitempty"`
	MaxProcs         int            `json:"gomaxprocs"`
}

func (r *request) statsz() *statsz {
	s, n := r.source.Server(), r.source.Snapshot(Want{})
	sent, received := volume{n.Traffic.OutMsgs, n.Traffic.OutBytes}, volume{n.Traffic.InMsgs, n.Traffic.InBytes}
	doc := &statsz{
		Start: jsapi.Time(s.StartNanos), Mem: s.MemoryBytes, Cores: s.Cores, CPU: s.CPU,
		Connections: n.Traffic.OpenConnections, TotalConnections: n.Traffic.TotalConnections, Subscriptions: n.Subscriptions.Count,
		Sent: sent, SentToClients: sent, Received: received, FromClients: received, SlowConsumers: n.Traffic.SlowConsumers, Routes: s.routeStats(),
		ActiveServers: n.activeServers(), MaxProcs: s.MaxProcs,
	}
	for i := range n.Tenants {
		if n.Tenants[i].Connections > 0 {
			doc.ActiveAccounts++
		}
	}
	if j := n.JetStream; j != nil {
		config, stats, limits := j.config(), j.stats(), j.Limits
		config.StoreDir = ""
		doc.JetStream = &varzJetStream{Config: config, Stats: &stats, Meta: n.meta(), Limits: &limits}
	}
	return doc
}
