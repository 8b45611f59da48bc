package torture

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// How many clients there are of each kind, besides one probe and one sentry per server.
const (
	publishers = 4
	stormers   = 2
	readers    = 3
	keyValuers = 4
	watchers   = 2
	followers  = 2
	perDurable = 3
)

// duplicateWindow is the window of all streams of the run: longer than any run looks back.
const duplicateWindow = time.Hour

// load is all clients.
type load struct {
	run   *run
	admin *client
	// work ends the load, finish ends what goes on until everything has been seen.
	work, finish             context.Context
	stopWorking, stopLooking context.CancelFunc
	working, looking         sync.WaitGroup

	mu    sync.Mutex
	small []smallStream
}

// setUp creates streams, bucket and consumers.
func (r *run) setUp(ctx context.Context) (*load, error) {
	l := &load{run: r, admin: r.newClient("admin", 0)}
	if err := l.admin.connect(); err != nil {
		return nil, err
	}
	replicas := r.options.usual()
	limit, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	err := until(limit, func(ctx context.Context) error {
		_, err := l.admin.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: mainStream, Subjects: []string{mainPrefix + ".>"}, Replicas: r.options.most(), Duplicates: duplicateWindow, AllowDirect: true,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	err = until(limit, func(ctx context.Context) error {
		_, err := l.admin.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucketName, History: 1, Replicas: replicas})
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range r.options.Nodes {
		q := quiet(i)
		err = until(limit, func(ctx context.Context) error {
			_, err := l.admin.js.CreateStream(ctx, jetstream.StreamConfig{
				Name: q.name, Subjects: []string{q.prefix + ".>"}, Replicas: replicas, Duplicates: duplicateWindow, AllowDirect: true,
			})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range consumers {
		err = until(limit, func(ctx context.Context) error {
			_, err := l.admin.js.CreateConsumer(ctx, mainStream, consumerConfig(&consumers[i]))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	l.work, l.stopWorking = context.WithCancel(context.Background())
	l.finish, l.stopLooking = context.WithCancel(context.Background())
	return l, nil
}

// steadyStreams are the streams that exist from the beginning to the end.
func (o *Options) steadyStreams() []string {
	all := []string{mainStream, bucket.name}
	for i := range o.Nodes {
		all = append(all, quiet(i).name)
	}
	return all
}

// replicasOf is how many replicas such a stream has, at rest.
func (o *Options) replicasOf(stream string) int {
	if stream == mainStream {
		return o.most()
	}
	return o.usual()
}

// usual is how many replicas streams have, most how many the main stream has.
func (o *Options) usual() int { return min(3, o.Nodes) }

func (o *Options) most() int { return min(5, o.Nodes) }

// retryEvery is the pause between attempts of what has to succeed in the end.
const retryEvery = 100 * time.Millisecond

// until tries until it succeeds or the context ends; each attempt has a few seconds.
func until(ctx context.Context, try func(context.Context) error) error {
	for {
		limit, cancel := context.WithTimeout(ctx, answerMax)
		err := try(limit)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(retryEvery):
		}
	}
}

// start lets all clients begin.
func (l *load) start() {
	main := &target{name: mainStream, prefix: mainPrefix, keys: mainKeys}
	begin := func(group *sync.WaitGroup, name string, home int, work func(c *client)) {
		c := l.run.newClient(name, home)
		group.Go(func() {
			defer c.close()
			if err := c.connect(); err != nil {
				l.run.wrong("%s cannot connect: %v", name, err)
				return
			}
			work(c)
		})
	}
	for i := range publishers {
		begin(&l.working, fmt.Sprintf("publisher-%d", i), i, func(c *client) { c.publisher(l.work, main) })
	}
	for i := range stormers {
		begin(&l.working, fmt.Sprintf("stormer-%d", i), i, func(c *client) { c.stormer(l.work, main) })
	}
	for i := range l.run.options.Nodes {
		begin(&l.working, fmt.Sprintf("probe-%d", i), i, func(c *client) { c.prober(l.work, main) })
		begin(&l.working, fmt.Sprintf("sentry-%d", i), i, func(c *client) { c.sentry(l.work, main) })
	}
	for i := range readers {
		begin(&l.working, fmt.Sprintf("reader-%d", i), i, func(c *client) { c.reader(l.work, main) })
	}
	for i := range keyValuers {
		begin(&l.working, fmt.Sprintf("kv-%d", i), i, func(c *client) { c.keyValuer(l.work) })
	}
	begin(&l.working, "small", 0, func(c *client) { c.smallStreams(l) })
	for i := range watchers {
		begin(&l.looking, fmt.Sprintf("watcher-%d", i), i, func(c *client) { c.watcher(l.work, l.finish) })
	}
	for i := range followers {
		begin(&l.looking, fmt.Sprintf("follower-%d", i), i+1, func(c *client) { c.follower(l.work, l.finish, main) })
	}
	begin(&l.working, "lives", 1, func(c *client) { c.lives(l.work) })
	for i := range consumers {
		for n := range perDurable {
			name := fmt.Sprintf("consumer-%s-%d", consumers[i].Name, n)
			begin(&l.looking, name, i+n, func(c *client) {
				c.pinned = n > 0 // who is cut off together with a leader goes on to answer it
				c.consumer(l.work, l.finish, i)
			})
		}
	}
}
