package session

import (
	"weir/node/route"
	"weir/spec/assert"
	"weir/transport/wire"
)

// Handle carries out one operation of the client. Its slices are only read and not kept.
func (s *Session) Handle(op *wire.Op) {
	if s.reason != 0 {
		return
	}
	if !s.admitted && op.Kind != wire.KindConnect {
		s.Fail(wire.FailureAuthorization)
		return
	}
	s.timers.authAt = 0
	switch op.Kind {
	case wire.KindPub:
		s.active()
		s.publish(op)
	case wire.KindSub:
		s.active()
		s.subscribe(op)
	case wire.KindUnsub:
		s.active()
		s.unsubscribe(op)
	case wire.KindPing:
		s.ping()
	case wire.KindPong:
		s.timers.pong(s.host.Now().Mono)
	case wire.KindConnect:
		s.handleConnect(op.Args)
	case wire.KindInfo:
		if _, err := wire.DecodeInfo(op.Args); err != nil {
			s.Close(wire.ProtocolViolation, "")
		}
	case wire.KindErr:
		s.Close(wire.ParseError, "")
	case wire.KindOK:
	default:
		assert.Unreachable("operation that no client sends", uint64(op.Kind))
	}
}

// active notes that the client did something.
func (s *Session) active() {
	now := s.host.Now()
	s.stats.LastActivityWall = now.Wall
	s.timers.lastIn = now.Mono
}

// handleConnect decides about the client. A second CONNECT decides anew and ends all subscriptions.
func (s *Session) handleConnect(args []byte) {
	now := s.host.Now()
	s.stats.LastActivityWall = now.Wall
	if err := s.connect.Decode(args); err != nil {
		s.Close(wire.ProtocolViolation, "")
		return
	}
	s.takeCookies()
	s.timers.connected(now.Mono, s.pingInterval(), s.params.Random)
	s.dropSubs()
	s.headers = s.config.Info.Headers && s.connect.Headers
	identity, ok, _ := s.authenticate()
	if !ok || s.connect.Account != "" || s.connect.NewAccount {
		s.Fail(wire.FailureAuthorization)
		return
	}
	s.leave()
	if l := identity.Limits; l != nil && l.Connections >= 0 && int64(s.host.Members(identity.Account, 0)) >= l.Connections {
		s.Close(wire.MaxAccountConnectionsExceeded, "maximum account active connections exceeded")
		return
	}
	s.bind(identity)
	s.setLimits()
	s.connected = true
	if s.connect.Protocol < 0 || s.connect.Protocol > 1 {
		s.Close(wire.BadClientProtocolVersion, "invalid client protocol")
		return
	}
	if s.connect.NoResponders && !s.headers {
		s.Close(wire.NoRespondersRequiresHeaders, "no responders requires headers support")
		return
	}
	s.begin()
	s.orders.Gate, s.orders.Admit = false, true
	s.acknowledge()
}

// ping answers PING. The first answer after CONNECT is followed by INFO that tells the client what it is bound to.
func (s *Session) ping() {
	s.begin()
	s.out = wire.AppendPong(s.out)
	s.timers.lastIn = s.host.Now().Mono
	if s.connected && !s.greeted {
		s.greeted = true
		if s.connect.Protocol >= 1 {
			info := s.info()
			info.ConnectInfo = true
			info.RemoteAccount = s.identity.Account
			info.IsSystemAccount = s.identity.Account == s.config.SystemAccount
			s.out = wire.AppendInfo(s.out, &info)
		}
	}
	s.checkPending()
}

// Deliver sends a message to the client. It implements route.Receiver.
func (s *Session) Deliver(sub *route.Sub, m *route.Message) bool {
	if s.reason != 0 || (m.From == s.params.ID && !s.connect.Echo) {
		return false
	}
	if s.filtered && !s.identity.Permissions.MayDeliver(m.Subject, sub.Queue) {
		return false
	}
	assert.True(sub.Max == 0 || sub.Delivered < sub.Max, "deliveries < max of an active subscription", sub.Delivered, sub.Max)
	sub.Delivered++
	s.begin()
	msg := wire.Msg{Subject: m.Subject, Sid: sub.Sid, Reply: m.Reply, Header: m.Header, Payload: m.Payload}
	s.out = wire.AppendMsg(s.out, &msg, s.headers)
	s.stats.OutMsgs++
	s.stats.OutBytes += uint64(len(m.Payload))
	if s.headers {
		s.stats.OutBytes += uint64(len(m.Header))
	}
	now := s.host.Now()
	s.stats.LastActivityWall = now.Wall
	if s.replies != nil && len(m.Reply) > 0 {
		s.replies.Grant(m.Reply, now.Mono)
	}
	if sub.Delivered == sub.Max {
		s.removeSub(sub)
	}
	s.checkPending()
	if s.reason == 0 {
		s.slowDown(m.From)
		if m.Routed {
			s.fallBehind(sub)
		}
	}
	return true
}
