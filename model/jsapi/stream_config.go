package jsapi

import (
	"maps"
	"slices"
	"time"
)

// StreamConfig is the configuration of a stream. The order of the fields is the order of the JSON. A config that went
// through Normalize has every default filled in. Configs are values that nobody changes after Normalize; whoever wants
// to change one clones it first.
type StreamConfig struct {
	Name                   string            `json:"name"`
	Description            string            `json:"description,omitempty"`
	Subjects               []string          `json:"subjects,omitempty"`
	Retention              RetentionPolicy   `json:"retention"`
	MaxConsumers           int               `json:"max_consumers"`
	MaxMsgs                int64             `json:"max_msgs"`
	MaxBytes               int64             `json:"max_bytes"`
	MaxAge                 time.Duration     `json:"max_age"`
	MaxMsgsPerSubject      int64             `json:"max_msgs_per_subject"`
	MaxMsgSize             int32             `json:"max_msg_size,omitempty"`
	Discard                DiscardPolicy     `json:"discard"`
	Storage                StorageType       `json:"storage"`
	Replicas               int               `json:"num_replicas"`
	NoAck                  bool              `json:"no_ack,omitempty"`
	DuplicateWindow        time.Duration     `json:"duplicate_window,omitempty"`
	Placement              *Placement        `json:"placement,omitempty"`
	Mirror                 *StreamSource     `json:"mirror,omitempty"`
	Sources                []*StreamSource   `json:"sources,omitempty"`
	Compression            Compression       `json:"compression"`
	FirstSeq               uint64            `json:"first_seq,omitempty"`
	SubjectTransform       *SubjectTransform `json:"subject_transform,omitempty"`
	Republish              *Republish        `json:"republish,omitempty"`
	AllowDirect            bool              `json:"allow_direct"`
	MirrorDirect           bool              `json:"mirror_direct"`
	DiscardNewPerSubject   bool              `json:"discard_new_per_subject,omitempty"`
	Sealed                 bool              `json:"sealed"`
	DenyDelete             bool              `json:"deny_delete"`
	DenyPurge              bool              `json:"deny_purge"`
	AllowRollup            bool              `json:"allow_rollup_hdrs"`
	ConsumerLimits         ConsumerLimits    `json:"consumer_limits"`
	AllowMsgTTL            bool              `json:"allow_msg_ttl"`
	SubjectDeleteMarkerTTL time.Duration     `json:"subject_delete_marker_ttl,omitempty"`
	AllowMsgCounter        bool              `json:"allow_msg_counter,omitempty"`
	AllowAtomic            bool              `json:"allow_atomic,omitempty"`
	AllowMsgSchedules      bool              `json:"allow_msg_schedules,omitempty"`
	PersistMode            PersistMode       `json:"persist_mode,omitempty"`
	AllowBatched           bool              `json:"allow_batched,omitempty"`
	Metadata               map[string]string `json:"metadata,omitempty"`
}

// ConsumerLimits are the defaults and caps that a stream sets for its consumers.
type ConsumerLimits struct {
	InactiveThreshold time.Duration `json:"inactive_threshold,omitempty"`
	MaxAckPending     int           `json:"max_ack_pending,omitempty"`
}

// Placement says on which servers a stream may live.
type Placement struct {
	Cluster   string   `json:"cluster,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	Preferred string   `json:"preferred,omitempty"`
}

// StreamSource names a stream from which messages are copied.
type StreamSource struct {
	Name              string                `json:"name"`
	OptStartSeq       uint64                `json:"opt_start_seq,omitempty"`
	OptStartTime      *Time                 `json:"opt_start_time,omitempty"`
	FilterSubject     string                `json:"filter_subject,omitempty"`
	SubjectTransforms []SubjectTransform    `json:"subject_transforms,omitempty"`
	External          *ExternalStream       `json:"external,omitempty"`
	Consumer          *StreamConsumerSource `json:"consumer,omitempty"`
}

// StreamConsumerSource names a durable consumer of the origin that feeds a mirror or source.
type StreamConsumerSource struct {
	Name           string `json:"name,omitempty"`
	DeliverSubject string `json:"deliver_subject,omitempty"`
}

// ExternalStream is the way to a stream in another account or domain.
type ExternalStream struct {
	APIPrefix     string `json:"api"`
	DeliverPrefix string `json:"deliver"`
}

// SubjectTransform rewrites subjects that match Source.
type SubjectTransform struct {
	Source      string `json:"src"`
	Destination string `json:"dest"`
}

// Republish names the subject to which stored messages are published again.
type Republish struct {
	Source      string `json:"src,omitempty"`
	Destination string `json:"dest"`
	HeadersOnly bool   `json:"headers_only,omitempty"`
}

// Clone returns a copy that shares no memory with c.
func (c *StreamConfig) Clone() *StreamConfig {
	clone := *c
	clone.Subjects = slices.Clone(c.Subjects)
	clone.Metadata = maps.Clone(c.Metadata)
	if c.Placement != nil {
		placement := *c.Placement
		placement.Tags = slices.Clone(placement.Tags)
		clone.Placement = &placement
	}
	if c.Mirror != nil {
		clone.Mirror = c.Mirror.clone()
	}
	if c.Sources != nil {
		clone.Sources = make([]*StreamSource, len(c.Sources))
		for i, source := range c.Sources {
			clone.Sources[i] = source.clone()
		}
	}
	if c.SubjectTransform != nil {
		transform := *c.SubjectTransform
		clone.SubjectTransform = &transform
	}
	if c.Republish != nil {
		republish := *c.Republish
		clone.Republish = &republish
	}
	return &clone
}

func (s *StreamSource) clone() *StreamSource {
	if s == nil {
		return nil
	}
	clone := *s
	if s.OptStartTime != nil {
		at := *s.OptStartTime
		clone.OptStartTime = &at
	}
	clone.SubjectTransforms = slices.Clone(s.SubjectTransforms)
	if s.External != nil {
		external := *s.External
		clone.External = &external
	}
	if s.Consumer != nil {
		consumer := *s.Consumer
		clone.Consumer = &consumer
	}
	return &clone
}
