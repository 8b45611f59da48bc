package wire

import "weir/spec/assert"

// Reason is why a client connection was closed: a closed set, with the names that monitoring and events show.
type Reason uint8

// The reasons. The zero value means that the connection is open.
const (
	ClientClosed Reason = iota + 1
	AuthenticationTimeout
	AuthenticationFailure
	TLSHandshakeFailure
	SlowConsumerPendingBytes
	SlowConsumerWriteDeadline
	WriteError
	ReadError
	ParseError
	StaleConnection
	ProtocolViolation
	BadClientProtocolVersion
	MaxConnectionsExceeded
	MaxAccountConnectionsExceeded
	MaxPayloadExceeded
	MaxControlLineExceeded
	MaxSubscriptionsExceeded
	ServerShutdown
	AuthenticationExpired
	MissingAccount
	CredentialsRevoked
	InternalClient
	MessageHeaderViolation
	NoRespondersRequiresHeaders
	Kicked
	reasonEnd
)

var reasonNames = [reasonEnd]string{
	ClientClosed:                  "Client Closed",
	AuthenticationTimeout:         "Authentication Timeout",
	AuthenticationFailure:         "Authentication Failure",
	TLSHandshakeFailure:           "TLS Handshake Failure",
	SlowConsumerPendingBytes:      "Slow Consumer (Pending Bytes)",
	SlowConsumerWriteDeadline:     "Slow Consumer (Write Deadline)",
	WriteError:                    "Write Error",
	ReadError:                     "Read Error",
	ParseError:                    "Parse Error",
	StaleConnection:               "Stale Connection",
	ProtocolViolation:             "Protocol Violation",
	BadClientProtocolVersion:      "Bad Client Protocol Version",
	MaxConnectionsExceeded:        "Maximum Connections Exceeded",
	MaxAccountConnectionsExceeded: "Maximum Account Connections Exceeded",
	MaxPayloadExceeded:            "Maximum Message Payload Exceeded",
	MaxControlLineExceeded:        "Maximum Control Line Exceeded",
	MaxSubscriptionsExceeded:      "Maximum Subscriptions Exceeded",
	ServerShutdown:                "Server Shutdown",
	AuthenticationExpired:         "Authentication Expired",
	MissingAccount:                "Missing Account",
	CredentialsRevoked:            "Credentials Revoked",
	InternalClient:                "Internal Client",
	MessageHeaderViolation:        "Message Header Violation",
	NoRespondersRequiresHeaders:   "No Responders Requires Headers",
	Kicked:                        "Kicked",
}

// String returns the name that monitoring shows for the reason.
func (r Reason) String() string {
	assert.True(r < reasonEnd, "reason < reasonEnd", uint64(r), uint64(reasonEnd))
	return reasonNames[r]
}
