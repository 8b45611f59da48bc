// Package api answers requests on $JS.API: it reads the request, checks it in the order of the reference server, and
// answers from the state of the catalog and the streams, or proposes a command whose result completes the answer.
//
// It promises that a reply about a change is sent after the change is committed and applied, that reads are made behind
// a barrier of their group, and that what this version does not do is answered with the error that says so. It holds no
// state but counters: everything it decides it reads through Backend at that moment. It does not serve pull requests,
// which it only directs to their consumer.
//
// Everything runs in the steps of one engine; callbacks may be called at once or in a later step, each exactly once.
package api

import (
	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
)

// State is what the node knows, read at the moment of the call.
type State interface {
	// Now is the wall clock in unix nanoseconds.
	Now() int64
	// Random is a number that nobody can guess, for names and ids.
	Random() uint64
	// Catalog is the applied state of the catalog.
	Catalog() *meta.Machine
	// Stream is the applied state of the stream of the group; false when this node does not hold it or cannot use it.
	Stream(group uint64) (Stream, bool)
	// Activity says how many pull requests wait at a consumer and whether the deliver subject of a push consumer has
	// interest.
	Activity(group, consumer uint64) (waiting int, bound bool)
	// Mirror says how the stream of the group does as a mirror; nil when it is none.
	Mirror(group uint64) *jsapi.StreamSourceInfo
	// Limits are the limits of the account; false when JetStream is not enabled for it.
	Limits(account string) (*jsapi.Limits, bool)
}

// Groups carry out what changes or reads replicated state.
type Groups interface {
	// Barrier calls then once everything that was committed in the group before the call is applied here, or with the
	// reason for which that cannot be known.
	Barrier(group uint64, then func(*jsapi.Error))
	// Consult calls done with whether this node leads the group and a majority of it answers.
	Consult(group uint64, done func(bool))
	// Propose has the command applied by the group and calls done with its Result effect; Err is set when it was refused
	// or when the group cannot tell. The effect is valid during the call.
	Propose(group uint64, c *command.Command, done func(*effect.Effect))
	// Fetch reads the bytes of a message.
	Fetch(group, seq uint64, done func(Message, Reading))
}

// Broker carries messages to clients.
type Broker interface {
	// Reply publishes a message of the server in the account. It owns header and body.
	Reply(account, subject string, header, body []byte)
	// HasInterest reports whether anybody in the account listens on the subject.
	HasInterest(account, subject string) bool
	// Pull hands a pull request to the delivery of its consumer. The request is valid during the call.
	Pull(group, consumer uint64, r *Request)
}

// Backend is everything the package needs from its node.
type Backend struct {
	State
	Groups
	Broker
	// Cluster is nil on a server on its own.
	Cluster
}

// Reading is what became of a Fetch.
type Reading uint8

// The outcomes of a Fetch. A message that can not be read is not absent, and is never answered as if it were.
const (
	// ReadOK: the message is given.
	ReadOK Reading = iota
	// ReadGone: it was removed meanwhile.
	ReadGone
	// ReadFailed: it is stored and can not be read.
	ReadFailed
)

// Message is a stored message. The slices are not changed by anybody.
type Message struct {
	Header, Payload []byte
}

// Request is a message published to an API subject.
type Request struct {
	// Account is the account of the requester.
	Account string
	// Subject begins with $JS.API., whatever prefix the client used.
	Subject string
	// Reply is where the answer goes; requests without one are carried out and not answered.
	Reply string
	// Header and Body are valid during Handle only.
	Header, Body []byte
	// Client describes the requester for the audit; nil leaves it out.
	Client func() *jsapi.ClientInfo
}

// Outcome is what became of a request.
type Outcome uint8

// The outcomes.
const (
	// Handled: the request is answered now or later, or asks for no answer.
	Handled Outcome = iota
	// Ignored: nobody answers such a subject, and nobody says so.
	Ignored
	// NoResponders: nobody answers, and the requester is told so.
	NoResponders
)

// Config is the fixed part of an API.
type Config struct {
	// ServerName and Domain appear in responses.
	ServerName, Domain string
	// Cluster is the name of the cluster, "" for a server on its own.
	Cluster string
	// UniqueTag is the prefix of the tag in which the servers of a stream have to differ, "" for no such rule.
	UniqueTag string
	// Strict refuses unknown JSON fields.
	Strict bool
	// SystemAccount is the account that has no streams, and is told so on every subject of the API.
	SystemAccount string
	// PendingBytes is the default and the cap of the bytes of one batch of a direct get.
	PendingBytes int
}

// API answers requests. It is not safe for concurrent use.
type API struct {
	config   Config
	backend  Backend
	counters map[string]*jsapi.APIStats
	// unconfirmed are the deletions that were answered as such.
	unconfirmed map[streamName]deletion
}

// New returns an API on the backend.
func New(config Config, backend Backend) *API {
	return &API{config: config, backend: backend, counters: make(map[string]*jsapi.APIStats), unconfirmed: make(map[streamName]deletion)}
}

// SetPendingBytes changes Config.PendingBytes for batches that begin from now on.
func (a *API) SetPendingBytes(n int) { a.config.PendingBytes = n }

// Stats returns the number of requests of the account that were answered, and of those that were refused.
func (a *API) Stats(account string) jsapi.APIStats {
	return *a.stats(account)
}

func (a *API) stats(account string) *jsapi.APIStats {
	s := a.counters[account]
	if s == nil {
		s = &jsapi.APIStats{Level: jsapi.APILevel}
		a.counters[account] = s
	}
	return s
}

// Total returns the sums of all accounts.
func (a *API) Total() jsapi.APIStats {
	total := jsapi.APIStats{Level: jsapi.APILevel}
	for _, s := range a.counters { // order-free: sums
		total.Total += s.Total
		total.Errors += s.Errors
	}
	return total
}

// Handle answers the request, now or later. In a cluster it belongs on the leader of the request's Target.
func (a *API) Handle(r *Request) Outcome {
	e, args, ok := a.endpoint(r)
	if !ok {
		return Ignored
	}
	c := a.call(e, args, r)
	if e.direct != nil {
		return e.direct(c, r)
	}
	if a.clustered() && !e.catalog && c.stream != "" && a.backend.Catalog().Stream(c.account, c.stream) == nil {
		c.kept = r.copied()
	}
	c.begin(r)
	if e.bodyFirst == nil || e.bodyFirst(c, r.Body) {
		if c.admit(r) {
			e.run(c, r.Body)
		}
	}
	return Handled
}

// endpoint returns who answers the request; false when nobody does, and says so.
func (a *API) endpoint(r *Request) (*endpoint, arguments, bool) {
	e, args, ok := find(r.Subject)
	system := a.config.SystemAccount != "" && r.Account == a.config.SystemAccount
	switch {
	case ok && e.system && a.clustered():
		return e, args, system
	case system && (!ok || e.kind != jsapi.TypeAccountInfo):
		return &systemEndpoint, arguments{}, true
	}
	return e, args, ok && !e.system
}

func (a *API) call(e *endpoint, args arguments, r *Request) *call {
	c := &call{api: a, backend: a.backend, endpoint: e, account: r.Account, subject: r.Subject, reply: r.Reply}
	c.stream, c.consumer, c.tail = args.stream, args.consumer, args.tail
	return c
}
