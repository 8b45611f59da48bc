package session

import (
	"fmt"
	"slices"

	"weir/node/auth"
	"weir/node/route"
	"weir/transport/wire"
)

// Reauthenticate has the client prove itself once more, by what it said when it connected, because the users have
// changed. A client that may not stay is told so and closed; one that belongs to another account now is closed, to come
// back as what it is. Subscriptions that are no longer permitted end, and the result is what the operator is told of
// them.
func (s *Session) Reauthenticate() (removed []string) {
	if s.reason != 0 || !s.connected && !s.admitted {
		return nil
	}
	identity, ok := s.config.Auth.Anonymous(s.params.Way)
	revoked := false
	if s.connected {
		identity, ok, revoked = s.authenticate()
	}
	switch {
	case !ok && revoked:
		s.Close(wire.CredentialsRevoked, "User Authentication Revoked")
		return nil
	case !ok:
		s.Fail(wire.FailureAuthorization)
		return nil
	case identity.Account != s.identity.Account:
		s.Close(wire.ClientClosed, "")
		return nil
	}
	s.become(identity)
	return s.endForbidden()
}

// authenticate decides by what the client said and by its certificate who it is.
func (s *Session) authenticate() (identity auth.Identity, ok, revoked bool) {
	proof := auth.Proof{Way: s.params.Way, Nonce: s.params.Nonce, Address: s.params.Address, Wall: s.host.Now().Wall}
	if s.tls != nil {
		proof.Certificate = s.tls.Certificate
	}
	identity, ok = s.config.Auth.Authenticate(&s.connect, &proof)
	s.refusal = proof.Refusal
	return identity, ok, proof.Revoked()
}

// become gives the client another identity in the same account. What it may answer to it still may, as long as it may
// answer at all.
func (s *Session) become(identity auth.Identity) {
	s.identity = identity
	s.timers.endAt, s.timers.accountEndAt = s.ends(identity.EndNanos), s.ends(identity.AccountEndNanos)
	s.begin()
	s.setLimits()
	p := identity.Permissions
	switch {
	case p == nil || p.Responses() == nil:
		s.replies = nil
	case s.replies == nil:
		s.replies = auth.NewReplies(*p.Responses())
	}
	s.filtered = p != nil && slices.ContainsFunc(s.subs, func(sub *route.Sub) bool { return p.Filters([]byte(sub.Pattern)) })
}

// KeepBound closes the client when its account has more clients than it may have now.
func (s *Session) KeepBound() {
	l := s.identity.Limits
	if s.reason == 0 && s.member && l != nil && l.Connections >= 0 && int64(s.host.Members(s.identity.Account, 0)) > l.Connections {
		s.Close(wire.MaxAccountConnectionsExceeded, "maximum account active connections exceeded")
	}
}

// endForbidden ends the subscriptions that the client may not have.
func (s *Session) endForbidden() (removed []string) {
	p := s.identity.Permissions
	if p == nil {
		return nil
	}
	for _, sub := range slices.Clone(s.subs) {
		var queue []byte
		what := fmt.Sprintf("%q", sub.Pattern)
		if sub.Queue != "" {
			queue = []byte(sub.Queue)
			what += fmt.Sprintf(" using queue %q", sub.Queue)
		}
		if p.MaySubscribe([]byte(sub.Pattern), queue) {
			continue
		}
		what += fmt.Sprintf(" (sid %q)", sub.Sid)
		s.removeSub(sub)
		s.sendErr("Permissions Violation for Subscription to " + what)
		removed = append(removed, fmt.Sprintf("Removed sub %s for %s - not authorized", what, s.identity.User))
	}
	s.checkPending()
	return removed
}
