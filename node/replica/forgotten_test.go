package replica

import (
	"errors"
	"testing"
)

// TestFollowerThatForgotStopsInsteadOfGoingOn tells a follower that it has acknowledged more than its log holds.
func TestFollowerThatForgotStopsInsteadOfGoingOn(t *testing.T) {
	w := directed(t, Plant{})
	w.elect(1, 2)
	w.host(1).propose()
	w.work(1, 2, 3)
	leader, follower := w.host(1).replica, w.host(2)
	beat := Beat{Group: leader.Group(), From: leader.ID(), To: 2, Term: leader.Term(), Commit: follower.replica.LastIndex()}
	follower.replica.ReceiveBeat(1, &beat, follower)
	if err := follower.replica.Broken(); err != nil {
		t.Fatalf("a heartbeat that names what the log holds stops the replica: %v", err)
	}
	beat.Commit++
	follower.replica.ReceiveBeat(1, &beat, follower)
	if err := follower.replica.Broken(); !errors.Is(err, ErrForgotten) {
		t.Fatalf("after a heartbeat beyond the end of the log: %v", err)
	}
}
