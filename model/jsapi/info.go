package jsapi

import "time"

// StreamInfo describes a stream to clients.
type StreamInfo struct {
	Config     StreamConfig        `json:"config"`
	Created    Time                `json:"created"`
	State      StreamState         `json:"state"`
	Domain     string              `json:"domain,omitempty"`
	Cluster    *ClusterInfo        `json:"cluster,omitempty"`
	Mirror     *StreamSourceInfo   `json:"mirror,omitempty"`
	Sources    []*StreamSourceInfo `json:"sources,omitempty"`
	Alternates []StreamAlternate   `json:"alternates,omitempty"`
	TimeStamp  Time                `json:"ts"`
}

// StreamState is what a stream holds. An empty stream has FirstSeq == LastSeq+1 once it held a message.
type StreamState struct {
	Msgs        uint64            `json:"messages"`
	Bytes       uint64            `json:"bytes"`
	FirstSeq    uint64            `json:"first_seq"`
	FirstTime   Time              `json:"first_ts"`
	LastSeq     uint64            `json:"last_seq"`
	LastTime    Time              `json:"last_ts"`
	NumSubjects int               `json:"num_subjects,omitempty"`
	Subjects    map[string]uint64 `json:"subjects,omitempty"`
	NumDeleted  int               `json:"num_deleted,omitempty"`
	Deleted     []uint64          `json:"deleted,omitempty"`
	Lost        *LostData         `json:"lost,omitempty"`
	Consumers   int               `json:"consumer_count"`
}

// LostData lists messages that storage lost.
type LostData struct {
	Msgs  []uint64 `json:"msgs"`
	Bytes uint64   `json:"bytes"`
}

// StreamAlternate is another stream that holds the same messages.
type StreamAlternate struct {
	Name    string `json:"name"`
	Domain  string `json:"domain,omitempty"`
	Cluster string `json:"cluster"`
}

// StreamSourceInfo is the state of a mirror or source. Active is the time since the origin was heard of, -1 for never; clients
// take 0 for never, too.
type StreamSourceInfo struct {
	Name              string             `json:"name"`
	External          *ExternalStream    `json:"external,omitempty"`
	Lag               uint64             `json:"lag"`
	Active            time.Duration      `json:"active"`
	Error             *Error             `json:"error,omitempty"`
	FilterSubject     string             `json:"filter_subject,omitempty"`
	SubjectTransforms []SubjectTransform `json:"subject_transforms,omitempty"`
}

// ConsumerInfo describes a consumer to clients.
type ConsumerInfo struct {
	Stream         string               `json:"stream_name"`
	Name           string               `json:"name"`
	Created        Time                 `json:"created"`
	Config         *ConsumerConfig      `json:"config,omitempty"`
	Delivered      SequenceInfo         `json:"delivered"`
	AckFloor       SequenceInfo         `json:"ack_floor"`
	NumAckPending  int                  `json:"num_ack_pending"`
	NumRedelivered int                  `json:"num_redelivered"`
	NumWaiting     int                  `json:"num_waiting"`
	NumPending     uint64               `json:"num_pending"`
	Cluster        *ClusterInfo         `json:"cluster,omitempty"`
	PushBound      bool                 `json:"push_bound,omitempty"`
	Paused         bool                 `json:"paused,omitempty"`
	PauseRemaining time.Duration        `json:"pause_remaining,omitempty"`
	TimeStamp      Time                 `json:"ts"`
	PriorityGroups []PriorityGroupState `json:"priority_groups,omitempty"`
}

// SequenceInfo is a position as consumer sequence and stream sequence. Last is the time of the last activity.
type SequenceInfo struct {
	Consumer uint64 `json:"consumer_seq"`
	Stream   uint64 `json:"stream_seq"`
	Last     *Time  `json:"last_active,omitempty"`
}

// PriorityGroupState is the pin of a priority group.
type PriorityGroupState struct {
	Group          string `json:"group"`
	PinnedClientID string `json:"pinned_client_id,omitempty"`
	PinnedTime     Time   `json:"pinned_ts"`
}

// StoredMsg is a message in the answer to STREAM.MSG.GET; header and data are base64 in JSON.
type StoredMsg struct {
	Subject string `json:"subject"`
	Seq     uint64 `json:"seq"`
	Header  []byte `json:"hdrs,omitempty"`
	Data    []byte `json:"data,omitempty"`
	Time    Time   `json:"time"`
}
