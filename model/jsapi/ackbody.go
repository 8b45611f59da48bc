package jsapi

import (
	"bytes"
	"encoding/json"
	"time"
)

// AckKind is what the body of an acknowledgement asks for.
type AckKind uint8

// The kinds of acknowledgements.
const (
	// AckUnknown is any other body: nothing happens, but it is answered.
	AckUnknown AckKind = iota
	// AckAck acknowledges.
	AckAck
	// AckNak asks for redelivery, after Delay when that is positive.
	AckNak
	// AckProgress restarts the ack wait.
	AckProgress
	// AckNext acknowledges and asks for more messages, sent to the reply of the acknowledgement.
	AckNext
	// AckTerm acknowledges and says why the message could not be used.
	AckTerm
)

// AckBody is a parsed acknowledgement.
type AckBody struct {
	// Kind says what is asked for.
	Kind AckKind
	// Delay of AckNak in nanoseconds, 0 for at once.
	Delay int64
	// Reason of AckTerm. It aliases the body.
	Reason []byte
	// Next is the request of AckNext, to be parsed by ParsePull. It aliases the body.
	Next []byte
}

var (
	bodyAck      = []byte("+ACK")
	bodyOK       = []byte("+OK")
	bodyNak      = []byte("-NAK")
	bodyProgress = []byte("+WPI")
	bodyNext     = []byte("+NXT")
	bodyTerm     = []byte("+TERM")
)

// ParseAckBody reads the body of an acknowledgement. It never fails: what it does not know is AckUnknown, as the
// reference server has it.
func ParseAckBody(body []byte) AckBody {
	switch {
	case len(body) == 0, bytes.Equal(body, bodyAck), bytes.Equal(body, bodyOK):
		return AckBody{Kind: AckAck}
	case bytes.HasPrefix(body, bodyNext):
		return AckBody{Kind: AckNext, Next: body[len(bodyNext):]}
	case bytes.HasPrefix(body, bodyNak):
		return AckBody{Kind: AckNak, Delay: nakDelay(body[len(bodyNak):])}
	case bytes.Equal(body, bodyProgress):
		return AckBody{Kind: AckProgress}
	case bytes.HasPrefix(body, bodyTerm):
		return AckBody{Kind: AckTerm, Reason: bytes.TrimSpace(body[len(bodyTerm):])}
	}
	return AckBody{}
}

// nakDelay reads the optional delay behind -NAK: a JSON object or a Go duration. What cannot be read is no delay.
func nakDelay(arg []byte) int64 {
	arg = bytes.TrimSpace(arg)
	if len(arg) == 0 {
		return 0
	}
	if arg[0] == '{' {
		var options struct {
			Delay time.Duration `json:"delay"`
		}
		if json.Unmarshal(arg, &options) != nil {
			return 0
		}
		return max(0, int64(options.Delay))
	}
	delay, err := time.ParseDuration(string(arg))
	if err != nil {
		return 0
	}
	return max(0, int64(delay))
}
