package jsapi

import "time"

// Limits is what a server and an account allow. Validation of configurations depends on it and on nothing else. The
// zero value has no limits beyond those of the API and belongs to a standalone server.
type Limits struct {
	// DuplicateWindow caps the duplicate window of streams; 0: no cap.
	DuplicateWindow time.Duration `json:"duplicate_window,omitempty"`
	// ServerMaxAckPending caps max_ack_pending of consumers on this server; 0: no cap.
	ServerMaxAckPending int `json:"server_max_ack_pending,omitempty"`
	// MaxRequestBatch caps the batch of pull requests; 0: no cap.
	MaxRequestBatch int `json:"max_request_batch,omitempty"`
	// MaxConsumers is the default number of consumers per stream; 0 means ConsumersDefaultMax, negative none.
	MaxConsumers int `json:"default_max_consumers,omitempty"`
	// ServerMaxMemory and ServerMaxStore are the bytes that streams of all accounts may reserve; 0: no limit.
	ServerMaxMemory int64 `json:"server_max_memory,omitempty"`
	ServerMaxStore  int64 `json:"server_max_store,omitempty"`
	// Account are the limits of the stream's account.
	Account AccountLimits `json:"account"`
	// Clustered is set on servers that can place more than one replica.
	Clustered bool `json:"clustered,omitempty"`
}

// AccountLimits are the limits of one account; -1 means unlimited.
type AccountLimits struct {
	MaxMemory            int64 `json:"max_memory"`
	MaxStore             int64 `json:"max_storage"`
	MaxStreams           int   `json:"max_streams"`
	MaxConsumers         int   `json:"max_consumers"`
	MaxAckPending        int   `json:"max_ack_pending"`
	MemoryMaxStreamBytes int64 `json:"memory_max_stream_bytes"`
	StoreMaxStreamBytes  int64 `json:"storage_max_stream_bytes"`
	MaxBytesRequired     bool  `json:"max_bytes_required"`
}

// Unlimited are the limits of an account for which none were configured.
func Unlimited() AccountLimits {
	return AccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1,
		MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1}
}

// ConsumersMax is the number of consumers that a stream with the configuration may have; 0: no limit. A limit of the
// account wins when it is lower, the default of the server counts only when neither stream nor account set one.
func (l *Limits) ConsumersMax(stream *StreamConfig) int {
	limit := stream.MaxConsumers
	if limit <= 0 || l.Account.MaxConsumers > 0 && l.Account.MaxConsumers < limit {
		limit = l.Account.MaxConsumers
	}
	if limit > 0 {
		return limit
	}
	switch {
	case l.MaxConsumers > 0:
		return l.MaxConsumers
	case l.MaxConsumers == 0:
		return ConsumersDefaultMax
	}
	return 0
}
