package monitor

import "weir/model/jsapi"

// The documents about other servers. This one is alone: it has no routes, no gateways and no leaf nodes.

type routez struct {
	ServerID   string     `json:"server_id"`
	ServerName string     `json:"server_name"`
	Now        jsapi.Time `json:"now"`
	Count      int        `json:"num_routes"`
	Routes     []empty    `json:"routes"`
}

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

func (r *request) routez() *routez {
	s := r.source.Server()
	return &routez{ServerID: s.ID, ServerName: s.Name, Now: r.now(), Routes: []empty{}}
}

func (r *request) gatewayz() *gatewayz {
	return &gatewayz{ServerID: r.source.Server().ID, Now: r.now()}
}

func (r *request) leafz() *leafz {
	return &leafz{ServerID: r.source.Server().ID, Now: r.now(), Leafs: []empty{}}
}
