package jsapi

import "time"

// ClusterInfo describes the group of servers behind a stream, a consumer or the catalog. RaftGroup, LeaderSince,
// SystemAcc and TrafficAcc are left out for a group of one.
type ClusterInfo struct {
	Name        string          `json:"name,omitempty"`
	RaftGroup   string          `json:"raft_group,omitempty"`
	Leader      string          `json:"leader,omitempty"`
	LeaderSince *Time           `json:"leader_since,omitempty"`
	SystemAcc   bool            `json:"system_account,omitempty"`
	TrafficAcc  string          `json:"traffic_account,omitempty"`
	Replicas    []*PeerInfo     `json:"replicas,omitempty"`
	Desired     *DesiredCluster `json:"desired,omitempty"`
}

// PeerInfo describes one server of a group other than the leader. Active is the time since it was heard of; Pending is
// set for a server that is to join the group or to leave it.
type PeerInfo struct {
	Name    string        `json:"name"`
	Current bool          `json:"current"`
	Offline bool          `json:"offline,omitempty"`
	Active  time.Duration `json:"active"`
	Lag     uint64        `json:"lag,omitempty"`
	Peer    string        `json:"peer"`
	Pending bool          `json:"pending,omitempty"`
}

// DesiredCluster describes the servers that a group is on its way to.
type DesiredCluster struct {
	Created  Time           `json:"created"`
	Name     string         `json:"name,omitempty"`
	Replicas []*DesiredPeer `json:"replicas,omitempty"`
	Origin   *DesiredOrigin `json:"origin,omitempty"`
	Status   *DesiredStatus `json:"status,omitempty"`
}

// DesiredPeer is one server of a DesiredCluster.
type DesiredPeer struct {
	Name    string `json:"name"`
	Offline bool   `json:"offline,omitempty"`
	Peer    string `json:"peer"`
}

// DesiredOrigin is what a stream asked for before the change that is under way.
type DesiredOrigin struct {
	Replicas  int              `json:"replicas"`
	Placement *Placement       `json:"placement,omitempty"`
	Retention *RetentionPolicy `json:"retention,omitempty"`
}

// DesiredStatus says what the change of a group is waiting for. Type is one of the Migration constants.
type DesiredStatus struct {
	Description string `json:"description"`
	Type        string `json:"type"`
	Err         string `json:"err,omitempty"`
}

// What a change of a group waits for.
const (
	MigrationMeta        = "meta"
	MigrationMembership  = "membership"
	MigrationSnapshot    = "snapshot"
	MigrationCatchup     = "catchup"
	MigrationQuorum      = "quorum"
	MigrationBlocked     = "blocked"
	MigrationUnavailable = "unavailable"
)

// StepDownRequest is the body of the LEADER.STEPDOWN requests, which may be empty.
type StepDownRequest struct {
	Placement *Placement `json:"placement,omitempty"`
}

// PeerRequest is the body of the PEER.REMOVE and PEER.EVACUATE requests. Peer is the name of a server or its short id.
type PeerRequest struct {
	Peer string `json:"peer"`
}

// ServerRequest is the body of SERVER.REMOVE and SERVER.EVACUATE: the name of a server or, which wins, its short id.
type ServerRequest struct {
	Server string `json:"peer"`
	Peer   string `json:"peer_id,omitempty"`
}

// MoveRequest is the body of ACCOUNT.STREAM.MOVE: the server to leave, and where to go.
type MoveRequest struct {
	Server  string   `json:"server,omitempty"`
	Cluster string   `json:"cluster,omitempty"`
	Domain  string   `json:"domain,omitempty"`
	Tags    []string `json:"tags,omitempty"`
}

// Subjects of advisories about groups. Those that end in a dot are followed by stream, or by stream and consumer.
const (
	SubjectStreamLeaderElected   = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."
	SubjectStreamQuorumLost      = "$JS.EVENT.ADVISORY.STREAM.QUORUM_LOST."
	SubjectConsumerLeaderElected = "$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED."
	SubjectConsumerQuorumLost    = "$JS.EVENT.ADVISORY.CONSUMER.QUORUM_LOST."
	SubjectDomainLeaderElected   = "$JS.EVENT.ADVISORY.DOMAIN.LEADER_ELECTED"
	SubjectServerRemoved         = "$JS.EVENT.ADVISORY.SERVER.REMOVED"
)

// Types of advisories about groups.
const (
	TypeStreamLeaderElected   = "io.nats.jetstream.advisory.v1.stream_leader_elected"
	TypeStreamQuorumLost      = "io.nats.jetstream.advisory.v1.stream_quorum_lost"
	TypeConsumerLeaderElected = "io.nats.jetstream.advisory.v1.consumer_leader_elected"
	TypeConsumerQuorumLost    = "io.nats.jetstream.advisory.v1.consumer_quorum_lost"
	TypeDomainLeaderElected   = "io.nats.jetstream.advisory.v1.domain_leader_elected"
	TypeServerRemoved         = "io.nats.jetstream.advisory.v1.server_removed"
)

// GroupEvent reports that the group of a stream, or of a consumer, elected a leader or lost its quorum. Account is set in
// the copy for the system account only; a lost quorum has no leader.
type GroupEvent struct {
	Event
	Account  string      `json:"account,omitempty"`
	Stream   string      `json:"stream"`
	Consumer string      `json:"consumer,omitempty"`
	Leader   string      `json:"leader,omitempty"`
	Replicas []*PeerInfo `json:"replicas"`
	Domain   string      `json:"domain,omitempty"`
}

// DomainLeaderEvent reports that the catalog has a new leader.
type DomainLeaderEvent struct {
	Event
	Leader   string      `json:"leader"`
	Replicas []*PeerInfo `json:"replicas"`
	Cluster  string      `json:"cluster"`
	Domain   string      `json:"domain,omitempty"`
}

// ServerRemovedEvent reports that a server was taken out of the cluster.
type ServerRemovedEvent struct {
	Event
	Server   string `json:"server"`
	ServerID string `json:"server_id"`
	Cluster  string `json:"cluster"`
	Domain   string `json:"domain,omitempty"`
}
