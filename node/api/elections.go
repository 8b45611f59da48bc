package api

import (
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/transport/peerwire"
)

// LeaderElected tells who listens that this node leads a group of several members from now on.
func (a *API) LeaderElected(group uint64) {
	if group == meta.Group {
		a.adviseSystem(jsapi.SubjectDomainLeaderElected, func() any {
			all := a.everybody(a.members(meta.Group))
			event := jsapi.DomainLeaderEvent{
				Event: a.event(jsapi.TypeDomainLeaderElected), Replicas: all, Cluster: a.config.Cluster, Domain: a.config.Domain,
			}
			if len(all) > 0 {
				event.Leader = all[0].Peer // by its id, other than in the advisories about streams
			}
			return event
		})
		return
	}
	a.adviseGroup(group,
		[2]string{jsapi.SubjectStreamLeaderElected, jsapi.TypeStreamLeaderElected},
		[2]string{jsapi.SubjectConsumerLeaderElected, jsapi.TypeConsumerLeaderElected})
}

// QuorumLost tells who listens that this node leads the group no longer because too few of the others answer.
func (a *API) QuorumLost(group uint64) {
	if group != meta.Group {
		a.adviseGroup(group,
			[2]string{jsapi.SubjectStreamQuorumLost, jsapi.TypeStreamQuorumLost},
			[2]string{jsapi.SubjectConsumerQuorumLost, jsapi.TypeConsumerQuorumLost})
	}
}

// ServerRemoved tells who listens that the server belongs to the cluster no longer. The leader of the catalog calls it.
func (a *API) ServerRemoved(name, id string) {
	a.adviseSystem(jsapi.SubjectServerRemoved, func() any {
		return jsapi.ServerRemovedEvent{
			Event: a.event(jsapi.TypeServerRemoved), Server: name, ServerID: id, Cluster: a.config.Cluster, Domain: a.config.Domain,
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
	e := jsapi.GroupEvent{Stream: entry.Name, Leader: members.Leader, Replicas: a.everybody(members), Domain: a.config.Domain}
	if stream[1] == jsapi.TypeStreamQuorumLost {
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
func (a *API) adviseBoth(account string, as [2]string, e jsapi.GroupEvent) {
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
