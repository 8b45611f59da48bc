package session

import (
	"weir/node/auth"
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

// Secured tells how the connection is protected; nil: it is not, and what cookies it brought; nil without any. The time that a
// client has for its credentials begins here. A client that began the handshake gets its INFO now.
func (s *Session) Secured(protection *event.TLS, cookies *auth.Cookies) {
	if s.reason != 0 || !s.unsettled {
		return
	}
	s.unsettled, s.tls, s.cookies = false, protection, cookies
	s.timers.start(s.host.Now().Mono, s.pingInterval(), s.authTimeout())
	if !s.silent {
		return
	}
	s.silent = false
	info := s.info()
	if s.params.Way == auth.Standard {
		info.TLSRequired = true
	}
	s.begin()
	s.out = wire.AppendInfo(s.out, &info)
}

// TLS is how the connection is protected; nil when it is not. The caller only reads it.
func (s *Session) TLS() *event.TLS { return s.tls }

// takeCookies takes from cookies what the client did not say in CONNECT.
func (s *Session) takeCookies() {
	if s.cookies == nil {
		return
	}
	said := &s.connect
	for _, one := range []struct {
		said   *string
		cookie string
	}{
		{&said.JWT, s.cookies.JWT}, {&said.User, s.cookies.User}, {&said.Password, s.cookies.Password}, {&said.Token, s.cookies.Token},
	} {
		if *one.said == "" {
			*one.said = one.cookie
		}
	}
}
