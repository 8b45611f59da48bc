package engine

import (
	"encoding/json"
	"errors"
	"fmt"

	"weir/disk/checkpoint"
	"weir/disk/wal"
	"weir/node/event"
	"weir/node/replica"
)

// A replica of the catalog whose log lacks what it had acknowledged may have forgotten a vote too: its id must not go on. It
// can not wait for the catalog to give it another one, as replicas of streams do. But what it has applied was committed and
// is right: a replica with an id of its own goes on from there, as one that has just fetched it, and asks to be a member.

// rejoinCatalog puts another replica of the catalog in the place of one that has forgotten what it acknowledged.
func (e *Engine) rejoinCatalog() {
	g := e.meta
	if g == nil || g.replica == nil || g.saving || g.installing || e.failure != nil || !errors.Is(g.replica.Broken(), replica.ErrForgotten) {
		return
	}
	old, mark := g.replica, g.replica.Applied()
	e.logf(event.Error, fmt.Sprintf("The replica of the catalog on this server is stopped, another one takes its place: %v", old.Broken()))
	var first []replica.Member
	if err := json.Unmarshal(e.metaMembers, &first); err != nil {
		e.logf(event.Error, "First members of the catalog: "+err.Error())
		return
	}
	e.endReplica(g)
	e.meta = &group{id: metaGroup}
	e.groups[metaGroup] = e.meta
	birth := metaBirth{Founder: e.founder, Replica: e.random.Uint64()>>1 | 1, Members: first}
	if mark.Index == 0 {
		// There is nothing to go on from: it waits to be invited.
		e.founder, e.metaReplica, e.metaDamaged = 0, birth.Replica, true
		e.introduce()
		return
	}
	if err := e.continueMeta(&birth, starting{mark: mark, term: old.Term(), members: old.Members()}); err != nil {
		e.logf(event.Error, "The catalog of streams can not be joined again: "+err.Error())
		return
	}
	e.meta.moved = true // the checkpoint that the log now begins with is still to be made
	e.wantSave(e.meta)
	e.introduce()
}

// continueMeta starts a replica of the catalog on the state that this server has.
func (e *Engine) continueMeta(birth *metaBirth, s starting) error {
	initial, err := json.Marshal(birth)
	if err != nil {
		return err
	}
	e.metaReplica = birth.Replica
	s.machine, s.id, s.initial = e.catalog, birth.Replica, initial
	return e.startGroup(e.meta, &s)
}

// goesOn is the log of a replica that takes the place of another in memory.
func (s *starting) goesOn() (wal.Group, checkpoint.Mark) {
	return wal.Group{HardState: wal.HardState{Term: s.term, Commit: s.mark.Index}}, s.mark
}
