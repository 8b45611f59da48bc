package session

import (
	"weir/node/event"
	"weir/transport/wire"
)

// Greet says INFO to a client that waits for it, on a connection that began silently.
func (s *Session) Greet() {
	if s.reason != 0 || !s.silent {
		return
	}
	s.silent = false
	info := s.info()
	s.begin()
	s.out = wire.AppendInfo(s.out, &info)
}

// Secured tells how the connection is protected; nil: it is not. The time that a client has for its credentials begins
// here. A client that began the handshake gets its INFO now.
func (s *Session) Secured(protection *event.TLS) {
	if s.reason != 0 || !s.unsettled {
		return
	}
	s.unsettled, s.tls = false, protection
	s.timers.start(s.host.Now().Mono, s.config)
	if !s.silent {
		return
	}
	s.silent = false
	info := s.info()
	info.TLSRequired = true
	s.begin()
	s.out = wire.AppendInfo(s.out, &info)
}

// TLS is how the connection is protected; nil when it is not. The caller only reads it.
func (s *Session) TLS() *event.TLS { return s.tls }
