package jsapi

import (
	"maps"
	"slices"
	"time"
)

// ConsumerConfig is the configuration of a consumer. The order of the fields is the order of the JSON. A config that
// went through Normalize has every default filled in and is not changed afterwards.
type ConsumerConfig struct {
	Durable           string            `json:"durable_name,omitempty"`
	Name              string            `json:"name,omitempty"`
	Description       string            `json:"description,omitempty"`
	DeliverPolicy     DeliverPolicy     `json:"deliver_policy"`
	OptStartSeq       uint64            `json:"opt_start_seq,omitempty"`
	OptStartTime      *Time             `json:"opt_start_time,omitempty"`
	AckPolicy         AckPolicy         `json:"ack_policy"`
	AckWait           time.Duration     `json:"ack_wait,omitempty"`
	MaxDeliver        int               `json:"max_deliver,omitempty"`
	BackOff           []time.Duration   `json:"backoff,omitempty"`
	FilterSubject     string            `json:"filter_subject,omitempty"`
	FilterSubjects    []string          `json:"filter_subjects,omitempty"`
	ReplayPolicy      ReplayPolicy      `json:"replay_policy"`
	RateLimitBitsSec  uint64            `json:"rate_limit_bps,omitempty"`
	SampleFrequency   string            `json:"sample_freq,omitempty"`
	MaxWaiting        int               `json:"max_waiting,omitempty"`
	MaxAckPending     int               `json:"max_ack_pending,omitempty"`
	FlowControl       bool              `json:"flow_control,omitempty"`
	HeadersOnly       bool              `json:"headers_only,omitempty"`
	MaxBatch          int               `json:"max_batch,omitempty"`
	MaxExpires        time.Duration     `json:"max_expires,omitempty"`
	MaxBytes          int               `json:"max_bytes,omitempty"`
	DeliverSubject    string            `json:"deliver_subject,omitempty"`
	DeliverGroup      string            `json:"deliver_group,omitempty"`
	IdleHeartbeat     time.Duration     `json:"idle_heartbeat,omitempty"`
	InactiveThreshold time.Duration     `json:"inactive_threshold,omitempty"`
	Replicas          int               `json:"num_replicas"`
	MemoryStorage     bool              `json:"mem_storage,omitempty"`
	Direct            bool              `json:"direct,omitempty"`
	Sourcing          bool              `json:"sourcing,omitempty"`
	Metadata          map[string]string `json:"metadata,omitempty"`
	PauseUntil        *Time             `json:"pause_until,omitempty"`
	PriorityGroups    []string          `json:"priority_groups,omitempty"`
	PriorityPolicy    PriorityPolicy    `json:"priority_policy,omitempty"`
	PriorityTimeout   time.Duration     `json:"priority_timeout,omitempty"`
}

// Push reports whether the consumer pushes messages to a subject instead of answering pull requests.
func (c *ConsumerConfig) Push() bool { return c.DeliverSubject != "" }

// Filters returns the subject filters of the consumer, none when it takes every message of the stream. The slice is
// fresh unless it is FilterSubjects itself; do not change it.
func (c *ConsumerConfig) Filters() []string {
	switch {
	case c.FilterSubject != "" && c.FilterSubject != ">":
		return []string{c.FilterSubject}
	case c.FilterSubject == "":
		return c.FilterSubjects
	}
	return nil
}

// Clone returns a copy that shares no memory with c.
func (c *ConsumerConfig) Clone() *ConsumerConfig {
	clone := *c
	clone.BackOff = slices.Clone(c.BackOff)
	clone.FilterSubjects = slices.Clone(c.FilterSubjects)
	clone.Metadata = maps.Clone(c.Metadata)
	clone.PriorityGroups = slices.Clone(c.PriorityGroups)
	if c.OptStartTime != nil {
		at := *c.OptStartTime
		clone.OptStartTime = &at
	}
	if c.PauseUntil != nil {
		at := *c.PauseUntil
		clone.PauseUntil = &at
	}
	return &clone
}
