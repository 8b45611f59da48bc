package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/disk/vfs"
	"weir/node/event"
)

// What operators are told about a stream that is not well: what happened, and what they can do, or that nothing is to be done.

// notServed is why the stream is not served here.
func (e *Engine) notServed(g *group) string {
	switch {
	case g.account == nil || g.account.limits == nil:
		return g.damaged.Error()
	case e.clustered() && g.entry != nil && len(g.entry.Replicas) > 1:
		return g.damaged.Error() + "; another replica takes its place here once a majority of the others is there"
	}
	return g.damaged.Error() + "; its data is left as it is and no other server has it: restore the data directory from a copy, or delete the stream"
}

// damageOf is what of the stream is damaged here, "" when all can be read.
func damageOf(g *group) string {
	switch {
	case g.readFailed == nil:
		return ""
	case g.ailing != nil:
		return g.readFailed.Error() + "; it is fetched from the other servers"
	}
	return g.readFailed.Error() + "; no other server has it, what can be read is served: delete or purge the messages, or restore the stream"
}

// unsaved is why the group's newest checkpoint could not be written, "" when it could.
func unsaved(g *group) string {
	switch {
	case g.saveFailed == nil:
		return ""
	case errors.Is(g.saveFailed, vfs.ErrNoSpace):
		return fmt.Sprintf("there is no space for a checkpoint (%v); nothing is lost, the log has what it would hold: make space on the disk, "+
			"it is tried again", g.saveFailed)
	}
	return fmt.Sprintf("a checkpoint could not be written (%v); nothing is lost, the log has what it would hold, it is tried again", g.saveFailed)
}

// leaderless says why a group that has no known leader may have none.
func (e *Engine) leaderless(g *group) string {
	const unknown = "group leader unknown"
	if g.entry == nil {
		return unknown
	}
	holders := e.holders(g)
	var away []string
	for _, server := range holders {
		if !e.online(server) {
			away = append(away, e.nameOfLost(server))
		}
	}
	if len(away) <= (len(holders)-1)/2 {
		return unknown
	}
	return fmt.Sprintf("%s, %d of the %d servers that have its data are not there (%s): start them again with their data directories, "+
		"or delete the stream if those are lost", unknown, len(away), len(holders), strings.Join(away, ", "))
}

// holders are the servers that vote in the group of a stream, as far as the replica here knows. One that has never heard from
// the group takes those that the catalog names besides it, or named before.
func (e *Engine) holders(g *group) []event.ServerID {
	var servers []event.ServerID
	if members := g.replica.Members(); hasMember(members, g.replica.ID()) {
		for _, m := range members {
			if !m.Learner {
				servers = append(servers, event.ServerID(m.Server))
			}
		}
		return servers
	}
	for _, r := range slices.Concat(g.entry.Former, g.entry.Replicas) {
		if s := event.ServerID(r.Server); s != e.config.Server && !slices.Contains(servers, s) {
			servers = append(servers, s)
		}
	}
	return servers
}

// nameOfLost is the name of a server that is not there. Another one may have its name by now.
func (e *Engine) nameOfLost(server event.ServerID) string {
	name := e.serverName(server)
	if s := e.catalog.Server(uint64(server)); s != nil && s.Removed {
		return fmt.Sprintf("%s with the id %s, which was removed or replaced", name, server.Short())
	}
	return name
}
