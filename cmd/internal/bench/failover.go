package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	failovers   = 5
	probeEach   = 5 * time.Millisecond // between two attempts to publish
	failoverMax = 60 * time.Second
)

// driveFailover kills the leader of the stream several times and yields the median time until a message that was
// published after that is acknowledged.
func driveFailover(t *trial) (sample, error) {
	if err := t.stream(); err != nil {
		return nil, err
	}
	var gaps []time.Duration
	for range failovers {
		gap, err := t.failOver()
		if err != nil {
			return nil, err
		}
		gaps = append(gaps, gap)
	}
	slices.Sort(gaps)
	return sample{{work: failover, unit: "ms", value: gaps[failovers/2].Seconds() * 1e3}}, nil
}

// failOver kills the leader, publishes at another server until that is acknowledged, and starts the killed server again.
func (t *trial) failOver() (time.Duration, error) {
	js, err := t.jetStream()
	if err != nil {
		return 0, err
	}
	leader, err := t.leader(js, streamName)
	if err != nil {
		return 0, err
	}
	t.first = leader + 1
	nc, err := t.connect()
	if err != nil {
		return 0, err
	}
	inbox := nc.NewInbox()
	acks, err := nc.SubscribeSync(inbox + ".*")
	if err != nil {
		return 0, err
	}
	if err := nc.Flush(); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := t.nodes[leader].end(syscall.SIGKILL); err != nil {
		return 0, err
	}
	for n := 0; time.Since(begin) < failoverMax; n++ {
		if err := nc.PublishRequest(subject, inbox+"."+strconv.Itoa(n), payload); err != nil {
			return 0, err
		}
		m, err := acks.NextMsg(probeEach)
		if err == nil && acknowledged(m) {
			gap := time.Since(begin)
			t.first = leader + 1 // the next round asks at a server that lives
			return gap, t.nodes[leader].spawn()
		}
		time.Sleep(max(0, time.Duration(n+1)*probeEach-time.Since(begin)))
	}
	return 0, fmt.Errorf("nothing was acknowledged within %v of the leader's end", failoverMax)
}

// acknowledged reports whether an answer says that a message is stored.
func acknowledged(m *nats.Msg) bool {
	var ack jetstream.PubAck
	return json.Unmarshal(m.Data, &ack) == nil && ack.Sequence > 0
}
