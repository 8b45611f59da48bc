package world

import (
	"weir/disk/wal"
	"weir/node"
)

// wipedKeepsIdentity is the planted fault of the world itself: an operator who empties a disk and gives the server its
// old identity.
const wipedKeepsIdentity = "wiped-keeps-identity"

// reusedNumbers is the planted fault that lets an entry of a deleted stream be taken for one of its successor.
const reusedNumbers = "stale-incarnation"

// hidden says whether the world itself must not look at a group: with reusedNumbers it would stumble over the numbers
// before an entry goes astray. The streams of the plan are not deleted.
func (w *World) hidden(group wal.GroupID) bool {
	return w.plan.Plant == reusedNumbers && int(group) >= firstStream+len(w.plan.Streams)
}

// firstStream is the group of the first stream.
const firstStream = 16

// clusterPlants are the planted faults that take a cluster to show.
func clusterPlants() []Plant {
	plants := []Plant{
		{Name: "commit-earlier-term", What: "commits entries of earlier terms by counting replicas",
			set: func(c *node.Config) { c.Engine.Plant.Replica.CommitEarlierTerm = true }},
		{Name: "vote-before-sync", What: "sends a vote before it is durable",
			set: func(c *node.Config) { c.Engine.Plant.Replica.VoteBeforeSync = true }},
		{Name: "forgotten-vote", What: "forgets at a restart for whom it voted in its term",
			set: func(c *node.Config) { c.Engine.Plant.Replica.ForgetVote = true }},
		{Name: "read-before-noop", What: "answers reads before an entry of the leader's own term is applied",
			set: func(c *node.Config) { c.Engine.Plant.Replica.ReadBeforeTerm = true }},
		{Name: "read-old-leader", What: "answers reads from a former leader that does not know better",
			set: func(c *node.Config) { c.Engine.Plant.Replica.ReadOldLeader = true }},
		{Name: "read-without-quorum", What: "takes the commit index for a read index without asking a quorum",
			set: func(c *node.Config) { c.Engine.Plant.Replica.ReadWithoutQuorum = true }},
		{Name: "skip-catch-up-entry", What: "leaves an entry out when a follower catches up",
			set: func(c *node.Config) { c.Engine.Plant.Replica.SkipCatchUpEntry = true }},
		{Name: "learner-votes", What: "counts learners as voters",
			set: func(c *node.Config) { c.Engine.Plant.Replica.LearnerVotes = true }},
		{Name: "removed-counts", What: "goes on counting members that were removed",
			set: func(c *node.Config) { c.Engine.Plant.Replica.RemovedStillCounts = true }},
		{Name: "two-changes", What: "begins a change of the membership before the one before is applied",
			set: func(c *node.Config) { c.Engine.Plant.Replica.TwoChanges = true }},
		{Name: "accept-gap", What: "appends entries behind a gap",
			set: func(c *node.Config) { c.Engine.Plant.Replica.AcceptGap = true }},
		{Name: "ack-before-commit", What: "answers when an entry is in the leader's own log",
			set: func(c *node.Config) { c.Engine.Plant.Replica.AckBeforeCommit = true }},
		{Name: "lease-jump", What: "trusts a lease measured by the wall clock",
			set: func(c *node.Config) { c.Engine.Plant.Replica.LeaseJump = true }},
		{Name: "snapshot-without-deletes", What: "installs a snapshot over what was deleted before it",
			set: func(c *node.Config) { c.Storage.Plant.InstallKeepsOld = true }},
		{Name: "damaged-block-is-end", What: "takes a damaged block, of the log or of messages, for the end of the data",
			set: func(c *node.Config) {
				c.Engine.Plant.DamageIsEnd, c.Storage.Plant.Blocks.EndAtDamage = true, true
				c.Storage.Log.Plant.StopAtFirstBad = true
			}},
		{Name: "damaged-checkpoint-is-empty", What: "takes a damaged checkpoint for none and removes its messages as orphans",
			set: func(c *node.Config) { c.Storage.Plant.DamagedIsEmpty = true }},
		{Name: "deliver-before-commit", What: "delivers before the record of the delivery is committed",
			set: func(c *node.Config) { c.Engine.Plant.DeliverEarly = true }},
		{Name: "own-clock", What: "expires by the clock of each server instead of the time in the log",
			set: func(c *node.Config) { c.Engine.Plant.OwnClock = true }},
		{Name: "failed-id-kept", What: "keeps the message id of a proposal that failed",
			set: func(c *node.Config) { c.Engine.Plant.KeepFailedID = true }},
		{Name: "purge-moves-cursor", What: "moves a consumer over messages that a purge left",
			set: func(c *node.Config) { c.Engine.Plant.Stream.Consumer.PurgeMovesCursor = true }},
		{Name: "digest-without-consumers", What: "leaves consumers out of the digest of a state",
			set: func(c *node.Config) { c.Engine.Plant.Stream.BlindDigest = true }},
		{Name: "no-space-is-success", What: "takes an append that a full disk refused for done",
			set: func(c *node.Config) { c.Storage.Plant.NoSpaceIsSuccess = true }},
		{Name: reusedNumbers, What: "gives the numbers of a deleted stream's group and replicas to its successor",
			set: func(c *node.Config) { c.Engine.Plant.Catalog.ReuseNumbers = true }},
		{Name: "snapshot-without-dedup", What: "restores a snapshot without the duplicate window",
			set: func(c *node.Config) { c.Engine.Plant.Stream.LoseDedup = true }},
		{Name: wipedKeepsIdentity, What: "comes back under its old identity after its disk was emptied",
			set: func(*node.Config) {}},
	}
	plants = append(plants, catalogPlants()...)
	for i := range plants {
		plants[i].Cluster = true
	}
	return plants
}

// catalogPlants are those about what the catalog decides, and what servers do about it.
func catalogPlants() []Plant {
	return []Plant{
		{Name: "settled-early", What: "reports a placement as reached before a majority of its replicas knows the membership",
			set: func(c *node.Config) { c.Engine.Plant.Replica.SettleEarly = true }},
		{Name: "promoted-unaware", What: "gives a vote to a replica that may not know that it is a member",
			set: func(c *node.Config) { c.Engine.Plant.Replica.PromoteUnaware = true }},
		{Name: "serves-by-old-catalog", What: "serves streams before its catalog has been current once since its start",
			set: func(c *node.Config) { c.Engine.Plant.ServeByOldCatalog = true }},
		{Name: "drops-by-old-catalog", What: "ends the logs of streams that a catalog which is not current does not name",
			set: func(c *node.Config) { c.Engine.Plant.DropByOldCatalog = true }},
		{Name: "end-forgotten", What: "ends a log before it is durable why, and begins it again after a restart",
			set: func(c *node.Config) { c.Engine.Plant.EndForgotten = true }},
		{Name: "lease-outlives-stream", What: "answers a deletion while a leader may still read by a lease",
			set: func(c *node.Config) { c.Engine.Plant.LeaseOutlives = true }},
		{Name: "found-lost", What: "founds a catalog where one was lost",
			set: func(c *node.Config) { c.Engine.Plant.FoundLost = true }},
		{Name: "invite-unasked", What: "has damaged catalogs given up though a majority is damaged",
			set: func(c *node.Config) { c.Engine.Plant.InviteUnasked = true }},
		{Name: "desk-keeps-lead", What: "goes on to serve the consumers of a stream that another server leads",
			set: func(c *node.Config) { c.Engine.Plant.DeskKeepsLead = true }},
	}
}
