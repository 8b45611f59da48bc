package event

import "weir/node/auth"

// Start is how a connection begins: a closed set.
type Start uint8

// The ways in which connections begin.
const (
	// Plain: it is not protected.
	Plain Start = iota
	// Guarded: after INFO nothing is sent until Secured.
	Guarded
	// Silent: nothing is sent, not even INFO, until Greet or Secured.
	Silent
)

// TLS is how a connection is protected, in the words of monitoring.
type TLS struct {
	// Version and Cipher are the names of the version and of the cipher suite.
	Version, Cipher string
	// First says that the handshake came before INFO.
	First bool
	// Certificate is what the client proved to hold; nil without one.
	Certificate *auth.Certificate
}

// Protection is what INFO says about TLS.
type Protection struct {
	// Required says that clients have to begin a handshake after INFO, Available that they may. Verify says that they have to
	// show a certificate.
	Required, Available, Verify bool
}

// Door is what clients that connect by WebSocket are told of where they connect.
type Door struct {
	// Host and Port are the listening address.
	Host string
	Port int
	// Protected says that it takes TLS, Verify that clients have to show a certificate.
	Protected, Verify bool
	// AuthTimeoutNanos is how long a client may take to send credentials; 0: as long as others.
	AuthTimeoutNanos int64
	// PingIntervalNanos is the time between two pings; 0: as for others.
	PingIntervalNanos int64
}

// Reload is what an operator can change about clients while the server runs. All of it counts from now on.
type Reload struct {
	// Users decides who clients are; nil leaves it as it is. Those that are there prove themselves again by what they said
	// when they connected.
	Users *auth.Authenticator
	// ControlLineBytes, PayloadBytes and PendingBytes bound operations, and what waits for one client.
	ControlLineBytes, PayloadBytes, PendingBytes int
	// Connections bounds the clients; the newest ones beyond it are closed.
	Connections int
	// PingIntervalNanos is the time between two pings of an idle connection, PingsOut how many may be unanswered.
	PingIntervalNanos int64
	PingsOut          int
	// AuthTimeoutNanos is how long new clients may take to send credentials.
	AuthTimeoutNanos int64
	// AdvertiseHost and AdvertisePort are the address in INFO, as in the configuration of the engine.
	AdvertiseHost string
	AdvertisePort int
	// Protection is what INFO says about TLS.
	Protection Protection
	// WebSockets is about clients that connect by WebSocket; its address does not change.
	WebSockets Door
}
