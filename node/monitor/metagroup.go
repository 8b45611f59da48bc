package monitor

import (
	"errors"

	"weir/model/jsapi"
)

// Cluster is what a server knows of the cluster that it is a part of.
type Cluster struct {
	// Name is its name.
	Name string
	// ActiveServers are the servers that can be reached, this one included.
	ActiveServers int
	// ClientURLs are where clients reach the servers of the cluster, as they are told.
	ClientURLs []string
	// WebURLs are where they reach them by WebSocket.
	WebURLs []string
	// Meta is the group of the catalog; nil on a server without persistence.
	Meta *MetaGroup
}

// MetaGroup is the Raft group of the catalog as one of its members sees it. Sizes are bytes, times unix nanoseconds.
type MetaGroup struct {
	// Leader is the name of the server that leads it, Peer its short id; "" when none is known.
	Leader, Peer string
	// Leading says that this server does.
	Leading bool
	// Replicas are the other members.
	Replicas []*jsapi.PeerInfo
	// Size is the number of its voters, Quorum how many of them decide.
	Size, Quorum int
	// Pending counts entries that are committed and not yet applied here.
	Pending uint64
	// UnsavedEntries and UnsavedBytes are those of the log that the next checkpoint covers, SavedNanos is when the last
	// one was made, SaveNanos how long it took.
	UnsavedEntries, UnsavedBytes uint64
	SavedNanos, SaveNanos        int64
	// Behind is why this server's catalog is not what the leader's is, "" when it is.
	Behind string
	// Unsaved is why it can not be written other than to the log, "" when all is well.
	Unsaved string
	// Removed says that this server belongs to the cluster no longer.
	Removed bool
}

// metaCluster is the group of the catalog in documents.
type metaCluster struct {
	Name            string            `json:"name,omitempty"`
	Leader          string            `json:"leader,omitempty"`
	Peer            string            `json:"peer,omitempty"`
	Replicas        []*jsapi.PeerInfo `json:"replicas,omitempty"`
	Size            int               `json:"cluster_size"`
	Quorum          int               `json:"quorum_needed"`
	Pending         uint64            `json:"pending"`
	PendingRequests int               `json:"pending_requests"`
	PendingInfos    int               `json:"pending_infos"`
	Snapshot        *metaSnapshot     `json:"snapshot"`
}

type metaSnapshot struct {
	PendingEntries uint64     `json:"pending_entries"`
	PendingSize    uint64     `json:"pending_size"`
	LastTime       jsapi.Time `json:"last_time"`
	LastDuration   int64      `json:"last_duration,omitempty"`
}

// meta describes the group of the catalog; nil outside of clusters.
func (s *Snapshot) meta() *metaCluster {
	if s.Cluster == nil || s.Cluster.Meta == nil {
		return nil
	}
	m := s.Cluster.Meta
	return &metaCluster{
		Name: s.Cluster.Name, Leader: m.Leader, Peer: m.Peer, Replicas: m.Replicas, Size: m.Size, Quorum: m.Quorum, Pending: m.Pending,
		Snapshot: &metaSnapshot{m.UnsavedEntries, m.UnsavedBytes, jsapi.Time(m.SavedNanos), m.SaveNanos},
	}
}

// leads reports whether the server leads the catalog; one on its own does.
func (s *Snapshot) leads() bool {
	return s.Cluster == nil || s.Cluster.Meta != nil && s.Cluster.Meta.Leading
}

// activeServers is how many servers answer a question to all of them.
func (s *Snapshot) activeServers() int {
	if s.Cluster == nil {
		return 1
	}
	return s.Cluster.ActiveServers
}

// webURLs are those for WebSockets.
func (s *Snapshot) webURLs() []string {
	if s.Cluster == nil {
		return nil
	}
	return s.Cluster.WebURLs
}

// connectURLs are the addresses that clients are told.
func (s *Snapshot) connectURLs() []string {
	if s.Cluster == nil {
		return nil
	}
	return s.Cluster.ClientURLs
}

// errNotLeader refuses a request that is meant for the leader of the catalog only.
var errNotLeader = errors.New("filtered response: not leader")
