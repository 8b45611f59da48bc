package replica

import "testing"

// gatherer is a leader of several voters whose newest entries had so many commands, the last of them proposed at 0.
func gatherer(open int, counts ...int) *Replica {
	r := &Replica{rounds: true, serving: true}
	r.counts = [2]int{counts[0], counts[1]}
	r.open = &Batch{published: true, origins: make([]Origin, open)}
	return r
}

func TestLonePublisherWaitsForNobody(t *testing.T) {
	if r := gatherer(1, 1, 1); !r.mayReplicate(300_000) {
		t.Error("the only message of a publisher that is alone waits")
	}
}

func TestMessagesThatAreAllThatIsExpectedLeaveAtOnce(t *testing.T) {
	if r := gatherer(14, 16, 1); !r.mayReplicate(300_000) {
		t.Error("14 messages wait where 16 came before")
	}
}

func TestMessageWaitsForCompanyHalfAsLongAsTheLastRoundTook(t *testing.T) {
	r := gatherer(1, 1, 16)
	const began = 300_000
	if r.mayReplicate(began) {
		t.Fatal("a message does not wait for the 15 others")
	}
	if got, want := r.GatherUntil(), int64(began+began/2); got != want {
		t.Errorf("it waits until %d, not %d", got, want)
	}
	if r.mayReplicate(r.GatherUntil() - 1) {
		t.Error("it leaves too early")
	}
	if !r.mayReplicate(r.GatherUntil()) {
		t.Error("it waits for ever")
	}
}

func TestMessageAfterAPauseWaitsForNobody(t *testing.T) {
	if r := gatherer(1, 16, 16); !r.mayReplicate(recentNanos) {
		t.Error("a message waits for publishers that have gone")
	}
}

func TestMessageWaitsForTheEntryOnItsWayButNotLong(t *testing.T) {
	r := gatherer(1, 1, 1)
	r.proposed, r.waiting = 1, []*Batch{{}}
	r.proposedMono = 5
	if r.mayReplicate(6) || r.GatherUntil() != 5+GatherNanos {
		t.Fatalf("it may leave at once, or at %d", r.GatherUntil())
	}
	if !r.mayReplicate(5 + GatherNanos) {
		t.Error("it waits for ever")
	}
	r.open.data = make([]byte, OverlapBytesMin)
	if !r.mayReplicate(6) {
		t.Error("a large batch waits")
	}
}

func TestCompanyIsExpectedAnewOnceTheEntryIsCommitted(t *testing.T) {
	r := gatherer(1, 16, 16)
	r.proposed, r.waiting = 1, []*Batch{{}}
	_ = r.mayReplicate(1)
	r.proposed, r.waiting = 0, nil
	if r.mayReplicate(400_000) || r.GatherUntil() != 600_000 {
		t.Errorf("it waits until %d", r.GatherUntil())
	}
}
