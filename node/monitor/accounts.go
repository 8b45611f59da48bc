package monitor

import (
	"fmt"
	"slices"

	"weir/model/jsapi"
)

type accountz struct {
	ServerID      string         `json:"server_id"`
	Now           jsapi.Time     `json:"now"`
	SystemAccount string         `json:"system_account,omitempty"`
	Accounts      []string       `json:"accounts,omitempty"`
	Detail        *tenantDetails `json:"account_detail,omitempty"`
}

// tenantDetails describes one account. Accounts here have neither exports nor imports.
type tenantDetails struct {
	Name          string     `json:"account_name"`
	Updated       jsapi.Time `json:"update_time"`
	System        bool       `json:"is_system,omitempty"`
	Expired       bool       `json:"expired"`
	Complete      bool       `json:"complete"`
	JetStream     bool       `json:"jetstream_enabled"`
	Leafnodes     int        `json:"leafnode_connections"`
	Connections   int        `json:"client_connections"`
	Subscriptions int        `json:"subscriptions"`
	NameTag       string     `json:"name_tag,omitempty"`
}

type accstatz struct {
	ServerID string     `json:"server_id"`
	Now      jsapi.Time `json:"now"`
	Accounts []accStat  `json:"account_statz"`
}

type accStat struct {
	Account          string    `json:"acc"`
	Name             string    `json:"name"`
	Connections      int       `json:"conns"`
	Leafnodes        int       `json:"leafnodes"`
	TotalConnections int       `json:"total_conns"`
	Subscriptions    int       `json:"num_subscriptions"`
	Sent             accVolume `json:"sent"`
	Received         accVolume `json:"received"`
	SlowConsumers    uint64    `json:"slow_consumers"`
}

// accVolume is the traffic of an account: all of it, and the parts that other kinds of connections have.
type accVolume struct {
	volume
	Gateways volume `json:"gateways"`
	Routes   volume `json:"routes"`
	Leafs    volume `json:"leafs"`
}

type volume struct {
	Msgs  uint64 `json:"msgs"`
	Bytes uint64 `json:"bytes"`
}

// accountz lists the accounts, or describes the one that is asked for.
func (r *request) accountz() (*accountz, error) {
	server, snapshot := r.source.Server(), r.source.Snapshot(Want{})
	doc := &accountz{ServerID: server.ID, Now: jsapi.Time(snapshot.NowNanos), SystemAccount: server.SystemAccount}
	asked := r.query.Get("acc")
	for i := range snapshot.Tenants {
		t := &snapshot.Tenants[i]
		if asked == "" {
			doc.Accounts = append(doc.Accounts, t.Name)
		} else if t.Name == asked {
			doc.Detail = &tenantDetails{
				Name: t.Name, Updated: jsapi.Time(server.ConfigNanos), System: t.Name == server.SystemAccount, Complete: true,
				JetStream: t.JetStream, Connections: t.Connections, Subscriptions: t.Subscriptions,
				NameTag: t.Name,
			}
		}
	}
	if asked != "" && doc.Detail == nil {
		return nil, fmt.Errorf("Account %s does not exist", asked)
	}
	return doc, nil
}

// accstatz counts the traffic of accounts: of those with connections, or of all.
func (r *request) accstatz() (*accstatz, error) {
	q := queryErr{query: r.query}
	unused, asked := q.truth("unused"), r.query["acc"]
	if q.err != nil {
		return nil, q.err
	}
	snapshot := r.source.Snapshot(Want{})
	doc := &accstatz{ServerID: r.source.Server().ID, Now: jsapi.Time(snapshot.NowNanos), Accounts: []accStat{}}
	for i := range snapshot.Tenants {
		t := &snapshot.Tenants[i]
		if !unused && t.Connections == 0 || len(asked) > 0 && !slices.Contains(asked, t.Name) {
			continue
		}
		doc.Accounts = append(doc.Accounts, accStat{
			Account: t.Name, Name: t.Name, Connections: t.Connections, TotalConnections: t.Connections, Subscriptions: t.Subscriptions,
			Sent:          accVolume{volume: volume{t.OutMsgs, t.OutBytes}},
			Received:      accVolume{volume: volume{t.InMsgs, t.InBytes}},
			SlowConsumers: t.SlowConsumers,
		})
	}
	return doc, nil
}
