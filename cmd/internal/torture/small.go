package torture

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/linearizability/check"
	"weir/linearizability/history"
)

// smallStream is a stream of a few hundred operations, few enough to search all their orders.
type smallStream struct {
	target
	rules    check.Rules
	replicas int
}

// Bounds of small streams.
const (
	// smallMax bounds their number, smallEvery is the time between two of them.
	smallMax   = 100
	smallEvery = 12 * time.Second
	// smallClients work on each, with smallOps operations each.
	smallClients = 3
	smallOps     = 45
	smallKeys    = 3
)

// smallStreams makes one small stream after the other, and lets some clients work on each.
func (c *client) smallStreams(l *load) {
	tick := time.NewTicker(smallEvery)
	defer tick.Stop()
	for n := 0; n < smallMax && l.work.Err() == nil; n++ {
		s := smallStream{target: target{name: fmt.Sprintf("S%d", n), prefix: fmt.Sprintf("s%d", n), keys: smallKeys}}
		s.rules = check.Rules{Name: s.name, Window: int64(duplicateWindow)}
		switch c.rng.IntN(3) {
		case 0:
			s.rules.MaxMsgs = 20
		case 1:
			s.rules.MaxMsgsPerSubject = 3
		}
		replicas := c.run.options.usual()
		if c.rng.IntN(5) == 0 && !c.run.options.wants("wipe") && !c.run.options.wants("rot") {
			replicas = 1 // nothing destroys the only one
		}
		s.replicas = replicas
		err := until(l.work, func(ctx context.Context) error {
			_, err := c.js.CreateStream(ctx, jetstream.StreamConfig{
				Name: s.name, Subjects: []string{s.prefix + ".>"}, Replicas: replicas, Duplicates: duplicateWindow, AllowDirect: true,
				MaxMsgs: int64(s.rules.MaxMsgs), MaxMsgsPerSubject: int64(s.rules.MaxMsgsPerSubject), AllowRollup: true,
			})
			return err
		})
		if err != nil {
			return
		}
		l.mu.Lock()
		l.small = append(l.small, s)
		l.mu.Unlock()
		var group sync.WaitGroup
		for i := range smallClients {
			worker := c.run.newClient(fmt.Sprintf("%s-%d", s.name, i), i)
			group.Go(func() { worker.small(l.work, &s.target) })
		}
		group.Wait()
		select {
		case <-tick.C:
		case <-l.work.Done():
		}
	}
}

// small carries out some operations on a small stream.
func (c *client) small(ctx context.Context, t *target) {
	defer c.close()
	if c.connect() != nil {
		return
	}
	for i := 0; i < smallOps && ctx.Err() == nil; i++ {
		good := false
		switch c.rng.IntN(20) {
		case 0:
			good = c.purge(t)
		case 1:
			good = c.deleteMsg(t)
		case 2, 3, 4, 5, 6, 7:
			good = c.read(t)
		default:
			good = c.publish(t)
		}
		if c.refresh(!good) != nil {
			return
		}
		c.think()
	}
}

// purge removes messages.
func (c *client) purge(t *target) bool {
	r := history.Record{Client: c.number, Kind: history.Purge, Stream: t.name}
	request := map[string]any{}
	if c.rng.IntN(2) == 0 {
		r.Subject = t.subject(c.rng.IntN(t.keys))
		request["filter"] = r.Subject
	}
	if c.rng.IntN(3) == 0 {
		r.Keep = uint64(1 + c.rng.IntN(2))
		request["keep"] = r.Keep
	}
	pos, _ := c.run.log.begin(r)
	var answer struct {
		Purged uint64 `json:"purged"`
	}
	err := c.ask("STREAM.PURGE."+t.name, request, &answer)
	return c.changed(pos, err, func(r *history.Record) { r.Messages = answer.Purged })
}

// deleteMsg removes one message near the end.
func (c *client) deleteMsg(t *target) bool {
	newest := c.run.log.last(t.name, "")
	at := max(1, newest+1-min(newest, uint64(c.rng.IntN(4))))
	pos, _ := c.run.log.begin(history.Record{Client: c.number, Kind: history.DeleteMsg, Stream: t.name, At: at})
	return c.changed(pos, c.ask("STREAM.MSG.DELETE."+t.name, map[string]any{"seq": at}, nil), nil)
}

// changed writes down how a removal ended and says whether that is known.
func (c *client) changed(pos int, err error, fill func(*history.Record)) bool {
	var api *jetstream.APIError
	switch {
	case err == nil:
		c.run.log.end(pos, history.OK, fill)
		return true
	case errors.As(err, &api) && decides(api):
		c.run.log.end(pos, history.Rejected, func(r *history.Record) { r.Code = int(api.ErrorCode) })
		return true
	default:
		c.unknown(pos)
		return false
	}
}
