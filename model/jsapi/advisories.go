package jsapi

// Subjects of advisories and metrics. Those that end in a dot are followed by stream, or by stream and consumer.
const (
	SubjectAPIAudit           = "$JS.EVENT.ADVISORY.API"
	SubjectStreamCreated      = "$JS.EVENT.ADVISORY.STREAM.CREATED."
	SubjectStreamUpdated      = "$JS.EVENT.ADVISORY.STREAM.UPDATED."
	SubjectStreamDeleted      = "$JS.EVENT.ADVISORY.STREAM.DELETED."
	SubjectConsumerCreated    = "$JS.EVENT.ADVISORY.CONSUMER.CREATED."
	SubjectConsumerDeleted    = "$JS.EVENT.ADVISORY.CONSUMER.DELETED."
	SubjectConsumerMaxDeliver = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."
	SubjectConsumerNaked      = "$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED."
	SubjectConsumerTerminated = "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED."
	SubjectConsumerAck        = "$JS.EVENT.METRIC.CONSUMER.ACK."
)

// Types of advisories and metrics.
const (
	TypeAPIAudit       = "io.nats.jetstream.advisory.v1.api_audit"
	TypeStreamAction   = "io.nats.jetstream.advisory.v1.stream_action"
	TypeConsumerAction = "io.nats.jetstream.advisory.v1.consumer_action"
	TypeMaxDeliver     = "io.nats.jetstream.advisory.v1.max_deliver"
	TypeNaked          = "io.nats.jetstream.advisory.v1.nak"
	TypeTerminated     = "io.nats.jetstream.advisory.v1.terminated"
	TypeConsumerAck    = "io.nats.jetstream.metric.v1.consumer_ack"
)

// The actions of stream and consumer advisories.
const (
	AdvisoryCreate = "create"
	AdvisoryModify = "modify"
	AdvisoryDelete = "delete"
)

// Event is the beginning of every advisory and metric. ID is a random text of 22 characters.
type Event struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Time Time   `json:"timestamp"`
}

// APIAudit reports an answered API request.
type APIAudit struct {
	Event
	Server   string      `json:"server"`
	Client   *ClientInfo `json:"client"`
	Subject  string      `json:"subject"`
	Request  string      `json:"request,omitempty"`
	Response string      `json:"response"`
	Domain   string      `json:"domain,omitempty"`
}

// ClientInfo says who made a request.
type ClientInfo struct {
	Start     *Time  `json:"start,omitempty"`
	Host      string `json:"host,omitempty"`
	ID        uint64 `json:"id,omitempty"`
	Account   string `json:"acc,omitempty"`
	User      string `json:"user,omitempty"`
	Name      string `json:"name,omitempty"`
	Lang      string `json:"lang,omitempty"`
	Version   string `json:"ver,omitempty"`
	RTT       int64  `json:"rtt,omitempty"`
	Server    string `json:"server,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	IssuerKey string `json:"issuer_key,omitempty"`
	NameTag   string `json:"name_tag,omitempty"`
	// Tags are what the issuer said of the client.
	Tags       []string `json:"tags,omitempty"`
	Kind       string   `json:"kind,omitempty"`
	ClientType string   `json:"client_type,omitempty"`
}

// StreamAction reports that a stream was created, changed or deleted.
type StreamAction struct {
	Event
	Stream string `json:"stream"`
	Action string `json:"action"`
	Domain string `json:"domain,omitempty"`
}

// ConsumerActionEvent reports that a consumer was created or deleted.
type ConsumerActionEvent struct {
	Event
	Stream   string `json:"stream"`
	Consumer string `json:"consumer"`
	Action   string `json:"action"`
	Domain   string `json:"domain,omitempty"`
}

// MaxDeliverEvent reports that a message was delivered as often as the consumer allows.
type MaxDeliverEvent struct {
	Event
	Stream     string `json:"stream"`
	Consumer   string `json:"consumer"`
	StreamSeq  uint64 `json:"stream_seq"`
	Deliveries uint64 `json:"deliveries"`
	Domain     string `json:"domain,omitempty"`
}

// DeliveryEvent reports a negative acknowledgement or, with a reason, a terminated delivery.
type DeliveryEvent struct {
	Event
	Stream      string `json:"stream"`
	Consumer    string `json:"consumer"`
	ConsumerSeq uint64 `json:"consumer_seq"`
	StreamSeq   uint64 `json:"stream_seq"`
	Deliveries  uint64 `json:"deliveries"`
	Reason      string `json:"reason,omitempty"`
	Domain      string `json:"domain,omitempty"`
}

// ConsumerAckEvent is the metric of a sampled acknowledgement. Delay counts nanoseconds since the last delivery.
type ConsumerAckEvent struct {
	Event
	Stream      string `json:"stream"`
	Consumer    string `json:"consumer"`
	ConsumerSeq uint64 `json:"consumer_seq"`
	StreamSeq   uint64 `json:"stream_seq"`
	Delay       int64  `json:"ack_time"`
	Deliveries  uint64 `json:"deliveries"`
	Domain      string `json:"domain,omitempty"`
}
