package engine

import (
	"fmt"

	"weir/disk/wal"
	"weir/model/header"
	"weir/node/route"
)

// keptID is a message id of a group, for Plant.KeepFailedID.
type keptID struct {
	group wal.GroupID
	id    string
}

// keptPlace is where the message of such an id was expected to go, and in which term it was proposed.
type keptPlace struct{ seq, term uint64 }

// repeats is the planted fault of a table of message ids beside the log: what was proposed in an earlier term counts as
// stored.
func (e *Engine) repeats(g *group, m *route.Message) bool {
	id := header.Get(m.Header, header.MsgID)
	if len(id) == 0 {
		return false
	}
	if e.keptIDs == nil {
		e.keptIDs = map[keptID]keptPlace{}
	}
	key := keptID{g.id, string(id)}
	place, known := e.keptIDs[key]
	if known && place.term != g.replica.Term() {
		ack := fmt.Appendf(nil, `{"stream":%q,"seq":%d,"duplicate":true}`, g.entry.Name, place.seq)
		e.accountNamed[g.entry.Account].send(m.Reply, nil, ack)
		return true
	}
	e.keptIDs[key] = keptPlace{g.stream.State().LastSeq + 1, g.replica.Term()}
	return false
}
