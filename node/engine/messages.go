package engine

import (
	"weir/disk/msgstore"
	"weir/node/event"
)

// stored is the bytes of a stored message.
type stored = msgstore.Msg

// fetching is a read of the disk under way.
type fetching struct {
	group *group
	seq   uint64
	done  func(m *stored, err error)
}

// FetchesMax bounds the reads of the disk that may be under way; more wait for their turn.
const FetchesMax = 1024

// fetch gets the bytes of a message: at once when they are in memory, else from the disk in a later step. done gets nil
// when the message is not there any more, and an error when it is and can not be read: damage is not absence. What it
// gets is valid during the call and not changed.
func (e *Engine) fetch(g *group, seq uint64, done func(m *stored, err error)) {
	if m, ok := g.index.Cached(seq); ok {
		done(&m, nil)
		return
	}
	loc, ok := g.index.Lookup(seq)
	if !ok {
		done(nil, nil)
		return
	}
	e.wanted = append(e.wanted, wantedFetch{fetching{g, seq, done}, loc})
}

type wantedFetch struct {
	fetching
	loc msgstore.Loc
}

// flushFetches hands out the reads that have their turn.
func (e *Engine) flushFetches(out *event.Outputs) {
	n := min(len(e.wanted), FetchesMax-len(e.fetches))
	for _, w := range e.wanted[:n] {
		ticket := e.ticket()
		e.fetches[ticket] = w.fetching
		out.Storage = append(out.Storage, event.Op{Kind: event.Fetch, Ticket: ticket, Group: w.group.id, Loc: w.loc})
	}
	rest := copy(e.wanted, e.wanted[n:])
	clear(e.wanted[rest:])
	e.wanted = e.wanted[:rest]
}

// fetched handles the end of a read.
func (e *Engine) fetched(c *event.Completion) {
	f, ok := e.fetches[c.Ticket]
	if !ok {
		return
	}
	delete(e.fetches, c.Ticket)
	if c.Err == nil {
		f.group.readFailed = nil
		f.done(&c.Message, nil)
		return
	}
	if _, still := f.group.index.Lookup(f.seq); !still {
		f.done(nil, nil)
		return
	}
	e.reportDamage(f.group, f.seq, c.Err)
	f.done(nil, c.Err)
}
