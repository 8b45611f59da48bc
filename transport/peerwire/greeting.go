package peerwire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"weir/spec/assert"
)

// A session begins with a handshake of greetings, each preceded by
//
//	+-----------+----------------+------+
//	| "WEIR"(4) | length (4, LE) | JSON |
//	+-----------+----------------+------+
//
// The server that dialed introduces itself; the other one answers with its own introduction and the number of the
// session that it has with the first, if any; then one of the two decides whether the connection becomes their session.
// Each pair of servers has one that decides for both, the one with the lower id: so they never disagree about which of
// two connections is the one.
//
//	dialer                                acceptor
//	Hello                        ->
//	                             <-       Hello, Session        (or Refused)
//	Session, Verdict if it decides ->                           (or Refused)
//	                             <-       Verdict if it decides
//
// A verdict is the number of the new session, or Refused. Frames follow it at once.

// Refusal is why a handshake ended without a session, in one word.
type Refusal string

// The closed set of refusals.
const (
	// RefusedSelf: both ends are the same process.
	RefusedSelf Refusal = "self"
	// RefusedTwin: another process runs under the same id: its data directory is a copy.
	RefusedTwin Refusal = "twin"
	// RefusedDuplicate: the two servers have a session already.
	RefusedDuplicate Refusal = "duplicate"
	// RefusedCluster: the servers belong to different clusters.
	RefusedCluster Refusal = "cluster"
	// RefusedName: another server of that name is connected.
	RefusedName Refusal = "name"
	// RefusedUser: user or password are wrong.
	RefusedUser Refusal = "authorization"
	// RefusedProtocol: the other side does not speak this version of the protocol.
	RefusedProtocol Refusal = "protocol"
	// RefusedEnding: the server shuts down.
	RefusedEnding Refusal = "ending"
)

// Greeting is one message of the handshake.
type Greeting struct {
	// Hello introduces the sender.
	Hello *Hello `json:"hello,omitempty"`
	// Boot distinguishes this run of the sender's process from all others.
	Boot uint64 `json:"boot,string,omitempty"`
	// Session is the number of the session that the sender has with the receiver; 0 for none.
	Session uint64 `json:"session,string,omitempty"`
	// Verdict is the number of the session that this connection becomes; 0 while it is not decided.
	Verdict uint64 `json:"verdict,string,omitempty"`
	// Refused ends the handshake; Text says why for the operator.
	Refused Refusal `json:"refused,omitempty"`
	Text    string  `json:"text,omitempty"`
}

// GreetingHeadBytes is the size of what precedes the JSON, and GreetingBytesMax bounds that.
const (
	GreetingHeadBytes = 8
	GreetingBytesMax  = HelloBytesMax + 4<<10
)

const greetingMagic = "WEIR"

// AppendGreeting appends a greeting with its head.
func AppendGreeting(dst []byte, g *Greeting) ([]byte, error) {
	data, err := json.Marshal(g)
	if err != nil {
		return dst, fmt.Errorf("encode a greeting: %w", err)
	}
	if len(data) > GreetingBytesMax {
		return dst, fmt.Errorf("a greeting of %d bytes is larger than %d", len(data), GreetingBytesMax)
	}
	dst = append(dst, greetingMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
	return append(dst, data...), nil
}

// GreetingLength reads the length of the JSON from the head of a greeting, GreetingHeadBytes long.
func GreetingLength(head []byte) (int, error) {
	assert.True(len(head) == GreetingHeadBytes, "the head of a greeting is whole", uint64(len(head)))
	if string(head[:len(greetingMagic)]) != greetingMagic {
		return 0, fmt.Errorf("%w: %q does not begin a session between servers", ErrMalformed, head[:len(greetingMagic)])
	}
	n := binary.LittleEndian.Uint32(head[len(greetingMagic):])
	if n == 0 || n > GreetingBytesMax {
		return 0, fmt.Errorf("%w: greeting of %d bytes", ErrMalformed, n)
	}
	return int(n), nil
}

// ParseGreeting reads the JSON of a greeting. Fields that it does not know are ignored. An introduction is checked as
// far as one server can be checked alone.
func ParseGreeting(data []byte) (*Greeting, error) {
	var g Greeting
	if err := json.Unmarshal(data, &g); err != nil {
		return nil, fmt.Errorf("%w: greeting: %w", ErrMalformed, err)
	}
	if len(g.Text) > textBytesMax {
		return nil, fmt.Errorf("%w: text of %d bytes", ErrMalformed, len(g.Text))
	}
	if g.Hello == nil {
		return &g, nil
	}
	return &g, g.Hello.Check()
}
