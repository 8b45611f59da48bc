package jsapi

import "time"

const (
	ackWaitDefault       = 30 * time.Second
	maxWaitingDefault    = 512
	maxAckPendingDefault = 1000
	pinnedTTLDefault     = 2 * time.Minute

	inactiveThresholdDefault = 5 * time.Second
)

// Normalize fills in the defaults of a consumer configuration that a client sent and checks everything about it that
// does not depend on other consumers, in the order of the reference server. stream is the normalised configuration of
// its stream. With strictly ("pedantic" in requests) values are refused where they would be corrected. Metadata is
// brought to its stored form. On error the configuration is in an unspecified state.
func (c *ConsumerConfig) Normalize(stream *StreamConfig, limits *Limits, strictly bool) *Error {
	level := c.requiredLevel() // as the client wrote it, before any correction
	if err := c.clearNegatives(strictly); err != nil {
		return err
	}
	if err := c.fillDefaults(stream, limits, strictly); err != nil {
		return err
	}
	for _, check := range []func(*StreamConfig, *Limits) *Error{
		c.checkNames, c.checkAcks, c.checkPush, c.checkPull, c.checkStreamLimits, c.checkFilters, c.checkStart,
		c.checkMisc, c.checkPriority, c.checkSupported, c.checkNameLength,
	} {
		if err := check(stream, limits); err != nil {
			return err
		}
	}
	c.Metadata = storedMetadata(c.Metadata, level)
	return nil
}

func (c *ConsumerConfig) clearNegatives(strictly bool) *Error {
	heartbeat, expires := int(c.IdleHeartbeat), int(c.MaxExpires)
	inactive, pinned := int(c.InactiveThreshold), int(c.PriorityTimeout)
	for _, field := range []struct {
		value *int
		floor int
		text  string
	}{
		{&c.MaxDeliver, -1, "max_deliver must be set to -1"},
		{&c.MaxWaiting, 0, "max_waiting must not be negative"},
		{&c.MaxAckPending, -1, "max_ack_pending must be set to -1"},
		{&c.MaxBatch, 0, "max_batch must not be negative"},
		{&expires, 0, "max_expires must not be negative"},
		{&c.MaxBytes, 0, "max_bytes must not be negative"},
		{&heartbeat, 0, "idle_heartbeat must not be negative"},
		{&inactive, 0, "inactive_threshold must not be negative"},
		{&pinned, 0, "priority_timeout must not be negative"},
	} {
		if *field.value < field.floor {
			if strictly {
				return pedantic(field.text)
			}
			*field.value = field.floor
		}
	}
	c.IdleHeartbeat, c.MaxExpires = time.Duration(heartbeat), time.Duration(expires)
	c.InactiveThreshold, c.PriorityTimeout = time.Duration(inactive), time.Duration(pinned)
	if c.MaxDeliver == 0 {
		c.MaxDeliver = -1
	}
	return nil
}

func (c *ConsumerConfig) fillDefaults(stream *StreamConfig, limits *Limits, strictly bool) *Error {
	if !c.Push() && c.MaxWaiting == 0 {
		c.MaxWaiting = maxWaitingDefault
	}
	if c.AckWait == 0 && (c.AckPolicy == AckExplicit || c.AckPolicy == AckAll) {
		c.AckWait = ackWaitDefault
	}
	if len(c.BackOff) > 0 {
		if strictly && c.AckWait != c.BackOff[0] {
			return pedantic("first backoff value has to equal batch AckWait")
		}
		c.AckWait = c.BackOff[0]
	}
	if c.MaxAckPending == 0 {
		if strictly && stream.ConsumerLimits.MaxAckPending > 0 {
			return pedantic("max_ack_pending must be set if it's configured in stream limits")
		}
		c.MaxAckPending = stream.ConsumerLimits.MaxAckPending
	}
	if c.InactiveThreshold == 0 {
		if strictly && stream.ConsumerLimits.InactiveThreshold > 0 {
			return pedantic("inactive_threshold must be set if it's configured in stream limits")
		}
		c.InactiveThreshold = stream.ConsumerLimits.InactiveThreshold
	}
	if c.MaxAckPending == 0 && c.AckPolicy != AckNone {
		c.MaxAckPending = lowestLimit(maxAckPendingDefault, limits.ServerMaxAckPending, limits.Account.MaxAckPending)
	}
	if !c.Push() && c.MaxBatch == 0 && limits.MaxRequestBatch > 0 {
		if strictly {
			return pedantic("max_request_batch must be set if it's JetStream limits are set")
		}
		c.MaxBatch = limits.MaxRequestBatch
	}
	if c.PriorityPolicy == PriorityPinnedClient && c.PriorityTimeout == 0 {
		c.PriorityTimeout = pinnedTTLDefault
	}
	return nil
}

// FillInactiveThreshold gives a consumer without durable name the threshold of ephemerals when it has none. old is the
// present configuration, nil for a new consumer: a consumer that began as a durable one never gets it by default, so
// that an update cannot make it disappear.
func (c *ConsumerConfig) FillInactiveThreshold(old *ConsumerConfig) {
	if c.Durable == "" && c.InactiveThreshold == 0 && (old == nil || old.Durable == "" && old.InactiveThreshold > 0) {
		c.InactiveThreshold = inactiveThresholdDefault
	}
}

// lowestLimit returns value, or a limit that is lower. Limits that are not positive do not count.
func lowestLimit(value int, limits ...int) int {
	for _, limit := range limits {
		if limit > 0 && limit < value {
			value = limit
		}
	}
	return value
}

// requiredLevel is the API level that the features of the configuration need (ADR-44).
func (c *ConsumerConfig) requiredLevel() int {
	switch {
	case c.AckPolicy == AckFlowControl:
		return 4
	case c.PauseUntil != nil && *c.PauseUntil != 0,
		c.PriorityPolicy != PriorityNone, c.PriorityTimeout != 0, len(c.PriorityGroups) > 0:
		return 1
	}
	return 0
}
