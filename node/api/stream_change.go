package api

import (
	"strings"
	"time"

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
	if err := c.normalize(&request); err != nil {
		c.refuse(err)
		return
	}
	proposal := c.view(nil).Create(c.account, config, c.limits)
	c.backend.Propose(meta.Group, &proposal, func(r *effect.Effect) {
		if r.Err != nil {
			c.refuse(r.Err)
			return
		}
		c.created(r.Group, r.Flag)
	})
}

// normalize checks what can be known of a configuration before the catalog decides, and fills in its defaults.
func (c *call) normalize(request *jsapi.StreamConfigRequest) *jsapi.Error {
	return request.NormalizeAmong(c.limits, request.Pedantic, func(config *jsapi.StreamConfig) *jsapi.Error {
		return c.backend.Catalog().CheckOrigin(c.account, config, request.Pedantic)
	})
}

// created answers a create once the stream's group serves.
func (c *call) created(group uint64, isNew bool) {
	entry := c.backend.Catalog().ByGroup(group)
	if entry == nil {
		c.refuse(jsapi.CodeStreamNotFound.Err())
		return
	}
	c.info(entry, 0, createWaitNanos, func(info *jsapi.StreamInfo, err *jsapi.Error) {
		if err != nil {
			c.refuse(c.orGone(entry, err))
			return
		}
		if isNew {
			c.api.adviseStream(entry, jsapi.SubjectStreamCreated, jsapi.AdvisoryCreate)
		}
		info.Config, info.Domain = info.Config.Shown(), ""
		if !c.api.clustered() {
			info.Cluster, isNew = nil, true // a server on its own says so of every stream that is as it was asked for
		}
		c.respond(jsapi.StreamCreateResponse{Response: c.response(), StreamInfo: info, DidCreate: isNew})
	})
}

// streamUpdate answers STREAM.UPDATE. The catalog decides, then the stream's group takes the configuration over.
func (c *call) streamUpdate(body []byte) {
	var request jsapi.StreamConfigRequest
	if !c.decode(body, &request) {
		return
	}
	config := &request.StreamConfig
	err := c.normalize(&request)
	unplaceable := jsapi.CodeStreamReplicasNotSupported.Is(err) // this one is reported after a missing stream
	switch {
	case err != nil && !unplaceable:
		c.refuse(err)
		return
	case config.Name != c.stream:
		c.refuse(jsapi.CodeStreamMismatch.Err())
		return
	}
	c.lookup(func(entry *meta.Stream) {
		if unplaceable {
			c.refuse(err)
			return
		}
		if err := config.CheckUpdate(entry.Config); err != nil {
			c.refuse(err)
			return
		}
		c.checkLimits(entry, config, func(err *jsapi.Error) {
			if err != nil {
				c.refuse(err)
				return
			}
			proposal := c.view(entry).Update(c.account, config, c.limits)
			c.backend.Propose(meta.Group, &proposal, func(r *effect.Effect) {
				if r.Err != nil {
					c.refuse(r.Err)
					return
				}
				c.updated(r.Group)
			})
		})
	})
}

// updated answers an update once the stream's group has taken the configuration over.
func (c *call) updated(group uint64) {
	entry := c.backend.Catalog().ByGroup(group)
	if entry == nil {
		c.refuse(jsapi.CodeStreamNotFound.Err())
		return
	}
	c.info(entry, entry.Version, createWaitNanos, func(info *jsapi.StreamInfo, err *jsapi.Error) {
		if err != nil {
			c.refuse(c.orGone(entry, err))
			return
		}
		c.api.adviseStream(entry, jsapi.SubjectStreamUpdated, jsapi.AdvisoryModify)
		info.Config = info.Config.Shown()
		if !c.api.clustered() {
			info.Cluster = nil
		} else {
			info.Domain = ""
		}
		c.respond(jsapi.StreamUpdateResponse{Response: c.response(), StreamInfo: info})
	})
}

// checkConsumerLimits refuses new limits for consumers that existing consumers exceed.
func checkConsumerLimits(config *jsapi.StreamConfig, s Stream) *jsapi.Error {
	limits := config.ConsumerLimits
	if !limitsChange(config, s.Config()) {
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

// limitsChange reports whether a configuration sets limits for consumers that were others before.
func limitsChange(config, before *jsapi.StreamConfig) bool {
	old, limits := before.ConsumerLimits, config.ConsumerLimits
	return newLimit(limits.InactiveThreshold, old.InactiveThreshold) ||
		newLimit(time.Duration(limits.MaxAckPending), time.Duration(old.MaxAckPending))
}

// newLimit reports whether a limit is set and differs from before.
func newLimit(limit, old time.Duration) bool { return limit > 0 && limit != old }
