package api

import (
	"fmt"
	"strings"

	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
)

// A deletion is answered once so many of the stream's servers know of it that no others can serve the stream any more. When
// they can not be reached, the catalog has dropped the stream all the same, and they end it when they come back. To say then
// that it is deleted could be wrong for whoever is connected to them; to say nothing would tell less than is known. So the
// answer is an error, with the servers that are missing and what ends that, and whoever asks again waits for the same deletion,
// as long as the catalog is led by the server that knows of it: later it is that there is no such stream.

// streamName names a stream in an account.
type streamName struct{ account, stream string }

// deletion is one that is committed: the entry of the stream, and the index of the catalog from which on it is gone.
type deletion struct {
	entry *meta.Stream
	index uint64
}

// unconfirmedMax bounds the deletions that are remembered.
const unconfirmedMax = 1024

// streamDelete answers STREAM.DELETE.
func (c *call) streamDelete(body []byte) {
	if !c.requireEmpty(body) {
		return
	}
	c.missing = c.deletedBefore
	c.lookup(func(entry *meta.Stream) {
		var consumers []string
		if s, ok := c.backend.Stream(entry.Group); ok && !c.api.clustered() {
			for _, state := range s.Consumers() {
				consumers = append(consumers, state.Name())
			}
		}
		proposal := meta.Delete(entry)
		c.backend.Propose(meta.Group, &proposal, func(r *effect.Effect) {
			if r.Err != nil {
				c.refuse(r.Err)
				return
			}
			for _, name := range consumers {
				c.api.ConsumerDeleted(c.account, c.stream, name)
			}
			c.api.adviseStream(entry, jsapi.SubjectStreamDeleted, jsapi.AdvisoryDelete)
			c.deleted(deletion{entry, c.backend.Catalog().Applied()})
		})
	})
}

// deletedBefore answers for a stream whose deletion was not confirmed when it was asked for.
func (c *call) deletedBefore() bool {
	d, known := c.api.unconfirmed[streamName{c.account, c.stream}]
	if known {
		c.deleted(d)
	}
	return known
}

// deleted answers a deletion that is committed.
func (c *call) deleted(d deletion) {
	name, unconfirmed := streamName{c.account, c.stream}, c.api.unconfirmed
	c.api.Ended(d.entry, d.index, func(missing []uint64) {
		if len(missing) == 0 {
			if unconfirmed[name] == d {
				delete(unconfirmed, name)
			}
			c.respond(jsapi.SuccessResponse{Response: c.response(), Success: true})
			return
		}
		if len(unconfirmed) >= unconfirmedMax {
			clear(unconfirmed)
		}
		unconfirmed[name] = d
		refused := *jsapi.CodeClusterNotAvail.Err()
		refused.Description = fmt.Sprintf("the stream is deleted; until %s can be reached, or is removed from the cluster, "+
			"clients there may still see it", c.api.namesOf(missing))
		c.refuse(&refused)
	})
}

// namesOf lists servers for a person.
func (a *API) namesOf(servers []uint64) string {
	var names []string
	for _, id := range servers {
		if s := a.backend.Catalog().Server(id); s != nil {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, ", ")
}
