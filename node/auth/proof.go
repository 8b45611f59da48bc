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
}
