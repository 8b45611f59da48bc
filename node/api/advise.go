package api

import (
	"weir/model/jsapi"
	"weir/model/meta"
)

// event is the beginning of an advisory.
func (a *API) event(kind string) jsapi.Event {
	return jsapi.Event{
		Type: kind,
		ID:   jsapi.EventID(a.backend.Random(), a.backend.Random()),
		Time: jsapi.Time(a.backend.Now()),
	}
}

func (c *call) audit(response []byte) {
	audit := jsapi.APIAudit{
		Event: c.api.event(jsapi.TypeAPIAudit), Server: c.api.config.ServerName, Subject: c.subject,
		Request: c.body, Response: string(response), Domain: c.api.config.Domain,
	}
	if c.client != nil {
		audit.Client = c.client()
	}
	c.backend.Reply(c.account, jsapi.SubjectAPIAudit, nil, jsapi.AppendJSON(nil, audit))
}

// adviseStream tells who listens that the stream was created, changed or deleted.
func (a *API) adviseStream(entry *meta.Stream, subject, action string) {
	subject += entry.Name
	if !a.backend.HasInterest(entry.Account, subject) {
		return
	}
	a.backend.Reply(entry.Account, subject, nil, jsapi.AppendJSON(nil, jsapi.StreamAction{
		Event: a.event(jsapi.TypeStreamAction), Stream: entry.Name, Action: action, Domain: a.config.Domain,
	}))
}

// StreamEnded tells who listens that the consumers of a stream ended with it. In a cluster, the node that led the stream
// calls it; on a server on its own the answer to the request tells.
func (a *API) StreamEnded(entry *meta.Stream, s Stream) {
	if !a.clustered() {
		return
	}
	for _, state := range s.Consumers() {
		a.ConsumerDeleted(entry.Account, entry.Name, state.Name())
	}
}

// ConsumerCreated tells who listens that a consumer was created. The node calls it for each ConsumerCreated effect of a
// group that it leads: that covers consumers however they came to be.
func (a *API) ConsumerCreated(account, stream, consumer string) {
	a.adviseConsumer(account, stream, consumer, jsapi.AdvisoryCreate)
}

// ConsumerDeleted tells who listens that a consumer was deleted, by request or for inactivity. The node calls it for
// each ConsumerDeleted effect of a group that it leads. Consumers that end with their stream have no such effect; the
// stream's deletion tells about them.
func (a *API) ConsumerDeleted(account, stream, consumer string) {
	a.adviseConsumer(account, stream, consumer, jsapi.AdvisoryDelete)
}

func (a *API) adviseConsumer(account, stream, consumer, action string) {
	subject := jsapi.SubjectConsumerCreated
	if action == jsapi.AdvisoryDelete {
		subject = jsapi.SubjectConsumerDeleted
	}
	subject += stream + "." + consumer
	if !a.backend.HasInterest(account, subject) {
		return
	}
	a.backend.Reply(account, subject, nil, jsapi.AppendJSON(nil, jsapi.ConsumerActionEvent{
		Event: a.event(jsapi.TypeConsumerAction), Stream: stream, Consumer: consumer, Action: action,
		Domain: a.config.Domain,
	}))
}
