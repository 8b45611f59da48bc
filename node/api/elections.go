package api

import (
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/transport/peerwire"
)

// Subjects of advisories about groups. Those that end in a dot are followed by stream, or by stream and consumer.
const (
	subjectStreamLeader   = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."
	subjectStreamQuorum   = "$JS.EVENT.ADVISORY.STREAM.QUORUM_LOST."
	subjectConsumerLeader = "$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED."
	subjectConsumerQuorum = "$JS.EVENT.ADVISORY.CONSUMER.QUORUM_LOST."
	subjectDomainLeader   = "$JS.EVENT.ADVISORY.DOMAIN.LEADER_ELECTED"
	subjectServerRemoved  = "$JS.EVENT.ADVISORY.SERVER.REMOVED"
)

// Types of advisories about groups.
const (
	typeStreamLeader   = "io.nats.jetstream.advisory.v1.stream_leader_elected"
	typeStreamQuorum   = "io.nats.jetstream.advisory.v1.stream_quorum_lost"
	typeConsumerLeader = "io.nats.jetstream.advisory.v1.consumer_leader_elected"
	typeConsumerQuorum = "io.nats.jetstream.advisory.v1.consumer_quorum_lost"
	typeDomainLeader   = "io.nats.jetstream.advisory.v1.domain_leader_elected"
	typeServerRemoved  = "io.nats.jetstream.advisory.v1.server_removed"
)

// groupEvent reports that the group of a stream, or of one of its consumers, has a leader, or lost its quorum.
type groupEvent struct {
	jsapi.Event
	Account  string            `json:"account,omitempty"`
	Stream   string            `json:"stream"`
	Consumer string            `json:"consumer,omitempty"`
	Leader   string            `json:"leader,omitempty"`
	Replicas []*jsapi.PeerInfo `json:"replicas"`
	Domain   string            `json:"domain,omitempty"`
}

// domainEvent reports that the catalog has a leader.
type domainEvent struct {
	jsapi.Event
	Leader   string            `json:"leader"`
	Replicas []*jsapi.PeerInfo `json:"replicas"`
	Cluster  string            `json:"cluster"`
	Domain   string            `json:"domain,omitempty"`
}

// removedEvent reports that a server belongs to the cluster no longer.
type removedEvent struct {
	jsapi.Event
	Server   string `json:"server"`
	ServerID string `json:"server_id"`
	Cluster  string `json:"cluster"`
	Domain   string `json:"domain,omitempty"`
}

// LeaderElected tells who listens that this node leads a group of several members from now on.
func (a *API) LeaderElected(group uint64) {
	if group == meta.Group {
		a.adviseSystem(subjectDomainLeader, func() any {
			members := a.members(meta.Group)
			return domainEvent{
				Event: a.event(typeDomainLeader), Leader: members.Leader, Replicas: a.everybody(members),
				Cluster: a.config.Cluster, Domain: a.config.Domain,
			}
		})
		return
	}
	a.adviseGroup(group, [2]string{subjectStreamLeader, typeStreamLeader}, [2]string{subjectConsumerLeader, typeConsumerLeader})
}

// QuorumLost tells who listens that this node leads the group no longer because too few of the others answer.
func (a *API) QuorumLost(group uint64) {
	if group != meta.Group {
		a.adviseGroup(group, [2]string{subjectStreamQuorum, typeStreamQuorum}, [2]string{subjectConsumerQuorum, typeConsumerQuorum})
	}
}

// ServerRemoved tells who listens that the server belongs to the cluster no longer. The leader of the catalog calls it.
func (a *API) ServerRemoved(name, id string) {
	a.adviseSystem(subjectServerRemoved, func() any {
		return removedEvent{
			Event: a.event(typeServerRemoved), Server: name, ServerID: id, Cluster: a.config.Cluster, Domain: a.config.Domain,
		}
	})
}

func (a *API) adviseSystem(subject string, build func() any) {
	if a.backend.HasInterest(a.config.SystemAccount, subject) {
		a.backend.Reply(a.config.SystemAccount, subject, nil, jsapi.AppendJSON(nil, build()))
	}
}

// adviseGroup advises about the stream of a group, then about its consumers, which are in the same group. Each of stream
// and consumer is a subject and a type.
func (a *API) adviseGroup(group uint64, stream, consumer [2]string) {
	entry := a.backend.Catalog().ByGroup(group)
	if entry == nil {
		return
	}
	members := a.members(group)
	e := groupEvent{Stream: entry.Name, Leader: members.Leader, Replicas: a.everybody(members), Domain: a.config.Domain}
	if stream[1] == typeStreamQuorum {
		e.Leader = ""
	}
	a.adviseBoth(entry.Account, stream, e)
	if s, ok := a.backend.Stream(group); ok {
		for _, state := range s.Consumers() {
			e.Consumer = state.Name()
			a.adviseBoth(entry.Account, consumer, e)
		}
	}
}

// adviseBoth publishes an event in the account of the stream and, naming the account, in the system account.
func (a *API) adviseBoth(account string, as [2]string, e groupEvent) {
	subject := as[0] + e.Stream
	if e.Consumer != "" {
		subject += "." + e.Consumer
	}
	if a.backend.HasInterest(account, subject) {
		e.Event = a.event(as[1])
		a.backend.Reply(account, subject, nil, jsapi.AppendJSON(nil, e))
	}
	a.adviseSystem(subject, func() any {
		e.Event, e.Account = a.event(as[1]), account
		return e
	})
}

// everybody are the members of a group with its leader, as advisories list them.
func (a *API) everybody(members *jsapi.ClusterInfo) []*jsapi.PeerInfo {
	list := []*jsapi.PeerInfo{}
	if members.Leader != "" {
		leader := &jsapi.PeerInfo{Name: members.Leader, Current: true}
		if server := a.backend.Catalog().ServerNamed(members.Leader); server != nil {
			leader.Peer = peerwire.ServerID(server.ID).Short()
		}
		list = append(list, leader)
	}
	return append(list, members.Replicas...)
}
