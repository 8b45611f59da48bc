package bench

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
)

// messageBytes is what a message of the works counts for: its payload and its subject.
const messageBytes = payloadSize + len(subject)

// driveCatchUp kills a follower, publishes many messages, starts the follower while publishing goes on, and waits until
// the follower has all that was acknowledged before it was started.
func driveCatchUp(t *trial) (sample, error) {
	if err := t.stream(); err != nil {
		return nil, err
	}
	leader := t.first - t.round
	follower := t.nodes[(leader+1)%len(t.nodes)]
	t.first = leader
	js, err := t.jetStream()
	if err != nil {
		return nil, err
	}
	if err := follower.end(syscall.SIGKILL); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := publishMany(js, t.Missed); err != nil {
		return nil, err
	}
	before := float64(t.Missed) / time.Since(begin).Seconds()
	var stop atomic.Bool
	published, ended := 0, make(chan error, 1)
	begin = time.Now()
	go func() {
		w := &window{js: js}
		err := error(nil)
		for !stop.Load() && err == nil {
			err = w.publish(subject)
		}
		published = w.waited
		ended <- err
	}()
	caught, err := t.catchUp(follower)
	took := time.Since(begin)
	stop.Store(true)
	if failed := <-ended; failed != nil {
		return nil, fmt.Errorf("publish during the catch-up: %w", failed)
	}
	if err != nil {
		return nil, err
	}
	return sample{
		{work: catchUp, unit: "MB/s", value: float64(t.Missed*messageBytes) / 1e6 / caught.Seconds()},
		{work: catchUpBefore, unit: "op/s", value: before},
		{work: catchUpDuring, unit: "op/s", value: float64(published) / took.Seconds()},
	}, nil
}

// catchUp starts a server and returns how long it takes until its replica has the messages that were missed.
func (t *trial) catchUp(n *node) (time.Duration, error) {
	begin := time.Now()
	if err := n.spawn(); err != nil {
		return 0, err
	}
	last := error(nil)
	for time.Since(begin) < currentMax && t.ctx.Err() == nil {
		has, err := n.stored()
		if err == nil && has >= uint64(t.Missed) {
			return time.Since(begin), nil
		}
		last = fmt.Errorf("it has %d messages: %w", has, err)
		time.Sleep(10 * pollEach)
	}
	return 0, fmt.Errorf("the follower did not catch up within %v: %w: %s", currentMax, last, n.lastLog())
}

// stored is how many messages the server's own replica of the stream has.
func (n *node) stored() (uint64, error) {
	var doc struct {
		Accounts []struct {
			Streams []struct {
				State struct {
					Messages uint64 `json:"messages"`
				} `json:"state"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	if err := n.ask("/jsz?streams=true", &doc); err != nil {
		return 0, err
	}
	if len(doc.Accounts) == 0 || len(doc.Accounts[0].Streams) == 0 {
		return 0, nil
	}
	return doc.Accounts[0].Streams[0].State.Messages, nil
}
