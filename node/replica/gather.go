package replica

// With several voters an entry costs each of them a message, a sync and an answer, whatever its size. So messages travel
// together: those that come while an entry is on its way wait for it to be committed, and those that come after that wait
// a moment for the others whose publishers were answered at the same time. A lone publisher waits for nobody.

// The bounds of that.
const (
	// GatherNanos is how long messages wait for an entry that is on its way.
	GatherNanos = int64(2e6)
	// companyNanos bounds the wait for other publishers, and recentNanos is how long ago the last entry may have left for
	// them to be expected.
	companyNanos = int64(1e6)
	recentNanos  = int64(20e6)
)

// gathering is what a leader knows about the pace of its publishers.
type gathering struct {
	proposedMono int64  // when the newest entry was proposed
	counts       [2]int // how many commands the newest entries had
	// gatherUntil is when the open batch leaves although it is small; 0: nothing waits.
	gatherUntil int64
}

// noteProposed notes that so many commands have left.
func (r *Replica) noteProposed(commands int, mono int64) {
	r.proposedMono, r.gatherUntil = mono, 0
	r.counts[0], r.counts[1] = commands, r.counts[0]
}

// mayReplicate is mayAppend for several voters.
func (r *Replica) mayReplicate(mono int64) bool {
	switch {
	case r.proposed < len(r.waiting) || len(r.open.data) >= OverlapBytesMin:
		return true
	case !r.open.published:
		return r.proposed == 0 || len(r.inFlight) == 0
	case r.proposed > 0:
		r.gatherUntil = r.proposedMono + GatherNanos
	case r.open.Len() >= r.expected():
		return true
	case r.gatherUntil == 0 || r.gatherUntil == r.proposedMono+GatherNanos:
		// It has been about this long until the last ones were answered and came again.
		r.gatherUntil = mono
		if since := mono - r.proposedMono; since < recentNanos {
			r.gatherUntil += min(since/2, companyNanos)
		}
	}
	return mono >= r.gatherUntil
}

// expected is how many commands make a batch that need not wait for company.
func (r *Replica) expected() int {
	n := max(r.counts[0], r.counts[1])
	return n - n/8
}

// GatherUntil is the monotone time at which Flush is to be called for messages that wait for company, though nothing else
// has happened; 0: none do.
func (r *Replica) GatherUntil() int64 {
	if r.open == nil || !r.open.published || !r.rounds || !r.serving || len(r.inFlight) >= InFlightMax {
		return 0
	}
	return r.gatherUntil
}
