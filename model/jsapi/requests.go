package jsapi

import "time"

// Paged is the part of a request that selects a page.
type Paged struct {
	Offset int `json:"offset"`
}

// StreamConfigRequest is the body of STREAM.CREATE and STREAM.UPDATE.
type StreamConfigRequest struct {
	StreamConfig
	Pedantic bool `json:"pedantic,omitempty"`
}

// StreamInfoRequest is the body of STREAM.INFO.
type StreamInfoRequest struct {
	Paged
	DeletedDetails bool   `json:"deleted_details,omitempty"`
	SubjectsFilter string `json:"subjects_filter,omitempty"`
}

// StreamsRequest is the body of STREAM.NAMES and STREAM.LIST. Subject keeps the streams that may hold such subjects.
type StreamsRequest struct {
	Paged
	Subject string `json:"subject,omitempty"`
}

// PurgeRequest is the body of STREAM.PURGE. Sequence removes messages below it, Keep leaves the last messages.
type PurgeRequest struct {
	Sequence uint64 `json:"seq,omitempty"`
	Filter   string `json:"filter,omitempty"`
	Keep     uint64 `json:"keep,omitempty"`
}

// MsgDeleteRequest is the body of STREAM.MSG.DELETE.
type MsgDeleteRequest struct {
	Seq     uint64 `json:"seq"`
	NoErase bool   `json:"no_erase,omitempty"`
}

// MsgGetRequest is the body of STREAM.MSG.GET and DIRECT.GET.
type MsgGetRequest struct {
	Seq       uint64   `json:"seq,omitempty"`
	LastFor   string   `json:"last_by_subj,omitempty"`
	NextFor   string   `json:"next_by_subj,omitempty"`
	Batch     int      `json:"batch,omitempty"`
	MaxBytes  int      `json:"max_bytes,omitempty"`
	StartTime *Time    `json:"start_time,omitempty"`
	MultiLast []string `json:"multi_last,omitempty"`
	UpToSeq   uint64   `json:"up_to_seq,omitempty"`
	UpToTime  *Time    `json:"up_to_time,omitempty"`
	NoHeaders bool     `json:"no_hdr,omitempty"`
}

// ConsumerCreateRequest is the body of the CONSUMER.CREATE family.
type ConsumerCreateRequest struct {
	Stream   string         `json:"stream_name"`
	Config   ConsumerConfig `json:"config"`
	Action   ConsumerAction `json:"action"`
	Pedantic bool           `json:"pedantic,omitempty"`
}

// ResetRequest is the body of CONSUMER.RESET; 0 goes back to the ack floor.
type ResetRequest struct {
	Seq uint64 `json:"seq,omitempty"`
}

// PullRequest is what a client asks for with CONSUMER.MSG.NEXT (ADR-13, ADR-42).
type PullRequest struct {
	Expires       time.Duration `json:"expires,omitempty"`
	Batch         int           `json:"batch,omitempty"`
	MaxBytes      int           `json:"max_bytes,omitempty"`
	NoWait        bool          `json:"no_wait,omitempty"`
	IdleHeartbeat time.Duration `json:"idle_heartbeat,omitempty"`
	Group         string        `json:"group,omitempty"`
	MinPending    int64         `json:"min_pending,omitempty"`
	MinAckPending int64         `json:"min_ack_pending,omitempty"`
	ID            string        `json:"id,omitempty"`
	Priority      int           `json:"priority,omitempty"`
}
