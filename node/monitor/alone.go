package monitor

import "weir/model/jsapi"

// The documents about other clusters and about servers that join from outside: there are none.

type gatewayz struct {
	ServerID string     `json:"server_id"`
	Now      jsapi.Time `json:"now"`
	Outbound empty      `json:"outbound_gateways"`
	Inbound  empty      `json:"inbound_gateways"`
}

type leafz struct {
	ServerID string     `json:"server_id"`
	Now      jsapi.Time `json:"now"`
	Count    int        `json:"leafnodes"`
	Leafs    []empty    `json:"leafs"`
}

func (r *request) now() jsapi.Time { return jsapi.Time(r.source.Snapshot(Want{}).NowNanos) }

func (r *request) gatewayz() *gatewayz {
	return &gatewayz{ServerID: r.source.Server().ID, Now: r.now()}
}

func (r *request) leafz() *leafz {
	return &leafz{ServerID: r.source.Server().ID, Now: r.now(), Leafs: []empty{}}
}
