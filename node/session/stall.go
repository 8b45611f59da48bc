package session

import "weir/node/event"

// A client that publishes to one that falls behind is slowed down, for each message by stallNanos, or by stallHardNanos
// when the other is about to be closed, and by stallMaxNanos at most per step. The numbers are the reference server's.
const (
	stallNanos     = 2e6
	stallHardNanos = 5e6
	stallMaxNanos  = 10e6
)

// Congested reports that the client is close to being closed as too slow: three quarters of the pending bytes it may have
// wait to be sent.
func (s *Session) Congested() bool { return s.PendingBytes() > s.config.PendingBytesMax/4*3 }

// slowDown makes the client that published to this one wait when this one is congested. The server itself, which paces
// deliveries by other means, is not slowed down.
func (s *Session) slowDown(publisher event.ConnID) {
	if publisher == 0 || publisher == s.params.ID || !s.Congested() {
		return
	}
	from := s.host.Session(publisher)
	if from == nil || from.reason != 0 {
		return
	}
	nanos := int64(stallNanos)
	if s.PendingBytes() > s.config.PendingBytesMax/8*7 {
		nanos = stallHardNanos
	}
	from.begin()
	from.orders.StallNanos = min(from.orders.StallNanos+nanos, stallMaxNanos)
}
