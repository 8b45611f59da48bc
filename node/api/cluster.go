package api

import (
	"weir/model/jsapi"
	"weir/model/meta"
)

// Cluster is what the node knows of other servers, and what it asks of them. A server on its own has none.
type Cluster interface {
	// Members describes the replicas of the group as they are known here: the leader, "" when none is known, and the other
	// members, ascending by name. Groups of one replica have neither name nor members besides the leader.
	Members(group uint64) *jsapi.ClusterInfo
	// Leads reports whether this node leads the group and serves it.
	Leads(group uint64) bool
	// Leader is the id of the server that leads the group, 0 when none is known.
	Leader(group uint64) uint64
	// Servers are the ids of the servers with JetStream that can be reached now, this one included, ascending.
	Servers() []uint64
	// Ask puts the question to the leader of its group, or to its server. It waits for a leader, and asks again when the
	// one asked cannot answer or is lost, for WaitNanos. It calls done with what API.Answer gave, or with nil when time
	// was over. The question is the callee's.
	Ask(q *Question, done func(answer []byte))
	// StepDown moves the leadership of the group, which is led here, to the server of that name, or to whichever follows
	// best when the name is empty. It calls done when this node leads it no more, or with why it still does.
	StepDown(group uint64, to string, done func(*jsapi.Error))
	// Ended calls done once the end of the group, at the index of the catalog, is known here, even after a restart; with
	// false when that takes too long.
	Ended(group, index uint64, done func(known bool))
	// LeasesEnd calls done once all leases to read have ended that leaders may have now; at once where there are none.
	LeasesEnd(done func())
	// Forward dispatches a request as if it had just arrived here. The request is the callee's.
	Forward(r *Request)
}

// Question is what the API of one server asks that of another.
type Question struct {
	// What is one of AskInfo, AskLimits, AskEnded, AskUsage, AskMajority.
	What string
	// Group, when it is not 0, is the group whose leader is asked; otherwise Server is.
	Group, Server uint64
	// Account is the account that the question is about, for AskUsage.
	Account string
	// Version is the version of the stream's configuration that the answer has to be about at least, for AskInfo.
	Version uint64
	// Body is a configuration, for AskLimits, or a group, for AskEnded.
	Body []byte
	// WaitNanos is how long to wait for an answer.
	WaitNanos int64
}

// The questions.
const (
	// AskInfo asks for a jsapi.StreamInfo.
	AskInfo = "info"
	// AskLimits asks whether the limits for consumers in a configuration suit the consumers that there are.
	AskLimits = "limits"
	// AskEnded asks whether a server knows, even after a restart, that the group in Body (a number) has ended at the index
	// of the catalog in Version.
	AskEnded = "ended"
	// AskUsage asks for the usage of the streams of an account that the server leads.
	AskUsage = "usage"
	// AskMajority asks the leader of a group whether a majority of it answers now.
	AskMajority = "majority"
)

// How long answers of other servers are waited for. Clients wait five seconds.
const (
	createWaitNanos = int64(4_800e6)
	listWaitNanos   = int64(4_000e6)
	usageWaitNanos  = int64(2_000e6)
)

// clustered reports whether other servers take part.
func (a *API) clustered() bool { return a.config.Cluster != "" }

// Target returns the group whose leader answers the request; false for subjects that nobody answers. It is what decides
// where a request is handled: the server that a client is connected to sends it there.
func (a *API) Target(account, subject string) (group uint64, ok bool) {
	e, args, ok := find(subject)
	switch {
	case account == a.config.SystemAccount && account != "":
		return meta.Group, true
	case !ok || e.system:
		return 0, false
	case e.catalog:
		return meta.Group, true
	}
	if entry := a.backend.Catalog().Stream(account, args.stream); entry != nil {
		return entry.Group, true
	}
	return meta.Group, true
}

// Unavailable answers a request whose group has no leader that is known.
func (a *API) Unavailable(r *Request) Outcome {
	e, args, ok := a.endpoint(r)
	if !ok {
		return Ignored
	}
	if e.direct != nil {
		return NoResponders
	}
	c := a.call(e, args, r)
	c.begin(r)
	c.refuse(c.unavailable())
	return Handled
}

// unavailable is why nobody answers: the leader of the catalog, or of the stream, is not known, or no server that holds
// the stream is there.
func (c *call) unavailable() *jsapi.Error {
	entry := c.backend.Catalog().Stream(c.account, c.stream)
	if c.endpoint.catalog || entry == nil {
		return jsapi.CodeClusterNotAvail.Err()
	}
	members := c.backend.Members(entry.Group)
	for _, m := range members.Replicas {
		if !m.Offline {
			return jsapi.CodeClusterNotAvail.Err()
		}
	}
	return jsapi.CodeStreamOffline.Err()
}

// copied is the request with memory of its own.
func (r *Request) copied() *Request {
	kept := *r
	kept.Header, kept.Body = append([]byte(nil), r.Header...), append([]byte(nil), r.Body...)
	return &kept
}
