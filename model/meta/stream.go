package meta

import (
	"slices"

	"weir/model/jsapi"
)

// Replica is one replica of a stream's group: the id under which it takes part in Raft, and the server that has it.
type Replica struct {
	// ID is never used for another replica.
	ID uint64
	// Server is the id of the server.
	Server uint64
}

// Stream is one entry of the catalog. It is not changed after it was handed out; a change makes a new one.
type Stream struct {
	// Account and Name identify the stream; Name is unique in the account.
	Account, Name string
	// Group is the Raft group that holds the stream. It is the incarnation too: another stream of the same name, later,
	// has another group.
	Group uint64
	// Created is the time of creation in unix nanoseconds.
	Created int64
	// Version counts configurations, from 1.
	Version uint64
	// Config is the normalised configuration.
	Config *jsapi.StreamConfig
	// JSON is the canonical form of Config.
	JSON []byte

	// BirthJSON is the canonical form of the first configuration, with which the machine of a replica begins that has the
	// whole log before it.
	BirthJSON []byte
	// Birth are the replicas with which the group began; they are its first voters.
	Birth []Replica
	// Replicas are those that the group shall have, on distinct servers. The first is the preferred leader. There may be
	// fewer than the configuration asks for when servers are missing. Streams of a catalog without servers have none.
	Replicas []Replica
	// Former are replicas that shall leave the group. Their servers keep them until the placement is settled, and get no
	// other replica of the stream before that.
	Former []Replica
	// Placement counts the changes of Replicas, from 1; Settled is the newest of them that the group has reached.
	Placement, Settled uint64
	// Moving says that the placement which is not settled came of a changed placement in the configuration.
	Moving bool
}

// IsSettled reports whether the group has the replicas that it shall have.
func (s *Stream) IsSettled() bool { return s.Placement == s.Settled }

// Member returns the replica that the group shall have on the server.
func (s *Stream) Member(server uint64) (Replica, bool) { return replicaOn(s.Replicas, server) }

// FormerOn returns the replica that the server has and is to lose.
func (s *Stream) FormerOn(server uint64) (Replica, bool) { return replicaOn(s.Former, server) }

// On returns the replica that the server has to run, whether it shall stay or leave.
func (s *Stream) On(server uint64) (Replica, bool) {
	if r, ok := s.Member(server); ok {
		return r, true
	}
	return s.FormerOn(server)
}

func replicaOn(replicas []Replica, server uint64) (Replica, bool) {
	for _, r := range replicas {
		if r.Server == server {
			return r, true
		}
	}
	return Replica{}, false
}

// without returns a copy of replicas that lacks the one on the server.
func without(replicas []Replica, server uint64) []Replica {
	return slices.DeleteFunc(slices.Clone(replicas), func(r Replica) bool { return r.Server == server })
}
