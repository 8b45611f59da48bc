package wire

// Failure is why a byte stream cannot be parsed any further: a closed set. It tells the session what the client is to
// see (Text) and how the connection is to be reported (Reason). It is an error value and costs no allocation.
type Failure uint8

// The failures. The zero value means no failure.
const (
	// FailureVerb: a byte that continues no operation, or a payload that is not followed by CR LF.
	FailureVerb Failure = iota + 1
	// FailureArguments: wrong number of arguments, or a size that is not one to nine digits.
	FailureArguments
	// FailureControlLine: the arguments are longer than the control line limit.
	FailureControlLine
	// FailurePayload: the announced payload is larger than the payload limit.
	FailurePayload
	// FailureAuthorization: the parser is gated and the operation is not CONNECT.
	FailureAuthorization
	// FailureThrottled: too many handshakes begin at the moment.
	FailureThrottled
)

// Text returns what -ERR says about the failure, without quotes; empty when the connection closes in silence.
func (f Failure) Text() string {
	switch f {
	case FailureVerb:
		return "Unknown Protocol Operation"
	case FailureControlLine:
		return "maximum control line exceeded"
	case FailurePayload:
		return "Maximum Payload Violation"
	case FailureAuthorization:
		return "Authorization Violation"
	case FailureThrottled:
		return "Connection throttling is active. Please try again later."
	default:
		return ""
	}
}

// Reason returns why a connection with this failure is closed.
func (f Failure) Reason() Reason {
	switch f {
	case FailureControlLine:
		return MaxControlLineExceeded
	case FailurePayload:
		return MaxPayloadExceeded
	case FailureAuthorization:
		return AuthenticationFailure
	case FailureThrottled:
		return MaxConnectionsExceeded
	default:
		return ProtocolViolation
	}
}

// Error describes the failure for a log.
func (f Failure) Error() string {
	switch f {
	case FailureVerb:
		return "unknown protocol operation"
	case FailureArguments:
		return "wrong arguments of a protocol operation"
	case FailureControlLine:
		return "maximum control line exceeded"
	case FailurePayload:
		return "maximum payload exceeded"
	case FailureAuthorization:
		return "operation before CONNECT"
	case FailureThrottled:
		return "too many handshakes"
	default:
		return "no failure"
	}
}
