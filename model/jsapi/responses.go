package jsapi

// The types of responses. Clients refuse a response of another type.
const (
	TypeAccountInfo      = "io.nats.jetstream.api.v1.account_info_response"
	TypeStreamCreate     = "io.nats.jetstream.api.v1.stream_create_response"
	TypeStreamUpdate     = "io.nats.jetstream.api.v1.stream_update_response"
	TypeStreamInfo       = "io.nats.jetstream.api.v1.stream_info_response"
	TypeStreamNames      = "io.nats.jetstream.api.v1.stream_names_response"
	TypeStreamList       = "io.nats.jetstream.api.v1.stream_list_response"
	TypeStreamDelete     = "io.nats.jetstream.api.v1.stream_delete_response"
	TypeStreamPurge      = "io.nats.jetstream.api.v1.stream_purge_response"
	TypeMsgGet           = "io.nats.jetstream.api.v1.stream_msg_get_response"
	TypeMsgDelete        = "io.nats.jetstream.api.v1.stream_msg_delete_response"
	TypeStreamSnapshot   = "io.nats.jetstream.api.v1.stream_snapshot_response"
	TypeStreamRestore    = "io.nats.jetstream.api.v1.stream_restore_response"
	TypeStreamStepDown   = "io.nats.jetstream.api.v1.stream_leader_stepdown_response"
	TypeStreamRemovePeer = "io.nats.jetstream.api.v1.stream_remove_peer_response"
	TypeStreamEvacuate   = "io.nats.jetstream.api.v1.stream_evacuate_peer_response"
	TypeStreamCancelMove = "io.nats.jetstream.api.v1.stream_cancel_move_response"
	TypeConsumerCreate   = "io.nats.jetstream.api.v1.consumer_create_response"
	TypeConsumerInfo     = "io.nats.jetstream.api.v1.consumer_info_response"
	TypeConsumerNames    = "io.nats.jetstream.api.v1.consumer_names_response"
	TypeConsumerList     = "io.nats.jetstream.api.v1.consumer_list_response"
	TypeConsumerDelete   = "io.nats.jetstream.api.v1.consumer_delete_response"
	TypeConsumerPause    = "io.nats.jetstream.api.v1.consumer_pause_response"
	TypeConsumerUnpin    = "io.nats.jetstream.api.v1.consumer_unpin_response"
	TypeConsumerReset    = "io.nats.jetstream.api.v1.consumer_reset_response"
	TypeConsumerStepDown = "io.nats.jetstream.api.v1.consumer_leader_stepdown_response"
	TypeConsumerRemove   = "io.nats.jetstream.api.v1.consumer_remove_peer_response"
	TypeConsumerEvacuate = "io.nats.jetstream.api.v1.consumer_evacuate_peer_response"
	TypeMetaStepDown     = "io.nats.jetstream.api.v1.meta_leader_stepdown_response"
	TypeMetaServerRemove = "io.nats.jetstream.api.v1.meta_server_remove_response"
	TypeMetaServerEvac   = "io.nats.jetstream.api.v1.meta_server_evacuate_response"
	TypeMetaRescue       = "io.nats.jetstream.api.v1.meta_rescue_response"
	TypeAccountPurge     = "io.nats.jetstream.api.v1.account_purge_response"
	TypeSystem           = "io.nats.jetstream.api.v1.system_response"
)

// Response is the beginning of every response.
type Response struct {
	Type  string `json:"type"`
	Error *Error `json:"error,omitempty"`
}

// Page says which part of a list a response holds.
type Page struct {
	Total  int `json:"total"`
	Offset int `json:"offset"`
	Limit  int `json:"limit"`
}

// AccountInfoResponse answers INFO. Without stats it carries an error.
type AccountInfoResponse struct {
	Response
	*AccountStats
}

// AccountStats is what an account uses of JetStream and what it may use.
type AccountStats struct {
	Tier
	Domain string          `json:"domain,omitempty"`
	API    APIStats        `json:"api"`
	Tiers  map[string]Tier `json:"tiers,omitempty"`
}

// Tier is the usage and the limits of one tier of an account.
type Tier struct {
	Memory         uint64        `json:"memory"`
	Store          uint64        `json:"storage"`
	ReservedMemory uint64        `json:"reserved_memory"`
	ReservedStore  uint64        `json:"reserved_storage"`
	Streams        int           `json:"streams"`
	Consumers      int           `json:"consumers"`
	Limits         AccountLimits `json:"limits"`
}

// APIStats counts the API requests of an account.
type APIStats struct {
	Level    int    `json:"level"`
	Total    uint64 `json:"total"`
	Errors   uint64 `json:"errors"`
	Inflight uint64 `json:"inflight,omitempty"`
}

// StreamCreateResponse answers STREAM.CREATE.
type StreamCreateResponse struct {
	Response
	*StreamInfo
	DidCreate bool `json:"did_create,omitempty"`
}

// StreamUpdateResponse answers STREAM.UPDATE.
type StreamUpdateResponse struct {
	Response
	*StreamInfo
}

// StreamInfoResponse answers STREAM.INFO; the page counts the subjects of the state.
type StreamInfoResponse struct {
	Response
	Page
	*StreamInfo
}

// StreamNamesResponse answers STREAM.NAMES.
type StreamNamesResponse struct {
	Response
	Page
	Streams []string `json:"streams"`
}

// StreamListResponse answers STREAM.LIST.
type StreamListResponse struct {
	Response
	Page
	Streams []*StreamInfo     `json:"streams"`
	Missing []string          `json:"missing,omitempty"`
	Offline map[string]string `json:"offline,omitempty"`
}

// SuccessResponse answers the requests whose only result is that they worked.
type SuccessResponse struct {
	Response
	Success bool `json:"success,omitempty"`
}

// PurgeResponse answers STREAM.PURGE.
type PurgeResponse struct {
	Response
	Success bool   `json:"success,omitempty"`
	Purged  uint64 `json:"purged"`
}

// MsgGetResponse answers STREAM.MSG.GET.
type MsgGetResponse struct {
	Response
	Message *StoredMsg `json:"message,omitempty"`
}

// SnapshotResponse answers STREAM.SNAPSHOT.
type SnapshotResponse struct {
	Response
	Config *StreamConfig `json:"config,omitempty"`
	State  *StreamState  `json:"state,omitempty"`
}

// RestoreResponse answers STREAM.RESTORE.
type RestoreResponse struct {
	Response
	DeliverSubject string `json:"deliver_subject"`
}

// ConsumerCreateResponse answers the CONSUMER.CREATE family and, with another type, CONSUMER.INFO.
type ConsumerCreateResponse struct {
	Response
	*ConsumerInfo
}

// ConsumerNamesResponse answers CONSUMER.NAMES.
type ConsumerNamesResponse struct {
	Response
	Page
	Consumers []string `json:"consumers"`
}

// ConsumerListResponse answers CONSUMER.LIST.
type ConsumerListResponse struct {
	Response
	Page
	Consumers []*ConsumerInfo   `json:"consumers"`
	Missing   []string          `json:"missing,omitempty"`
	Offline   map[string]string `json:"offline,omitempty"`
}

// PauseResponse answers CONSUMER.PAUSE.
type PauseResponse struct {
	Response
	Paused     bool `json:"paused"`
	PauseUntil Time `json:"pause_until"`
}

// ResetResponse answers CONSUMER.RESET.
type ResetResponse struct {
	Response
	*ConsumerInfo
	ResetSeq uint64 `json:"reset_seq"`
}
