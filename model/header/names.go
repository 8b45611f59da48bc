package header

// Names of the fields that a server reads or writes. They are compared byte by byte, in this exact case.
const (
	// MsgID is the publisher's identity of a message, unique within the stream's duplicate window.
	MsgID = "Nats-Msg-Id"
	// ExpectedStream must equal the name of the stream that stores the message.
	ExpectedStream = "Nats-Expected-Stream"
	// ExpectedLastSeq must equal the stream's last sequence.
	ExpectedLastSeq = "Nats-Expected-Last-Sequence"
	// ExpectedLastSubjectSeq must equal the last sequence on the message's subject, 0 for none.
	ExpectedLastSubjectSeq = "Nats-Expected-Last-Subject-Sequence"
	// ExpectedLastSubjectSeqSubject replaces the subject (it may be a pattern) that ExpectedLastSubjectSeq looks at.
	ExpectedLastSubjectSeqSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
	// ExpectedLastMsgID must equal the MsgID of the stream's last message.
	ExpectedLastMsgID = "Nats-Expected-Last-Msg-Id"
	// Rollup asks to remove what came before: RollupSubject or RollupAll, in any case.
	Rollup = "Nats-Rollup"
	// TTL is the life time of one message (ADR-43).
	TTL = "Nats-TTL"
	// Incr is the increment of a counter (ADR-49).
	Incr = "Nats-Incr"
	// CounterSources holds the contributions of sourced counters (ADR-49).
	CounterSources = "Nats-Counter-Sources"
	// MarkerReason says why a delete marker was written (ADR-43).
	MarkerReason = "Nats-Marker-Reason"
	// StreamSource is the origin of a message that was copied from another stream.
	StreamSource = "Nats-Stream-Source"
	// StreamIdentity identifies one incarnation of an origin stream.
	StreamIdentity = "Nats-Stream-Identity"
	// RequiredAPILevel is the lowest JetStream API level that may answer a request.
	RequiredAPILevel = "Nats-Required-Api-Level"
	// RequestInfo is client information added by service imports; it is removed at ingest.
	RequestInfo = "Nats-Request-Info"
	// ServerXKey is the public curve key of a server in authorization callouts.
	ServerXKey = "Nats-Server-Xkey"

	// BatchID names an atomic batch (ADR-50).
	BatchID = "Nats-Batch-Id"
	// BatchSequence is the position of a message in its batch, from 1.
	BatchSequence = "Nats-Batch-Sequence"
	// BatchCommit ends a batch.
	BatchCommit = "Nats-Batch-Commit"

	// Schedule is the time pattern of a message schedule (ADR-51).
	Schedule = "Nats-Schedule"
	// ScheduleTarget is the subject that a schedule publishes to.
	ScheduleTarget = "Nats-Schedule-Target"
	// ScheduleSource is the subject whose last message a schedule publishes.
	ScheduleSource = "Nats-Schedule-Source"
	// ScheduleTTL is the TTL of the messages that a schedule produces.
	ScheduleTTL = "Nats-Schedule-TTL"
	// ScheduleTimeZone is the IANA zone of a cron schedule.
	ScheduleTimeZone = "Nats-Schedule-Time-Zone"
	// ScheduleRollup is the Rollup of the messages that a schedule produces.
	ScheduleRollup = "Nats-Schedule-Rollup"
	// ScheduleNext is when a schedule fires next.
	ScheduleNext = "Nats-Schedule-Next"
	// Scheduler is the subject of the schedule that produced a message.
	Scheduler = "Nats-Scheduler"

	// Stream is the stream of a message that a direct get or a republish sends.
	Stream = "Nats-Stream"
	// Subject is the subject of that message, and of the request in a "no responders" answer.
	Subject = "Nats-Subject"
	// Sequence is the stream sequence of that message.
	Sequence = "Nats-Sequence"
	// TimeStamp is the time at which that message was stored (RFC 3339 with nanoseconds).
	TimeStamp = "Nats-Time-Stamp"
	// LastSequence is the previous sequence on the same subject.
	LastSequence = "Nats-Last-Sequence"
	// NumPending is the number of messages left in a batched direct get.
	NumPending = "Nats-Num-Pending"
	// UpToSequence is the last sequence that a multi-subject direct get looked at.
	UpToSequence = "Nats-UpTo-Sequence"
	// MsgSize is the size in bytes of a payload that was left out.
	MsgSize = "Nats-Msg-Size"

	// LastConsumer is the last consumer sequence, in idle heartbeats.
	LastConsumer = "Nats-Last-Consumer"
	// LastStream is the last stream sequence, in idle heartbeats.
	LastStream = "Nats-Last-Stream"
	// ConsumerStalled is the flow control reply subject that a stalled push consumer waits for.
	ConsumerStalled = "Nats-Consumer-Stalled"
	// PendingMessages is what is left of the batch of a pull request that ends.
	PendingMessages = "Nats-Pending-Messages"
	// PendingBytes is what is left of max_bytes of a pull request that ends.
	PendingBytes = "Nats-Pending-Bytes"
	// PinID identifies the pinned client of a priority group (ADR-42).
	PinID = "Nats-Pin-Id"
	// ResponseType is the kind of an event sent to a reply subject.
	ResponseType = "Nats-Response-Type"

	// TraceDest is the subject that receives the events of a traced message (ADR-41).
	TraceDest = "Nats-Trace-Dest"
	// TraceOnly asks not to deliver a traced message.
	TraceOnly = "Nats-Trace-Only"
	// TraceHop is the hop of a traced message.
	TraceHop = "Nats-Trace-Hop"
	// TraceOriginAccount is the account that a traced message came from.
	TraceOriginAccount = "Nats-Trace-Origin-Account"

	// KVOperation marks the deletes of a key-value bucket: KVDelete or KVPurge.
	KVOperation = "KV-Operation"
)

// Values of fields, and prefixes of families of names.
const (
	// RollupSubject removes the earlier messages of the same subject.
	RollupSubject = "sub"
	// RollupAll removes all earlier messages.
	RollupAll = "all"
	// KVDelete is the KVOperation of a deleted key.
	KVDelete = "DEL"
	// KVPurge is the KVOperation of a key purged with its history.
	KVPurge = "PURGE"
	// ExpectedPrefix begins the names of all preconditions.
	ExpectedPrefix = "Nats-Expected-"
	// BatchPrefix begins the names of all batch fields.
	BatchPrefix = "Nats-Batch-"
)
