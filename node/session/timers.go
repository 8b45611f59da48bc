package session

import (
	"weir/transport/wire"
)

const (
	// firstPingNanos is when a client is pinged after CONNECT, to measure the round trip.
	firstPingNanos = 2e9
	// firstPingSpread divides the time to the first ping into the largest delay that is added to it.
	firstPingSpread = 5
	// roundTripAgeNanos is the age at which a measured round trip is too old.
	roundTripAgeNanos = 3600 * 1e9
)

// timers are the deadlines of a session, in nanoseconds of the monotone clock.
type timers struct {
	// authAt is when the client must have said something, 0 once it has or when there are no users. A client that may do
	// without credentials has to show itself too: until then nobody knows whether it will send some.
	authAt int64
	// endAt and accountEndAt are when the credentials, and those of the account, count no more; 0: never.
	endAt, accountEndAt int64
	// pingAt is when the client is looked at next.
	pingAt int64
	// lastIn is when the client last did something but answer pings.
	lastIn int64
	// opened is when the session began.
	opened int64
	// pinged is when the last ping was sent; 0 before the first.
	pinged int64
	// outstanding counts pings without an answer.
	outstanding int
	// roundTrip is the last measured round trip, 0 before CONNECT.
	roundTrip int64
}

// start begins with the time between pings, and that for credentials: 0 for ever.
func (t *timers) start(now, pings, credentials int64) {
	t.opened, t.lastIn = now, now
	t.pingAt = now + pings
	if credentials != 0 {
		t.authAt = now + credentials
	}
}

// connected plans the first ping. Until it is answered, the time that the handshake took stands for the round trip.
func (t *timers) connected(now, pings int64, random uint64) {
	t.authAt = 0
	t.roundTrip = max(now-t.opened, 1)
	first := min(pings, firstPingNanos)
	t.pingAt = now + first
	if spread := uint64(first / firstPingSpread); spread > 0 {
		t.pingAt += int64(random % spread)
	}
}

func (t *timers) pong(now int64) {
	t.outstanding = 0
	if t.pinged != 0 {
		t.roundTrip = max(now-t.pinged, 1)
	}
}

// Deadline is the monotone time at which Tick has to be called, 0 for a closed session.
func (s *Session) Deadline() int64 {
	if s.reason != 0 {
		return 0
	}
	at := s.timers.pingAt
	for _, other := range [...]int64{s.timers.authAt, s.timers.endAt, s.timers.accountEndAt} {
		if other != 0 {
			at = min(at, other)
		}
	}
	return at
}

// Tick does what has become due. Calling it early or often does no harm.
func (s *Session) Tick() {
	if s.reason != 0 {
		return
	}
	now := s.host.Now().Mono
	if s.timers.authAt != 0 && now >= s.timers.authAt {
		s.Close(wire.AuthenticationTimeout, "Authentication Timeout")
		return
	}
	if s.timers.endAt != 0 && now >= s.timers.endAt {
		s.Close(wire.AuthenticationExpired, "User Authentication Expired")
		return
	}
	if s.timers.accountEndAt != 0 && now >= s.timers.accountEndAt {
		s.Close(wire.AuthenticationExpired, "Account Authentication Expired")
		return
	}
	if now < s.timers.pingAt {
		return
	}
	interval := s.pingInterval()
	s.timers.pingAt = now + interval
	if s.unsettled {
		return // nothing may be sent yet; the edge bounds how long
	}
	stale := s.timers.pinged == 0 || now-s.timers.pinged > roundTripAgeNanos
	if now-s.timers.lastIn < interval && !stale {
		return
	}
	if s.timers.outstanding >= s.config.PingOutstandingMax {
		s.Close(wire.StaleConnection, "Stale Connection")
		return
	}
	s.sendPing(now)
	s.checkPending()
}

// MeasureRoundTrip pings a connected client out of turn; monitoring asks for it.
func (s *Session) MeasureRoundTrip() {
	if s.reason == 0 && s.connected && s.timers.outstanding == 0 {
		s.sendPing(s.host.Now().Mono)
	}
}

func (s *Session) sendPing(now int64) {
	s.begin()
	s.out = wire.AppendPing(s.out)
	s.timers.outstanding++
	s.timers.pinged = now
}

// Stats counts what a session did, for monitoring.
type Stats struct {
	// InMsgs and InBytes count what the client published, header and body.
	InMsgs, InBytes uint64
	// OutMsgs and OutBytes count what was delivered to it.
	OutMsgs, OutBytes uint64
	// StartWall and LastActivityWall are unix nanoseconds.
	StartWall, LastActivityWall int64
	// RoundTripNanos is the last measured round trip, 0 before CONNECT.
	RoundTripNanos int64
}

// Stats returns the counts so far.
func (s *Session) Stats() Stats {
	stats := s.stats
	stats.RoundTripNanos = s.timers.roundTrip
	return stats
}
