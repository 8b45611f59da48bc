package engine

import (
	"fmt"

	"weir/node/auth"
	"weir/node/event"
	"weir/node/session"
	"weir/transport/wire"
)

// logClosed tells the operator of a connection that this server closed: whose client is refused or too slow has to find out
// why. Connections that clients close themselves are no news. What a client says about itself is quoted.
func (e *Engine) logClosed(s *session.Session) {
	level, text := event.Error, ""
	switch reason := s.Closed(); reason {
	case wire.AuthenticationFailure:
		text = "authentication error - " + refusedUser(s)
	case wire.SlowConsumerPendingBytes:
		level, text = event.Info, fmt.Sprintf("Slow Consumer Detected: MaxPending of %d Exceeded", e.clientConfig.PendingBytesMax)
	case wire.SlowConsumerWriteDeadline:
		level, text = event.Info, "Slow Consumer Detected: WriteDeadline Exceeded"
	case wire.MaxConnectionsExceeded, wire.MaxAccountConnectionsExceeded, wire.MaxPayloadExceeded, wire.MaxControlLineExceeded,
		wire.MaxSubscriptionsExceeded, wire.ParseError, wire.ProtocolViolation, wire.MessageHeaderViolation,
		wire.NoRespondersRequiresHeaders, wire.BadClientProtocolVersion:
		text = reason.String()
	default:
		return
	}
	who := ""
	if id := s.Identity(); s.Connected() && id.Account != "" {
		who = fmt.Sprintf(" - %q", id.Account+"/user:"+id.User)
	}
	kind := "cid"
	if s.Way() == auth.WebSocket {
		kind = "wid"
	}
	e.logf(level, fmt.Sprintf("%s:%d - %s:%d%s - %s", s.Address(), s.Port(), kind, s.ID(), who, text))
}

// refusedUser names who was not let in by what it said, which is no secret, and says why as far as that helps.
func refusedUser(s *session.Session) string {
	said, text := s.Connect(), ""
	switch {
	case said.Nkey != "":
		text = fmt.Sprintf("Nkey %q", said.Nkey)
	case said.User != "" || said.JWT == "":
		text = fmt.Sprintf("User %q", said.User)
	default:
		text = "JWT User"
	}
	if err := s.Refusal(); err != nil {
		text += ": " + err.Error()
	}
	return text
}
