package engine

import (
	"maps"
	"slices"

	"weir/node/api"
	"weir/node/route"
	"weir/spec/assert"
)

// WaitsMax and WaitBytesMax bound the requests that wait for a leader and their bytes, waitNanos how long one does: an
// election or two, and less than clients wait.
const (
	WaitsMax     = 10_000
	WaitBytesMax = 64 << 20
	waitNanos    = int64(4e9)
)

// waiting is a request that came while nobody was known to lead the group that decides, or while the catalog was being
// founded. It was not carried out anywhere.
type waiting struct {
	request *api.Request
	hops    uint64
	until   int64 // monotone
}

// await has a request wait for a leader of the group. It reports false when the requester is to learn that nobody listens.
func (e *Engine) await(g *group, r *api.Request, hops uint64) bool {
	if e.waits >= WaitsMax || e.waitBytes+requestBytes(r) > WaitBytesMax ||
		hops >= hopsMax && e.leaderOf(g.id) != 0 {
		return e.api.Unavailable(r) != api.NoResponders
	}
	kept := *r
	kept.Header, kept.Body = slices.Clone(r.Header), slices.Clone(r.Body)
	e.waiting[g.id] = append(e.waiting[g.id], &waiting{&kept, hops, e.now.Mono + waitNanos})
	e.waits++
	e.waitBytes += requestBytes(&kept)
	e.armAsks()
	return true
}

func requestBytes(r *api.Request) int {
	return len(r.Subject) + len(r.Reply) + len(r.Header) + len(r.Body)
}

// unwait counts requests that wait no longer.
func (e *Engine) unwait(done []*waiting) {
	e.waits -= len(done)
	for _, w := range done {
		e.waitBytes -= requestBytes(w.request)
	}
	assert.True(e.waits >= 0 && e.waitBytes >= 0, "what waits is counted", uint64(len(done)))
}

// dispatch carries a request out as if it had just come.
func (e *Engine) dispatch(r *api.Request, hops uint64) {
	a := e.accountNamed[r.Account]
	m := route.Message{Subject: []byte(r.Subject), Reply: []byte(r.Reply), Header: r.Header, Payload: r.Body}
	if !e.request(a, &m, requestPath{hops: hops, client: r.Client}) {
		e.nobody(a, r.Reply)
	}
}

// nobody tells a requester that nobody listens.
func (e *Engine) nobody(a *account, reply string) {
	if reply != "" {
		a.send([]byte(reply), []byte(noResponders), nil)
	}
}

// endWaits refuses the requests that have waited for long enough.
func (e *Engine) endWaits() {
	for _, id := range slices.Sorted(maps.Keys(e.waiting)) {
		all := e.waiting[id]
		n := 0
		for n < len(all) && all[n].until <= e.now.Mono {
			n++
		}
		e.unwait(all[:n])
		if n == len(all) {
			delete(e.waiting, id)
		} else if n > 0 {
			e.waiting[id] = all[n:]
		}
		for _, w := range all[:n] {
			if e.api.Unavailable(w.request) == api.NoResponders {
				e.nobody(e.accountNamed[w.request.Account], w.request.Reply)
			}
		}
	}
}

// Forward implements api.Cluster.
func (b *backend) Forward(r *api.Request) { (*Engine)(b).dispatch(r, 1) }
