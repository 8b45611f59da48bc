package session

import (
	"bytes"
	"strconv"

	"weir/model/subject"
	"weir/node/route"
	"weir/transport/wire"
)

// Prefixes that belong to servers: clients may neither publish to the first three nor ask for answers on the others.
var (
	gatewayReplyPrefix    = []byte("_GR_.")
	oldGatewayReplyPrefix = []byte("$GR.")
	raftPrefix            = []byte("$NRG.")
	serviceReplyPrefix    = []byte("_R_.")
	ackPrefix             = []byte("$JS.ACK.")
)

// publish checks a message and hands it to the host.
func (s *Session) publish(op *wire.Op) {
	if op.Header != nil && !s.headers {
		s.Close(wire.ProtocolViolation, "")
		return
	}
	if s.connect.Pedantic && !subject.ValidLiteral(op.Subject) {
		s.sendErr("Invalid Publish Subject")
	}
	s.stats.InMsgs++
	s.stats.InBytes += uint64(len(op.Header) + len(op.Payload))
	if !s.mayPublish(op.Subject) {
		s.sendErr("Permissions Violation for Publish to " + strconv.Quote(string(op.Subject)))
		return
	}
	if len(op.Reply) > 0 && reservedReply(op.Reply) {
		s.sendErr("Permissions Violation for Publish with Reply of " + strconv.Quote(string(op.Reply)))
		return
	}
	s.acknowledge()
	s.message = route.Message{From: s.params.ID, Subject: op.Subject, Reply: op.Reply, Header: op.Header, Payload: op.Payload}
	taken := s.host.Publish(s, &s.message)
	s.message = route.Message{}
	if !taken && len(op.Reply) > 0 && s.connect.NoResponders && s.reason == 0 {
		s.sendNoResponders(op)
	}
	s.checkPending()
}

// mayPublish reports whether permissions and reserved prefixes allow the subject.
func (s *Session) mayPublish(to []byte) bool {
	if to[0] == '_' && bytes.HasPrefix(to, gatewayReplyPrefix) {
		return false
	}
	if to[0] == '$' && (bytes.HasPrefix(to, oldGatewayReplyPrefix) ||
		(bytes.HasPrefix(to, raftPrefix) && s.identity.Account != s.config.SystemAccount)) {
		return false
	}
	p := s.identity.Permissions
	if p == nil || p.MayPublish(to) {
		return true
	}
	return s.replies != nil && s.replies.Spend(to, s.host.Now().Mono)
}

// reservedReply reports whether only servers use the reply subject.
func reservedReply(reply []byte) bool {
	return bytes.HasPrefix(reply, serviceReplyPrefix) || bytes.HasPrefix(reply, gatewayReplyPrefix) ||
		bytes.HasPrefix(reply, oldGatewayReplyPrefix) || (bytes.HasPrefix(reply, ackPrefix) && len(reply) > len(ackPrefix))
}

// sendNoResponders tells the client that nobody took its request, on a subscription that waits for the answer.
func (s *Session) sendNoResponders(op *wire.Op) {
	if sub := s.table.PlainOf(s.params.ID, op.Reply); sub != nil {
		s.begin()
		s.out = wire.AppendNoResponders(s.out, op.Reply, sub.Sid, op.Subject)
	}
}
