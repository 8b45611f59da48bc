// Package session is the protocol state of one client: handshake, subscriptions, permissions, limits, timers, answers.
//
// It promises to answer operations in their order, byte for byte as clients of this protocol expect, and to depend on
// nothing but the operations, the configuration and the time that its host tells. It reads no socket and starts no
// timer: bytes to send wait until the host takes them, and the host calls Tick when Deadline has come.
//
// It does not know what becomes of a published message; the host decides that. Streams, consumers and the API are
// subscriptions like any other from here.
package session

import (
	"slices"

	"weir/node/auth"
	"weir/node/event"
	"weir/node/route"
	"weir/spec/assert"
	"weir/transport/wire"
)

// Config is what sessions of one server share. It does not change; a reload hands sessions another one.
type Config struct {
	// Info is what INFO says to every client; the session fills in what is the client's own.
	Info wire.Info
	// Auth decides who clients are.
	Auth *auth.Authenticator
	// Limits are the parser's.
	Limits wire.Limits
	// PendingBytesMax bounds the bytes that wait to be sent; a client that falls further behind is closed.
	PendingBytesMax int
	// SubscriptionsMax bounds the subscriptions of a connection; 0 means no limit.
	SubscriptionsMax int
	// AuthTimeoutNanos is how long a client may take to send credentials.
	AuthTimeoutNanos int64
	// PingIntervalNanos is the time between pings of a silent client.
	PingIntervalNanos int64
	// PingOutstandingMax is how many pings may be unanswered when the next one is due.
	PingOutstandingMax int
	// SystemAccount is the name of the system account.
	SystemAccount string
	// WebSockets is what differs for clients that connect by WebSocket, WebURLs what their INFO says in place of ConnectURLs.
	WebSockets event.Door
	WebURLs    []string
}

// Host is the engine as a session sees it.
type Host interface {
	// Now is the time of the present step.
	Now() event.Time
	// Table holds the subscriptions of an account.
	Table(account string) *route.Table
	// Members changes how many clients an account has, and returns how many it has.
	Members(account string, change int) int
	// Publish hands over a message that the client may publish, and reports whether anybody took it. The message and
	// its slices are valid during the call only.
	Publish(s *Session, m *route.Message) bool
	// Ready is called when the session begins to have something for Take, once until Take. It returns a buffer for the
	// bytes, whose contents do not matter; nil is one.
	Ready(s *Session) []byte
	// Session is the session of another connection; nil when it is gone.
	Session(id event.ConnID) *Session
}

// Params is what distinguishes a session from others of the server.
type Params struct {
	// ID identifies the connection, never 0.
	ID event.ConnID
	// Address is the client's address without port, as INFO and monitoring show it.
	Address string
	// Port is the client's port.
	Port int
	// Random spreads the first ping; any number will do.
	Random uint64
	// Start is how the connection begins.
	Start event.Start
	// Way is how the client connects.
	Way auth.Way
	// Nonce is what the client has to sign, when it has to.
	Nonce string
}

// Session is the state of one client connection.
type Session struct {
	params Params
	config *Config
	host   Host

	connect   wire.Connect
	identity  auth.Identity
	connected bool // CONNECT was accepted
	// admitted says that operations other than CONNECT are accepted: the identity is settled.
	admitted bool
	// headers says that server and client both want headers.
	headers bool
	// greeted says that the INFO after the first PONG is done with.
	greeted bool
	// unsettled says that Secured has not been called yet, and silent that nobody has said INFO either.
	unsettled, silent bool
	// tls is how the connection is protected; nil when it is not.
	tls *event.TLS
	// cookies are what the client sent before it spoke the protocol; nil without any.
	cookies *auth.Cookies

	table *route.Table
	// member says that the account counts the client.
	member bool
	// subs are the subscriptions; the Slot of each is its index. bySid finds them.
	subs  []*route.Sub
	bySid map[string]*route.Sub
	// filtered says that deliveries have to be checked against permissions.
	filtered bool
	// replies are the reply subjects that the client may publish to; nil without allow_responses.
	replies *auth.Replies
	message route.Message
	// limits are the parser's for this client.
	limits wire.Limits
	// refusal is why the client was not let in, for the operator; nil when there is no more to say.
	refusal error
	// behind are subscriptions of which other servers know that the client does not keep up.
	behind []*route.Sub

	// out are bytes that wait for Take; ready says that the host knows.
	out   []byte
	ready bool
	// flightBytes were taken and have not been reported as flushed.
	flightBytes int
	orders      event.ConnOut
	reason      wire.Reason
	// lastSubs are the subscriptions at the end, which are no more.
	lastSubs []*route.Sub

	timers timers
	stats  Stats
}

// New opens a session: INFO waits to be sent, unless the connection begins silently.
func New(params Params, config *Config, host Host) *Session {
	assert.True(params.ID != 0, "a connection has an id")
	assert.True(config.PingIntervalNanos > 0, "ping interval > 0")
	now := host.Now()
	s := &Session{params: params, config: config, host: host, connect: wire.DefaultConnect()}
	s.stats.StartWall, s.stats.LastActivityWall = now.Wall, now.Wall
	s.unsettled, s.silent = params.Start != event.Plain, params.Start == event.Silent
	s.timers.start(now.Mono, s.pingInterval(), s.authTimeout())
	if s.unsettled {
		s.timers.authAt = 0
	}
	s.setLimits()
	if identity, ok := config.Auth.Anonymous(params.Way); ok {
		s.bind(identity)
	} else {
		s.orders.Gate = true
	}
	s.begin()
	if !s.silent {
		info := s.info()
		s.out = wire.AppendInfo(s.out, &info)
	}
	return s
}

// ID identifies the connection.
func (s *Session) ID() event.ConnID { return s.params.ID }

// Address is the client's address without port.
func (s *Session) Address() string { return s.params.Address }

// Port is the client's port.
func (s *Session) Port() int { return s.params.Port }

// Connect is what the client said about itself, the defaults before it did. The caller only reads it.
func (s *Session) Connect() *wire.Connect { return &s.connect }

// Connected reports whether a CONNECT was accepted.
func (s *Session) Connected() bool { return s.connected }

// Identity is who the client is; empty before it is known.
func (s *Session) Identity() auth.Identity { return s.identity }

// Table holds the subscriptions of the client's account; nil before it is known.
func (s *Session) Table() *route.Table { return s.table }

// Headers reports whether the client takes headers.
func (s *Session) Headers() bool { return s.headers }

// Subs are the subscriptions, in no particular but a reproducible order. The caller only reads them.
func (s *Session) Subs() []*route.Sub { return s.subs }

// LastSubs are the subscriptions that the session had when it ended, for monitoring. The caller only reads them.
func (s *Session) LastSubs() []*route.Sub { return s.lastSubs }

// PendingBytes counts bytes that wait to be sent, here and at the host.
func (s *Session) PendingBytes() int { return len(s.out) + s.flightBytes }

// Closed returns why the session has ended, 0 while it goes on. An ended session ignores everything.
func (s *Session) Closed() wire.Reason { return s.reason }

// SetConfig replaces the configuration after a reload.
func (s *Session) SetConfig(config *Config) {
	if s.reason != 0 {
		return
	}
	s.config = config
	s.begin()
	s.setLimits()
}

// setLimits has the parser keep to the limits of the server and of the client.
func (s *Session) setLimits() {
	s.limits = s.config.Limits
	if l := s.identity.Limits; l != nil && l.PayloadBytes >= 0 && (s.limits.PayloadBytes < 0 || l.PayloadBytes < int64(s.limits.PayloadBytes)) {
		s.limits.PayloadBytes = int(l.PayloadBytes)
	}
	s.orders.Limits = s.limits
}

// subscriptionsMax is how many subscriptions the client may have; negative: any number.
func (s *Session) subscriptionsMax() int64 {
	most := int64(s.config.SubscriptionsMax)
	if most == 0 {
		most = -1
	}
	if l := s.identity.Limits; l != nil && l.Subscriptions >= 0 && (most < 0 || l.Subscriptions < most) {
		most = l.Subscriptions
	}
	return most
}

// Refusal is why the client was not let in, for the operator; nil when there is no more to say.
func (s *Session) Refusal() error { return s.refusal }

// Take returns what the session has for the host since Ready. The host owns the bytes and reports them by Flushed.
func (s *Session) Take() event.ConnOut {
	out := s.orders
	out.Conn = s.params.ID
	if s.reason != 0 {
		out.Close, out.Reason = true, s.reason
	}
	if !out.Abort && len(s.out) > 0 {
		out.Bytes = s.out
		s.flightBytes += len(s.out)
	}
	s.out, s.orders, s.ready = nil, event.ConnOut{}, false
	return out
}

// Flushed reports that n of the bytes taken have been sent.
func (s *Session) Flushed(n int) {
	assert.True(n <= s.flightBytes, "bytes flushed <= bytes taken", uint64(n), uint64(s.flightBytes))
	s.flightBytes -= n
	s.catchUp()
}

// Disconnected ends the session because the connection is gone.
func (s *Session) Disconnected(reason wire.Reason) {
	if s.reason == 0 {
		s.end(reason)
	}
}

// Close ends the session: text, unless empty, goes to the client as an error first.
func (s *Session) Close(reason wire.Reason, text string) {
	if s.reason != 0 {
		return
	}
	if text != "" {
		if s.params.Way == auth.WebSocket {
			s.Greet() // what is said waits until there is a WebSocket, and its client for INFO
		}
		s.sendErr(text)
	}
	s.begin()
	s.end(reason)
}

// Fail ends the session because its bytes are not the protocol.
func (s *Session) Fail(failure wire.Failure) { s.Close(failure.Reason(), failure.Text()) }

// end removes the subscriptions and remembers why, and which they were.
func (s *Session) end(reason wire.Reason) {
	assert.True(reason != 0, "a session ends for a reason")
	s.reason = reason
	s.lastSubs = slices.Clone(s.subs)
	s.dropSubs()
	s.leave()
}

// leave takes the client out of its account.
func (s *Session) leave() {
	if s.member {
		s.host.Members(s.identity.Account, -1)
		s.member = false
	}
}

// bind settles who the client is.
func (s *Session) bind(identity auth.Identity) {
	assert.True(len(s.subs) == 0, "an identity changes without subscriptions", uint64(len(s.subs)))
	s.leave()
	s.host.Members(identity.Account, 1)
	s.member = true
	s.identity = identity
	s.table = s.host.Table(identity.Account)
	s.timers.endAt, s.timers.accountEndAt = s.ends(identity.EndNanos), s.ends(identity.AccountEndNanos)
	s.filtered, s.replies = false, nil
	if p := identity.Permissions; p != nil && p.Responses() != nil {
		s.replies = auth.NewReplies(*p.Responses())
	}
	s.admitted = true
}

// ends is the monotone time at which something ends; 0: never.
func (s *Session) ends(wall int64) int64 {
	if wall == 0 {
		return 0
	}
	now := s.host.Now()
	return now.Mono + max(wall-now.Wall, 1)
}

// begin tells the host that there is something to take, once.
func (s *Session) begin() {
	if s.ready {
		return
	}
	s.ready = true
	s.out = s.host.Ready(s)[:0]
}

func (s *Session) sendErr(text string) {
	s.begin()
	s.out = wire.AppendErr(s.out, text)
}

// acknowledge sends +OK to a verbose client.
func (s *Session) acknowledge() {
	if s.connect.Verbose {
		s.begin()
		s.out = wire.AppendOK(s.out)
	}
}

// checkPending ends the session when the client does not take its bytes.
func (s *Session) checkPending() {
	if s.PendingBytes() > s.config.PendingBytesMax && s.reason == 0 {
		s.begin()
		s.out = s.out[:0]
		s.orders.Abort = true
		s.end(wire.SlowConsumerPendingBytes)
	}
}

// info is INFO for this client.
func (s *Session) info() wire.Info {
	info := s.config.Info
	info.ClientID = uint64(s.params.ID)
	info.ClientIP = s.params.Address
	info.MaxPayload = s.limits.PayloadBytes
	if s.config.Auth.Signs() {
		info.Nonce = s.params.Nonce
	}
	info.AuthRequired = s.config.Auth.Required(s.params.Way)
	if s.params.Way == auth.WebSocket {
		door := &s.config.WebSockets
		info.Host, info.Port, info.ConnectURLs = door.Host, door.Port, s.config.WebURLs
		info.TLSRequired, info.TLSAvailable, info.TLSVerify = door.Protected, door.Protected, door.Verify
	}
	return info
}

// Way is how the client connects.
func (s *Session) Way() auth.Way { return s.params.Way }

// authTimeout is how long the client may take to send credentials; 0 for ever.
func (s *Session) authTimeout() int64 {
	if !s.config.Auth.Secured(s.params.Way) {
		return 0
	}
	if own := s.config.WebSockets.AuthTimeoutNanos; own != 0 && s.params.Way == auth.WebSocket {
		return own
	}
	return s.config.AuthTimeoutNanos
}

// pingInterval is the time between two pings.
func (s *Session) pingInterval() int64 {
	if own := s.config.WebSockets.PingIntervalNanos; own != 0 && s.params.Way == auth.WebSocket {
		return own
	}
	return s.config.PingIntervalNanos
}

// SendInfo sends INFO again, because it changed, to a client that expects it at any time. Before the first PONG clients
// expect nothing else, and what follows that is up to date.
func (s *Session) SendInfo() { s.sendInfo(false) }

// LameDuck tells the client, if it expects INFO at any time, to move to another server.
func (s *Session) LameDuck() { s.sendInfo(true) }

func (s *Session) sendInfo(lameDuck bool) {
	if s.reason != 0 || !s.greeted || s.connect.Protocol < 1 {
		return
	}
	info := s.info()
	info.LameDuck = lameDuck
	s.begin()
	s.out = wire.AppendInfo(s.out, &info)
}
