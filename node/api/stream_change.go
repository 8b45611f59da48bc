package api

import (
	"strings"
	"time"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
)

// streamCreate answers STREAM.CREATE. A stream that exists with the same configuration is answered as if it were new.
func (c *call) streamCreate(body []byte) {
	var request jsapi.StreamConfigRequest
	if !c.decode(body, &request) {
		return
	}
	config := &request.StreamConfig
	if config.Name != c.stream {
		c.refuse(jsapi.CodeStreamMismatch.Err())
		return
	}
	if strings.ContainsAny(config.Name, `\/`) {
		c.refuse(jsapi.CodeStreamNameContainsPathSeparators.Err())
		return
	}
	if err := config.CheckCreate(); err != nil {
		c.refuse(err)
		return
	}
	if err := config.Normalize(c.limits, request.Pedantic); err != nil {
		c.refuse(err)
		return
	}
	proposal := meta.Create(c.account, config, c.limits)
	c.backend.Propose(meta.Group, &proposal, func(r *effect.Effect) {
		if r.Err != nil {
			c.refuse(r.Err)
			return
		}
		c.created(r.Group, r.Flag)
	})
}

// created answers a create once the stream's group serves.
func (c *call) created(group uint64, isNew bool) {
	entry := c.backend.Catalog().ByGroup(group)
	if entry == nil {
		c.refuse(jsapi.CodeStreamNotFound.Err())
		return
	}
	c.current(entry, func(s Stream) {
		if isNew {
			c.adviseStream(jsapi.SubjectStreamCreated, jsapi.AdvisoryCreate)
		}
		info := c.describe(entry, s)
		info.Domain, info.Cluster = "", nil
		c.respond(jsapi.StreamCreateResponse{Response: c.response(), StreamInfo: info, DidCreate: true})
	})
}

// streamUpdate answers STREAM.UPDATE. The catalog decides, then the stream's group takes the configuration over.
func (c *call) streamUpdate(body []byte) {
	var request jsapi.StreamConfigRequest
	if !c.decode(body, &request) {
		return
	}
	config := &request.StreamConfig
	err := config.Normalize(c.limits, request.Pedantic)
	unplaceable := jsapi.CodeStreamReplicasNotSupported.Is(err) // this one is reported after a missing stream
	switch {
	case err != nil && !unplaceable:
		c.refuse(err)
		return
	case config.Name != c.stream:
		c.refuse(jsapi.CodeStreamMismatch.Err())
		return
	}
	c.withStream(func(entry *meta.Stream, s Stream) {
		if unplaceable {
			c.refuse(err)
			return
		}
		if err := config.CheckUpdate(entry.Config); err != nil {
			c.refuse(err)
			return
		}
		if err := checkConsumerLimits(config, s); err != nil {
			c.refuse(err)
			return
		}
		proposal := meta.Update(c.account, config, c.limits)
		c.backend.Propose(meta.Group, &proposal, func(r *effect.Effect) {
			if r.Err != nil {
				c.refuse(r.Err)
				return
			}
			c.takeOver(r.Group)
		})
	})
}

// takeOver brings the group of an updated stream to the newest configuration of the catalog and answers the update.
func (c *call) takeOver(group uint64) {
	entry := c.backend.Catalog().ByGroup(group)
	if entry == nil {
		c.refuse(jsapi.CodeStreamNotFound.Err())
		return
	}
	put := command.Command{Kind: command.PutStream, Config: entry.JSON, Version: entry.Version}
	c.backend.Propose(group, &put, func(r *effect.Effect) {
		if r.Err != nil {
			c.refuse(c.orGone(entry, r.Err))
			return
		}
		s, ok := c.backend.Stream(group)
		if !ok {
			c.refuse(c.orGone(entry, jsapi.CodeStreamOffline.Err()))
			return
		}
		c.adviseStream(jsapi.SubjectStreamUpdated, jsapi.AdvisoryModify)
		info := c.describe(entry, s)
		info.Cluster = nil
		c.respond(jsapi.StreamUpdateResponse{Response: c.response(), StreamInfo: info})
	})
}

// checkConsumerLimits refuses new limits for consumers that existing consumers exceed.
func checkConsumerLimits(config *jsapi.StreamConfig, s Stream) *jsapi.Error {
	old, limits := s.Config().ConsumerLimits, config.ConsumerLimits
	inactive := newLimit(limits.InactiveThreshold, old.InactiveThreshold)
	pending := newLimit(time.Duration(limits.MaxAckPending), time.Duration(old.MaxAckPending))
	if !inactive && !pending {
		return nil
	}
	var violators []string
	for _, state := range s.Consumers() {
		existing := state.Config()
		if limits.InactiveThreshold > 0 && existing.InactiveThreshold > limits.InactiveThreshold ||
			limits.MaxAckPending > 0 && existing.MaxAckPending > limits.MaxAckPending {
			violators = append(violators, state.Name())
		}
	}
	if len(violators) == 0 {
		return nil
	}
	return jsapi.CodeStreamUpdate.With("change to limits violates consumers: " + strings.Join(violators, ", "))
}

// newLimit reports whether a limit is set and differs from before.
func newLimit(limit, old time.Duration) bool { return limit > 0 && limit != old }

// streamDelete answers STREAM.DELETE.
func (c *call) streamDelete(body []byte) {
	if !c.requireEmpty(body) {
		return
	}
	c.lookup(func(entry *meta.Stream) {
		var consumers []string
		if s, ok := c.backend.Stream(entry.Group); ok {
			for _, state := range s.Consumers() {
				consumers = append(consumers, state.Name())
			}
		}
		proposal := meta.Delete(entry)
		c.backend.Propose(meta.Group, &proposal, func(r *effect.Effect) {
			if r.Err != nil {
				c.refuse(r.Err)
				return
			}
			for _, name := range consumers {
				c.api.ConsumerDeleted(c.account, c.stream, name)
			}
			c.adviseStream(jsapi.SubjectStreamDeleted, jsapi.AdvisoryDelete)
			c.respond(jsapi.SuccessResponse{Response: c.response(), Success: true})
		})
	})
}
