package api

import (
	"weir/model/command"
	"weir/model/consumer"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
)

// describeConsumer is what create and info responses say about a consumer, and lists but for the metadata.
func (c *call) describeConsumer(entry *meta.Stream, state *consumer.State) *jsapi.ConsumerInfo {
	info := &jsapi.ConsumerInfo{
		Stream:         entry.Name,
		Name:           state.Name(),
		Created:        jsapi.Time(state.Created()),
		Config:         state.Config(),
		Delivered:      sequenceInfo(state.Delivered()),
		AckFloor:       sequenceInfo(state.AckFloor()),
		NumAckPending:  state.NumAckPending(),
		NumRedelivered: state.NumRedelivered(),
		NumPending:     state.NumPending(),
		TimeStamp:      jsapi.Time(c.backend.Now()),
	}
	if c.api.clustered() {
		info.Cluster = ConsumerMembers(c.api.members(entry.Group), entry, state.Config())
	}
	info.NumWaiting, info.PushBound = c.backend.Activity(entry.Group, state.ID())
	return info
}

// ConsumerMembers describes the group of a consumer to clients, given that of its stream, which it is. Of a consumer with
// one replica no more than its leader is shown, as by the reference server.
func ConsumerMembers(stream *jsapi.ClusterInfo, entry *meta.Stream, config *jsapi.ConsumerConfig) *jsapi.ClusterInfo {
	replicas := config.Replicas
	if replicas == 0 && (config.Durable != "" || entry.Config.Retention != jsapi.LimitsRetention) {
		replicas = entry.Config.Replicas
	}
	if replicas > 1 {
		return stream
	}
	return &jsapi.ClusterInfo{Name: stream.Name, Leader: stream.Leader}
}

func sequenceInfo(at consumer.Position) jsapi.SequenceInfo {
	info := jsapi.SequenceInfo{Consumer: at.Consumer, Stream: at.Stream}
	if at.Last != 0 {
		last := jsapi.Time(at.Last)
		info.Last = &last
	}
	return info
}

// consumerInfo answers CONSUMER.INFO.
func (c *call) consumerInfo([]byte) {
	c.withStream(func(entry *meta.Stream, s Stream) {
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

// consumerNames answers CONSUMER.NAMES.
func (c *call) consumerNames(body []byte) {
	var request jsapi.Paged
	if !c.decodeOptional(body, &request) {
		return
	}
	c.withStream(func(_ *meta.Stream, s Stream) {
		states := s.Consumers()
		response := jsapi.ConsumerNamesResponse{Response: c.response(), Consumers: []string{}}
		var lo, hi int
		response.Page, lo, hi = page(len(states), request.Offset, jsapi.NamesPageMax)
		for _, state := range states[lo:hi] {
			response.Consumers = append(response.Consumers, state.Name())
		}
		c.respond(response)
	})
}

// consumerList answers CONSUMER.LIST.
func (c *call) consumerList(body []byte) {
	var request jsapi.Paged
	if !c.decodeOptional(body, &request) {
		return
	}
	c.withStream(func(entry *meta.Stream, s Stream) {
		states := s.Consumers()
		response := jsapi.ConsumerListResponse{Response: c.response(), Consumers: []*jsapi.ConsumerInfo{}}
		var lo, hi int
		response.Page, lo, hi = page(len(states), request.Offset, jsapi.ListPageMax)
		for _, state := range states[lo:hi] {
			response.Consumers = append(response.Consumers, c.describeConsumer(entry, state))
		}
		c.respond(response)
	})
}

// consumerDelete answers CONSUMER.DELETE.
func (c *call) consumerDelete(body []byte) {
	if !c.requireEmpty(body) {
		return
	}
	c.lookup(func(entry *meta.Stream) {
		del := command.Command{Kind: command.DeleteConsumer, Name: []byte(c.consumer)}
		c.backend.Propose(entry.Group, &del, func(r *effect.Effect) {
			if r.Err != nil {
				c.refuse(c.orGone(entry, r.Err))
				return
			}
			c.respond(jsapi.SuccessResponse{Response: c.response(), Success: true})
		})
	})
}
