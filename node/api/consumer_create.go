package api

import (
	"strings"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
)

// decodeConsumer reads the body of a consumer create; the reference server does so before anything else.
func (c *call) decodeConsumer(body []byte) bool {
	c.create = new(jsapi.ConsumerCreateRequest)
	return c.decode(body, c.create)
}

// consumerCreate answers the CONSUMER.CREATE family.
func (c *call) consumerCreate([]byte) {
	config := &c.create.Config
	if err := c.matchSubject(); err != nil {
		c.refuse(err)
		return
	}
	if config.Replicas > 1 && !c.limits.Clustered {
		c.refuse(jsapi.CodeStreamReplicasNotSupported.Err())
		return
	}
	c.withStream(func(entry *meta.Stream, s Stream) {
		var old *jsapi.ConsumerConfig
		if state := s.ConsumerByName(consumerName(config)); state != nil {
			old = state.Config()
			config.PauseUntil = old.PauseUntil
		}
		if err := config.Normalize(s.Config(), c.limits, c.create.Pedantic); err != nil {
			c.refuse(err)
			return
		}
		config.FillInactiveThreshold(old)
		c.consumer = consumerName(config)
		for c.consumer == "" {
			// The configuration of a consumer that the server names has no name.
			if name := jsapi.ConsumerName(c.backend.Random()); s.ConsumerByName(name) == nil {
				c.consumer = name
			}
		}
		if err := c.checkLive(entry, s); err != nil {
			c.refuse(err)
			return
		}
		c.putConsumer(entry)
	})
}

func consumerName(config *jsapi.ConsumerConfig) string {
	if config.Durable != "" {
		return config.Durable
	}
	return config.Name
}

// matchSubject holds the body of a create against its subject, which has three forms: the old one for ephemerals
// (stream), the old one for durables (DURABLE, stream, name), and the present one (stream, name, filter).
func (c *call) matchSubject() *jsapi.Error {
	config := &c.create.Config
	durable := strings.HasPrefix(c.endpoint.words, "CONSUMER.DURABLE.")
	name := c.consumer
	if c.stream != c.create.Stream {
		return jsapi.CodeStreamMismatch.Err()
	}
	legacy := name == ""
	if legacy {
		name = config.Name
	}
	if strings.ContainsAny(name, `\/`) {
		return jsapi.CodeConsumerNameContainsPathSeparators.Err()
	}
	switch {
	case durable && config.Durable == "":
		return jsapi.CodeConsumerDurableNameNotSet.Err()
	case !legacy && config.Durable != "" && config.Durable != name:
		return jsapi.CodeConsumerDurableNameNotMatchSubject.Err()
	case legacy && config.Durable != "":
		return jsapi.CodeConsumerEphemeralWithDurableName.Err()
	}
	config.Name = name
	if c.tail != "" {
		if len(config.FilterSubjects) > 0 {
			return jsapi.CodeConsumerMultipleFiltersNotAllowed.Err()
		}
		if config.FilterSubject != c.tail {
			return jsapi.CodeConsumerCreateFilterSubjectMismatch.Err()
		}
	}
	return nil
}

// checkLive makes the checks that look at soft state: the deliver subject of a bound push consumer stays, and an
// account may allow fewer consumers than the stream. The machine makes all others.
func (c *call) checkLive(entry *meta.Stream, s Stream) *jsapi.Error {
	config := &c.create.Config
	old := s.ConsumerByName(c.consumer)
	if old != nil && config.Push() && old.Config().Push() && config.DeliverSubject != old.Config().DeliverSubject {
		if _, bound := c.backend.Activity(entry.Group, old.ID()); bound {
			return jsapi.CodeConsumerNameExist.Err()
		}
	}
	if old == nil && c.create.Action != jsapi.ActionUpdate {
		if limit := c.limits.ConsumersMax(s.Config()); limit > 0 && s.State().Consumers >= limit {
			return jsapi.CodeMaximumConsumersLimit.Err()
		}
	}
	return nil
}

var actions = [...]uint8{
	jsapi.ActionCreateOrUpdate: command.Upsert,
	jsapi.ActionCreate:         command.CreateOnly,
	jsapi.ActionUpdate:         command.UpdateOnly,
}

// putConsumer proposes the normalised configuration and answers with the consumer as it is then.
func (c *call) putConsumer(entry *meta.Stream) {
	config := &c.create.Config
	put := command.Command{
		Kind: command.PutConsumer, Name: []byte(c.consumer), Action: actions[c.create.Action],
		Config: config.AppendJSON(nil),
	}
	c.backend.Propose(entry.Group, &put, func(r *effect.Effect) {
		if r.Err != nil {
			c.refuse(c.orGone(entry, r.Err))
			return
		}
		s, ok := c.backend.Stream(entry.Group)
		if !ok {
			c.refuse(c.orGone(entry, jsapi.CodeConsumerOffline.Err()))
			return
		}
		state := s.ConsumerByName(c.consumer)
		if state == nil {
			c.refuse(jsapi.CodeConsumerNotFound.Err())
			return
		}
		info := c.describeConsumer(entry, state)
		info.Config = info.Config.Shown()
		c.respond(jsapi.ConsumerCreateResponse{Response: c.response(), ConsumerInfo: info})
	})
}
