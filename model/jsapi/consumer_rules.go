package jsapi

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"weir/model/subject"
)

func invalidConsumer(format string, args ...any) *Error {
	return CodeConsumerCreate.With(fmt.Sprintf(format, args...))
}

func (c *ConsumerConfig) checkNames(stream *StreamConfig, _ *Limits) *Error {
	switch {
	case c.Name != "" && !ValidName(c.Name):
		return invalidStream(`consumer name can not contain '.', '*', '>', '\', '/'`)
	case c.Durable != "" && !ValidName(c.Durable):
		return invalidStream(`consumer durable name can not contain '.', '*', '>', '\', '/'`)
	case c.Replicas > 0 && c.Replicas > stream.Replicas:
		return CodeConsumerReplicasExceedsStream.Err()
	case c.Replicas < 0:
		return CodeReplicasCountCannotBeNegative.Err()
	case stream.Retention != LimitsRetention && c.Replicas != 0 && c.Replicas != stream.Replicas:
		return CodeConsumerReplicasShouldMatchStream.Err()
	}
	return nil
}

func (c *ConsumerConfig) checkAcks(*StreamConfig, *Limits) *Error {
	for _, wait := range c.BackOff {
		if wait < 0 {
			return CodeConsumerBackOffNegative.Err()
		}
	}
	if c.AckWait < 0 {
		return CodeConsumerAckWaitNegative.Err()
	}
	if c.MaxDeliver != -1 && len(c.BackOff) > c.MaxDeliver {
		return CodeConsumerMaxDeliverBackoff.Err()
	}
	if len(c.Description) > DescriptionBytesMax {
		return CodeConsumerDescriptionTooLong.With(strconv.Itoa(DescriptionBytesMax))
	}
	return nil
}

func (c *ConsumerConfig) checkPush(stream *StreamConfig, _ *Limits) *Error {
	switch {
	case !c.Push():
		return nil
	case subject.HasWildcard(c.DeliverSubject):
		return CodeConsumerDeliverToWildcards.Err()
	case !subject.Valid(c.DeliverSubject):
		return CodeConsumerInvalidDeliverSubject.Err()
	}
	for _, captured := range stream.Subjects {
		if subject.Subset(c.DeliverSubject, captured) {
			return CodeConsumerDeliverCycle.Err()
		}
	}
	switch {
	case c.MaxWaiting != 0:
		return CodeConsumerPushMaxWaiting.Err()
	case c.MaxAckPending > 0 && c.AckPolicy == AckNone:
		return CodeConsumerMaxPendingAckPolicyRequired.Err()
	case c.IdleHeartbeat > 0 && c.IdleHeartbeat < intervalMin:
		return CodeConsumerSmallHeartbeat.Err()
	}
	return nil
}

func (c *ConsumerConfig) checkPull(stream *StreamConfig, limits *Limits) *Error {
	switch {
	case c.Push():
		return nil
	case c.AckPolicy == AckNone && stream.Retention == WorkQueueRetention:
		return CodeConsumerPullRequiresAck.Err()
	case c.RateLimitBitsSec > 0:
		return CodeConsumerPullWithRateLimit.Err()
	case c.IdleHeartbeat > 0:
		return CodeConsumerHBRequiresPush.Err()
	case c.FlowControl:
		return CodeConsumerFCRequiresPush.Err()
	case c.MaxExpires != 0 && c.MaxExpires < time.Millisecond:
		return CodeConsumerMaxRequestExpiresTooSmall.Err()
	case limits.MaxRequestBatch > 0 && c.MaxBatch > limits.MaxRequestBatch:
		return CodeConsumerMaxRequestBatchExceeded.With(strconv.Itoa(limits.MaxRequestBatch))
	}
	return nil
}

func (c *ConsumerConfig) checkStreamLimits(stream *StreamConfig, limits *Limits) *Error {
	for _, limit := range []int{limits.ServerMaxAckPending, limits.Account.MaxAckPending,
		stream.ConsumerLimits.MaxAckPending} {
		if limit > 0 && c.MaxAckPending > limit {
			return CodeConsumerMaxPendingAckExcess.With(strconv.Itoa(limit))
		}
	}
	if limit := stream.ConsumerLimits.InactiveThreshold; limit > 0 && c.InactiveThreshold > limit {
		return CodeConsumerInactiveThresholdExcess.With(limit.String())
	}
	if c.Direct && !c.Push() {
		return CodeConsumerDirectRequiresPush.Err()
	}
	if c.Direct && c.Durable != "" {
		return CodeConsumerDirectRequiresEphemeral.Err()
	}
	return nil
}

func (c *ConsumerConfig) checkFilters(*StreamConfig, *Limits) *Error {
	if c.FilterSubject != "" && len(c.FilterSubjects) > 0 {
		return CodeConsumerDuplicateFilterSubjects.Err()
	}
	if c.FilterSubject != "" && !subject.Valid(c.FilterSubject) {
		return invalidStream("invalid subject")
	}
	for _, filter := range c.FilterSubjects {
		if filter == "" {
			return CodeConsumerEmptyFilter.Err()
		}
	}
	for i, filter := range c.FilterSubjects {
		if !subject.Valid(filter) {
			return invalidStream("invalid subject")
		}
		for j, other := range c.FilterSubjects {
			if i != j && subject.Subset(filter, other) {
				return CodeConsumerOverlappingSubjectFilters.Err()
			}
		}
	}
	return nil
}

func (c *ConsumerConfig) checkStart(*StreamConfig, *Limits) *Error {
	policy := strings.ReplaceAll(c.DeliverPolicy.String(), "_", " ")
	conflict := func(text string) *Error {
		return CodeConsumerInvalidPolicy.With("consumer delivery policy is deliver " + policy + ", but optional " + text)
	}
	if c.DeliverPolicy == DeliverByStartSequence {
		if c.OptStartSeq == 0 {
			return conflict("start sequence is not set")
		}
	}
	if c.DeliverPolicy == DeliverByStartTime {
		if c.OptStartTime == nil {
			return conflict("start time is not set")
		}
		if c.OptStartSeq != 0 {
			return conflict("start start sequence is also set") // the reference server says it like this
		}
		return nil
	}
	if c.DeliverPolicy != DeliverByStartSequence && c.OptStartSeq > 0 {
		return conflict("start sequence is also set")
	}
	if c.OptStartTime != nil {
		return conflict("start time is also set")
	}
	if c.DeliverPolicy == DeliverLastPerSubject && c.FilterSubject == "" && len(c.FilterSubjects) == 0 {
		return conflict("filter subject is not set")
	}
	return nil
}

func (c *ConsumerConfig) checkMisc(*StreamConfig, *Limits) *Error {
	if c.SampleFrequency != "" {
		freq, err := strconv.Atoi(strings.TrimSuffix(c.SampleFrequency, "%"))
		if err != nil {
			return CodeConsumerInvalidSampling.With(err.Error())
		}
		if freq < 0 {
			return CodeConsumerInvalidSampling.With("value must not be negative")
		}
	}
	switch {
	case c.FlowControl && c.IdleHeartbeat == 0:
		return CodeConsumerWithFlowControlNeedsHeartbeats.Err()
	case c.Durable != "" && c.Name != "" && c.Name != c.Durable:
		return CodeConsumerCreateDurableAndNameMismatch.Err()
	case metadataBytes(c.Metadata) > MetadataBytesMax:
		return CodeConsumerMetadataLength.With(strconv.Itoa(MetadataBytesMax/1024) + "KB")
	}
	return nil
}

// SamplePercent returns the share of acknowledgements for which a metric is published, 0 to 100.
func (c *ConsumerConfig) SamplePercent() int {
	freq, err := strconv.Atoi(strings.TrimSuffix(c.SampleFrequency, "%"))
	if err != nil {
		return 0
	}
	return min(max(freq, 0), 100)
}

var groupName = regexp.MustCompile(`^[a-zA-Z0-9/_=-]{1,16}$`)

func (c *ConsumerConfig) checkPriority(*StreamConfig, *Limits) *Error {
	if c.PriorityPolicy == PriorityNone {
		if len(c.PriorityGroups) > 0 {
			return CodeConsumerPriorityGroupWithPolicyNone.Err()
		}
		if c.PriorityTimeout > 0 {
			return CodeConsumerPinnedTTLWithoutPriorityPolicyNone.Err()
		}
		return nil
	}
	if c.Push() {
		return CodeConsumerPushWithPriorityGroup.Err()
	}
	if len(c.PriorityGroups) == 0 {
		return CodeConsumerPriorityPolicyWithoutGroup.Err()
	}
	for _, group := range c.PriorityGroups {
		if group == "" {
			return CodeConsumerEmptyGroupName.Err()
		}
		if !groupName.MatchString(group) {
			return CodeConsumerInvalidGroupName.Err()
		}
	}
	return nil
}

// checkSupported refuses the features that this version of the server does not have, rather than to ignore them.
func (c *ConsumerConfig) checkSupported(*StreamConfig, *Limits) *Error {
	for _, feature := range []struct {
		wanted bool
		name   string
	}{
		{c.AckPolicy == AckFlowControl, "ack_policy flow_control is"},
		{c.PauseUntil != nil && *c.PauseUntil != 0, "pause_until is"},
		{c.PriorityPolicy != PriorityNone, "priority_policy is"},
		{c.Direct, "direct is"},
		{c.Sourcing, "sourcing is"},
	} {
		if feature.wanted {
			return invalidConsumer("%s", unsupported(feature.name))
		}
	}
	return nil
}

func (c *ConsumerConfig) checkNameLength(*StreamConfig, *Limits) *Error {
	if len(c.Durable) > NameBytesMax {
		return CodeConsumerNameTooLong.With(strconv.Itoa(NameBytesMax))
	}
	if len(c.Name) > NameBytesMax {
		return invalidConsumer("error creating store for consumer")
	}
	return nil
}

// CheckUpdate checks that a consumer with the configuration old may get c, both normalised. Whether a changed deliver
// subject is still bound (10013) depends on live subscriptions and is up to the caller.
func (c *ConsumerConfig) CheckUpdate(old *ConsumerConfig) *Error {
	for _, rule := range []struct {
		broken bool
		text   string
	}{
		{c.DeliverPolicy != old.DeliverPolicy, "deliver policy can not be updated"},
		{c.MemoryStorage != old.MemoryStorage, "storage type can not be updated"},
		{c.Direct != old.Direct, "direct can not be updated"},
		{c.Sourcing != old.Sourcing, "sourcing can not be updated"},
		{c.OptStartSeq != old.OptStartSeq, "start sequence can not be updated"},
		{!sameTime(c.OptStartTime, old.OptStartTime), "start time can not be updated"},
		{c.AckPolicy != old.AckPolicy, "ack policy can not be updated"},
		{c.ReplayPolicy != old.ReplayPolicy, "replay policy can not be updated"},
		{c.IdleHeartbeat != old.IdleHeartbeat, "heart beats can not be updated"},
		{c.FlowControl != old.FlowControl, "flow control can not be updated"},
		{c.Push() && !old.Push(), "can not update pull consumer to push based"},
		{!c.Push() && old.Push(), "can not update push consumer to pull based"},
		{c.MaxWaiting != old.MaxWaiting, "max waiting can not be updated"},
	} {
		if rule.broken {
			return invalidConsumer("%s", rule.text)
		}
	}
	return nil
}

func sameTime(a, b *Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
