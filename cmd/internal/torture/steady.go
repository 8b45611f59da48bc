package torture

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/linearizability/history"
)

// What clients at a steady pace do. Each is bound to one server, whatever happens to it, and never waits for an answer
// before it asks again. So a server that has been deposed, and does not know or has only now learned of it, always has
// clients that read what it holds, while clients of the others write what it lacks: a client that waits would not, because
// what the deposed leader was sent is never answered.

// Bounds of clients at a steady pace: the time between two operations, how many are open at most, and how long each
// waits. Both are more than servers are paused for.
const (
	sentryEvery = 12 * time.Millisecond
	probeEvery  = 25 * time.Millisecond
	steadyOpen  = 600
	steadyMax   = 6 * time.Second
)

// Where probes write: keys of the bucket behind those of the clients of the key-value interface, and in streams a subject
// for each chapter of the run, so that each has few enough messages to search all their orders.
const (
	probeKeys  = 6
	chapterFor = 5 * time.Second
)

// chapter is the number of the chapter.
func (r *run) chapter() int { return int(time.Since(r.started) / chapterFor) }

// quiet is one of the streams that are there for stale reads: as many as servers, so that most servers lead one. A read
// waits for everything that was proposed before it at the same server, so a deposed leader with open proposals betrays
// nothing. Here it mostly has none: nobody but probes at other servers writes to the stream, and it has no consumers.
func quiet(i int) *target {
	return &target{name: fmt.Sprintf("Q%d", i), prefix: fmt.Sprintf("q%d", i)}
}

// aloofFor is for how long a server that has led a stream is not yet written through.
const aloofFor = 3 * time.Second

// leaders are the leaders of streams, as the newest answers have them, and their predecessors.
type leaders struct {
	mu sync.Mutex
	of map[string]leadership
}

type leadership struct {
	now, before string
	since       time.Time
}

// note takes what an answer says.
func (l *leaders) note(stream, leader string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was := l.of[stream]; was.now != leader {
		if l.of == nil {
			l.of = map[string]leadership{}
		}
		l.of[stream] = leadership{now: leader, before: was.now, since: time.Now()}
	}
}

// apart says whether a server neither leads the stream nor has until lately, as far as anybody knows.
func (l *leaders) apart(stream, server string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	is, known := l.of[stream]
	return known && is.now != server && (is.before != server || time.Since(is.since) > aloofFor)
}

// steadily carries out one operation after the other on one server. Each is a client of its own, since they overlap; n
// counts them.
func (c *client) steadily(ctx context.Context, every time.Duration, operation func(one *client, n int)) {
	c.pinned = true
	if c.connect() != nil {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	places := make(chan struct{}, steadyOpen)
	var open sync.WaitGroup
	defer open.Wait()
	for n := 0; ctx.Err() == nil; n++ {
		<-tick.C
		select {
		case places <- struct{}{}:
		default:
			continue
		}
		one := &client{run: c.run, name: c.name, number: c.run.log.number(), home: c.home, nc: c.nc, js: c.js}
		open.Go(func() {
			operation(one, n)
			<-places
		})
	}
}

// prober publishes through one server to the main stream, to the bucket and to the quiet streams. So outages are measured
// closely, and as soon as a new leader can write it does.
func (c *client) prober(ctx context.Context, t *target) {
	c.steadily(ctx, probeEvery, func(one *client, n int) {
		if !one.nc.IsConnected() {
			return
		}
		to, subject := t, fmt.Sprintf("%s.p%d-%d", t.prefix, one.home, one.run.chapter())
		switch n % 4 {
		case 0:
			to, subject = &bucket, bucket.subject(bucketKeys+n/4%probeKeys)
		case 1, 2:
			to = quiet((n/4*2 + n%4) % one.run.options.Nodes)
			subject = to.subject(one.run.chapter())
			if !one.run.leaders.apart(to.name, serverName(one.home)) && one.run.options.Nodes > 1 {
				return
			}
		}
		d := draft{record: history.Record{Kind: history.Publish, Stream: to.name, Subject: subject}}
		pos, m := one.message(&d)
		limit, cancel := context.WithTimeout(context.Background(), steadyMax)
		defer cancel()
		ack, err := one.js.PublishMsg(limit, m, jetstream.WithRetryAttempts(0))
		one.published(pos, ack, err)
	})
}

// sentry asks one server for what is newest in one stream after the other, in every way there is: when a server answers
// from what it knew, some question was asked late enough to show it.
func (c *client) sentry(ctx context.Context, t *target) {
	streams := []*target{t, &bucket}
	for i := range c.run.options.Nodes {
		streams = append(streams, quiet(i))
	}
	c.steadily(ctx, sentryEvery, func(one *client, n int) {
		limit, cancel := context.WithTimeout(context.Background(), steadyMax)
		defer cancel()
		of := streams[n%len(streams)]
		all := of.prefix + ".>"
		switch n / len(streams) % 4 {
		case 0:
			one.infoWithin(limit, of)
		case 1:
			one.newest(of, all, func() (found, error) {
				return one.directGet(limit, "$JS.API.DIRECT.GET."+of.name, fmt.Appendf(nil, `{"last_by_subj":%q}`, all))
			})
		case 2:
			one.newest(of, all, func() (found, error) {
				return one.msgGetWithin(limit, of.name, map[string]any{"last_by_subj": all})
			})
		default:
			subject := one.probed(of, n)
			one.newest(of, subject, func() (found, error) {
				return one.directGet(limit, "$JS.API.DIRECT.GET."+of.name+"."+subject, nil)
			})
		}
	})
}

// probed is a subject of the stream that is being written to.
func (c *client) probed(of *target, n int) string {
	switch of.name {
	case mainStream:
		return of.subject(n % mainKeys)
	case bucket.name:
		return of.subject(bucketKeys + n%probeKeys)
	default:
		return of.subject(c.run.chapter())
	}
}

// newest reads the last message of a subject in the given way.
func (c *client) newest(of *target, subject string, read func() (found, error)) {
	pos, _ := c.run.log.begin(history.Record{Client: c.number, Kind: history.GetLast, Stream: of.name, Subject: subject})
	m, err := read()
	c.got(pos, m, err)
}
