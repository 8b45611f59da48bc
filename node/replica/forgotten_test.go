package replica

import (
	"errors"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
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
	beat.Acked = follower.replica.LastIndex()
	follower.replica.ReceiveBeat(1, &beat, follower)
	if err := follower.replica.Broken(); err != nil {
		t.Fatalf("a heartbeat that names what the log holds stops the replica: %v", err)
	}
	beat.Acked++ // it need not be committed
	follower.replica.ReceiveBeat(1, &beat, follower)
	if err := follower.replica.Broken(); !errors.Is(err, ErrForgotten) {
		t.Fatalf("after a heartbeat beyond the end of the log: %v", err)
	}
}

// TestRefusalOfWhatWasAcknowledgedIsNotAnswered has a follower refuse again and again to append behind what it has acknowledged,
// as one does that has forgotten it: the leader does not try the same again, which would go on for ever.
func TestRefusalOfWhatWasAcknowledgedIsNotAnswered(t *testing.T) {
	w := directed(t, Plant{})
	w.elect(1, 2)
	w.host(1).propose()
	w.work(1, 2, 3)
	h := w.host(1)
	leader, match := h.replica, h.replica.LastIndex()
	leader.Unreachable(2) // so that the leader looks for where the follower is
	h.flush()
	for len(w.net) > 0 {
		w.deliver()
	}
	refusal := &pb.Message{
		Type: pb.MsgAppResp.Enum(), From: new(uint64(2)), To: new(leader.ID()), Term: new(leader.Term()), Index: new(match),
		Reject: new(true), RejectHint: new(match - 1), LogTerm: new(leader.Term()),
	}
	for range 3 {
		leader.Receive(2, refusal, h)
		h.flush()
		if len(w.net) > 0 {
			t.Fatalf("the leader answers %d messages", len(w.net))
		}
	}
	if p, _ := leader.Progress(2); p.Match != match {
		t.Fatalf("the leader counts %d, it had %d", p.Match, match)
	}
}
