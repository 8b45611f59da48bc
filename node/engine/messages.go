package engine

import (
	"errors"

	"weir/disk/msgstore"
	"weir/disk/wal"
	"weir/node/event"
)

// stored is the bytes of a stored message.
type stored = msgstore.Msg

// reading is what the engine knows about reads of the disk.
type reading struct {
	fetches    map[event.Ticket]fetching // those under way
	fetchBytes int                       // of fetches
	wanted     []fetching                // reads that wait for their turn
	gone       []fetching                // those of them whose message was gone when it came
	unreadable []unreadable              // what consumers wait for and could not be read
	cached     int                       // bytes of message blocks in memory
}

// fetching is a read of the disk, wanted or under way.
type fetching struct {
	group *group
	seq   uint64
	bytes int
	done  func(m *stored, err error)
}

// The bounds of reads of the disk. Those under way are bounded by number and bytes, beyond the first; more wait for
// their turn, and beyond FetchesWaitingMax those of the API are refused; consumers bound their own.
const (
	FetchesMax        = 1024
	FetchBytesMax     = 32 << 20
	FetchesWaitingMax = 100_000
)

// erase has the bytes of messages in [first, last] overwritten that are about to be forgotten. Copies in the log are
// overwritten when its segments are used again.
func (e *Engine) erase(g *group, first, last uint64) {
	if !g.durable() {
		return
	}
	g.keepDue = true // what is overwritten is in its file
	e.touch(g)
	for seq := first; seq <= last; seq++ {
		if loc, ok := g.index.Lookup(seq); ok {
			e.erases = append(e.erases, event.Op{Kind: event.Erase, Group: g.id, Loc: loc})
		}
	}
}

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
	e.wanted = append(e.wanted, fetching{g, seq, int(loc.Size), done})
}

// flushFetches hands out the reads that have their turn. Where a message is is looked up then, as its block may have
// been copied since the read was asked for; one that is gone meanwhile is read by nobody.
func (e *Engine) flushFetches(out *event.Outputs) {
	n := 0
	for n < len(e.wanted) && len(e.fetches) < FetchesMax && (e.fetchBytes == 0 || e.fetchBytes+e.wanted[n].bytes <= FetchBytesMax) {
		f := e.wanted[n]
		n++
		if e.groups[f.group.id] != f.group || f.group.index == nil || f.group.installing {
			e.gone = append(e.gone, f)
			continue
		}
		loc, ok := f.group.index.Lookup(f.seq)
		if !ok {
			e.gone = append(e.gone, f)
			continue
		}
		ticket := e.ticket()
		e.fetches[ticket] = f
		e.fetchBytes += f.bytes
		out.Storage = append(out.Storage, event.Op{Kind: event.Fetch, Ticket: ticket, Group: f.group.id, Loc: loc})
	}
	rest := copy(e.wanted, e.wanted[n:])
	clear(e.wanted[rest:])
	e.wanted = e.wanted[:rest]
	e.unsettled = e.unsettled || len(e.gone) > 0
}

// answerGone answers the reads whose message was gone when it was their turn.
func (e *Engine) answerGone() {
	gone := e.gone
	e.gone = nil
	for i := range gone {
		gone[i].done(nil, nil)
	}
}

// fetched handles the end of a read.
func (e *Engine) fetched(c *event.Completion) {
	f, ok := e.fetches[c.Ticket]
	if !ok {
		return
	}
	delete(e.fetches, c.Ticket)
	e.fetchBytes -= f.bytes
	if c.Err == nil {
		f.group.readFailed = nil
		f.done(&c.Message, nil)
		return
	}
	if e.groups[f.group.id] != f.group || f.group.index == nil {
		f.done(nil, nil)
		return
	}
	if _, still := f.group.index.Lookup(f.seq); !still {
		f.done(nil, nil)
		return
	}
	if e.config.Plant.DamageIsEnd && errors.Is(c.Err, wal.ErrCorrupt) {
		f.done(nil, nil)
		return
	}
	e.reportDamage(f.group, f.seq, c.Err)
	e.foundIfDamage(f.group, c.Err)
	f.done(nil, c.Err)
}

// boundCache keeps the memory of message blocks on disk within the cache's budget: a group that makes it overflow gives
// up its own oldest blocks.
func (e *Engine) boundCache(g *group) {
	if !g.durable() {
		return
	}
	e.cached += g.index.MemoryBytes() - g.cached
	if over := e.cached - e.config.JetStream.CacheBytes; over > 0 {
		e.cached -= g.index.Evict(max(0, g.index.MemoryBytes()-over))
	}
	g.cached = g.index.MemoryBytes()
}
