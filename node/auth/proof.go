package auth

// Way is how a client connects: a closed set.
type Way uint8

// The ways to connect.
const (
	// Standard is a connection that carries the protocol as it is.
	Standard Way = iota
	// WebSocket is one that carries it in the frames of a WebSocket.
	WebSocket
)

// String names the way as operators do in allowed_connection_types.
func (w Way) String() string {
	if w == WebSocket {
		return "WEBSOCKET"
	}
	return "STANDARD"
}

// Cookies are credentials that a browser sends with the request for a WebSocket. Each stands for what CONNECT does not say.
type Cookies struct {
	JWT, User, Password, Token string
}

// Proof is what shows who a client is besides what it says in CONNECT.
type Proof struct {
	// Way is how it connects.
	Way Way
	// Certificate is what it proved to hold; nil without one.
	Certificate *Certificate
	// Nonce is what it was asked to sign; "" is never signed.
	Nonce string
	// Address is its address without port.
	Address string
	// Wall is the time in unix nanoseconds.
	Wall int64
	// Refusal is set to why it is not let in, for the operator; nil when there is no more to say.
	Refusal error
}

// Limits bound a client; negative ones do not.
type Limits struct {
	// Subscriptions and PayloadBytes bound the client, Connections all clients of its account on one server.
	Subscriptions, PayloadBytes, Connections int64
}
