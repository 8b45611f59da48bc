package replica

// Plant names the deliberate faults of this package, for checking that the simulator finds them. All are false in
// production.
type Plant struct {
	// AckBeforeSync treats an append as durable when it is handed out.
	AckBeforeSync bool
	// ReadBeforeTerm serves reads before an entry of the leader's term is applied.
	ReadBeforeTerm bool
	// CommitEarlierTerm commits entries of earlier terms by counting replicas (Raft, section 5.4.2, figure 8).
	CommitEarlierTerm bool
	// VoteBeforeSync sends a vote before it is durable.
	VoteBeforeSync bool
	// ForgetVote drops the vote of the hard state at a restart.
	ForgetVote bool
	// ReadOldLeader answers reads from the leader's own state as long as it thinks that it leads, and what still waits
	// when it learns better.
	ReadOldLeader bool
	// ReadWithoutQuorum takes the commit index for a read index without asking a quorum whether the leader still leads.
	ReadWithoutQuorum bool
	// SkipCatchUpEntry empties one of the entries that a follower which lags behind is sent.
	SkipCatchUpEntry bool
	// LearnerVotes adds learners as voters.
	LearnerVotes bool
	// RemovedStillCounts leaves removed members in the quorum.
	RemovedStillCounts bool
	// TwoChanges lets a change of the membership begin before the one before it is applied.
	TwoChanges bool
	// AcceptGap lets a follower append entries behind a gap, as if nothing were missing.
	AcceptGap bool
	// AckBeforeCommit applies and answers entries when they are in the leader's own log.
	AckBeforeCommit bool
	// SettleEarly takes the membership for settled when this leader alone knows it.
	SettleEarly bool
	// PromoteUnaware gives a learner a vote that may not have the change before in its log.
	PromoteUnaware bool
	// LeaseJump measures leases by the wall clock.
	LeaseJump bool
}
