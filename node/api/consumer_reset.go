package api

import (
	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
)

// reset answers CONSUMER.RESET: the consumer delivers again from a sequence, or after its ack floor. As by the reference
// server, requests for a consumer that does not exist are not answered, and none are counted.
func (c *call) reset(r *Request) Outcome {
	entry := c.backend.Catalog().Stream(c.account, c.stream)
	if entry == nil || r.Reply == "" {
		return Ignored
	}
	s, ok := c.backend.Stream(entry.Group)
	if !ok {
		return Ignored
	}
	state := s.ConsumerByName(c.consumer)
	if state == nil {
		return Ignored
	}
	if !levelServed(r.Header) {
		c.refuseReset(jsapi.CodeRequiredApiLevel.Err())
		return Handled
	}
	var request jsapi.ResetRequest
	if len(r.Body) > 0 {
		if err := jsapi.Decode(r.Body, &request, false); err != nil {
			c.refuseReset(err)
			return Handled
		}
	}
	back := command.Command{Kind: command.Reset, Consumer: state.ID(), StreamSeq: request.Seq}
	c.backend.Propose(entry.Group, &back, func(result *effect.Effect) {
		if result.Err != nil {
			c.refuseReset(c.orGone(entry, result.Err))
			return
		}
		info := c.describeConsumer(entry, state)
		info.Config = info.Config.Shown()
		c.respondQuietly(jsapi.ResetResponse{Response: c.response(), ConsumerInfo: info, ResetSeq: result.Seq})
	})
	return Handled
}

func (c *call) refuseReset(err *jsapi.Error) {
	c.respondQuietly(c.endpoint.failed(jsapi.Response{Type: c.endpoint.kind, Error: err}))
}
