package monitor

import (
	"errors"
	"math"

	"weir/model/jsapi"
)

type jsz struct {
	jetStreamStats
	ServerID        string           `json:"server_id"`
	Now             jsapi.Time       `json:"now"`
	Disabled        bool             `json:"disabled,omitempty"`
	Config          *jetStreamConfig `json:"config"`
	Limits          *JetStreamLimits `json:"limits,omitempty"`
	Streams         int              `json:"streams"`
	StreamsLeader   int              `json:"streams_leader,omitempty"`
	Consumers       int              `json:"consumers"`
	ConsumersLeader int              `json:"consumers_leader,omitempty"`
	Messages        uint64           `json:"messages"`
	Bytes           uint64           `json:"bytes"`
	Meta            *metaCluster     `json:"meta_cluster,omitempty"`
	Accounts        []accountDetail  `json:"account_details,omitempty"`
	Total           int              `json:"total"`
}

type accountDetail struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	jetStreamStats
	Streams []streamDetail `json:"stream_detail,omitempty"`
}

type streamDetail struct {
	Name      string               `json:"name"`
	Created   jsapi.Time           `json:"created"`
	Cluster   *jsapi.ClusterInfo   `json:"cluster,omitempty"`
	Config    *jsapi.StreamConfig  `json:"config,omitempty"`
	State     jsapi.StreamState    `json:"state"`
	Consumers []jsapi.ConsumerInfo `json:"consumer_detail,omitempty"`
	RaftGroup string               `json:"stream_raft_group,omitempty"`
	Groups    []consumerGroup      `json:"consumer_raft_groups,omitempty"`
}

type consumerGroup struct {
	Name      string `json:"name"`
	RaftGroup string `json:"raft_group"`
}

// jszQuery is what a request for streams asks for.
type jszQuery struct {
	account                              string
	accounts, streams, consumers, config bool
	raft, leaderOnly, ledOnly            bool
	offset, limit                        int
}

func (r *request) jszQuery() (jszQuery, error) {
	q := queryErr{query: r.query}
	j := jszQuery{account: r.query.Get("acc")}
	j.accounts, j.streams, j.consumers = q.truth("accounts"), q.truth("streams"), q.truth("consumers")
	j.config, j.raft = q.truth("config"), q.truth("raft")
	q.truth("direct-consumers") // there are none
	j.leaderOnly, j.ledOnly = q.truth("leader-only"), q.truth("stream-leader-only")
	j.offset, j.limit = q.page()
	j.streams = j.streams || j.consumers
	j.accounts = j.accounts || j.streams && j.account == ""
	return j, q.err
}

func (r *request) jsz() (*jsz, error) {
	q, err := r.jszQuery()
	if err != nil {
		return nil, err
	}
	snapshot := r.source.Snapshot(Want{Streams: q.streams, Consumers: q.consumers})
	if q.leaderOnly && !snapshot.leads() {
		return nil, errNotLeader
	}
	doc := &jsz{ServerID: r.source.Server().ID, Now: jsapi.Time(snapshot.NowNanos)}
	j := snapshot.JetStream
	if j == nil {
		doc.Disabled = true
		doc.Config = &jetStreamConfig{}
		return doc, nil
	}
	limits := j.Limits
	doc.jetStreamStats, doc.Config, doc.Limits = j.stats(), j.config(), &limits
	doc.Streams, doc.Consumers, doc.Messages, doc.Bytes = j.Streams, j.Consumers, j.Messages, j.Bytes
	doc.Total, doc.Meta = len(j.Accounts), snapshot.meta()
	if q.raft {
		doc.StreamsLeader, doc.ConsumersLeader = j.StreamsLed, j.ConsumersLed
	}
	switch {
	case q.account != "":
		for i := range j.Accounts {
			if j.Accounts[i].Name == q.account {
				doc.Accounts = []accountDetail{q.detail(&j.Accounts[i])}
			}
		}
	case q.accounts:
		for i := range cut(j.Accounts, q.offset, q.limit) {
			doc.Accounts = append(doc.Accounts, q.detail(&j.Accounts[q.offset+i]))
		}
	}
	return doc, nil
}

func (q *jszQuery) detail(a *Account) accountDetail {
	d := accountDetail{Name: a.Name, ID: a.Name}
	d.jetStreamStats = jetStreamStats{
		Memory: a.Memory, Storage: a.Storage, ReservedMemory: reserved(a.ReservedMemory), ReservedStorage: reserved(a.ReservedStorage),
		API: apiStats{Total: a.APITotal, Errors: a.APIErrors},
	}
	if !q.streams {
		return d
	}
	for i := range a.Streams {
		s := &a.Streams[i]
		if q.ledOnly && !s.Led {
			continue
		}
		detail := streamDetail{Name: s.Info.Config.Name, Created: s.Info.Created, Cluster: s.Info.Cluster, State: s.Info.State}
		if q.config {
			detail.Config = &s.Info.Config
		}
		if q.raft {
			detail.RaftGroup = s.RaftGroup
		}
		if q.consumers {
			for _, c := range s.Consumers {
				if !q.config {
					c.Config = nil
				}
				if q.raft && s.RaftGroup != "" {
					detail.Groups = append(detail.Groups, consumerGroup{c.Name, s.RaftGroup})
				}
				detail.Consumers = append(detail.Consumers, c)
			}
		}
		d.Streams = append(d.Streams, detail)
	}
	return d
}

// reserved writes "no limit" as the largest number.
func reserved(n int64) uint64 {
	if n < 0 {
		return math.MaxUint64
	}
	return uint64(n)
}

var errNoAccount = errors.New(`"account" must not be empty when checking stream health`)
var errNoStream = errors.New(`"stream" must not be empty when checking consumer health`)
