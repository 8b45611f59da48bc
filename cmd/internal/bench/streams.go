package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	fewStreams = 10
	restBefore = 10 * time.Second // what has been made comes to rest
	restSpan   = 10 * time.Second
	currentMax = 3 * time.Minute // how long a server may take until it has all streams
)

// driveStreams makes a few streams, each with a consumer, and then many; looks at what they cost at rest; and starts a
// server that was killed.
func driveStreams(t *trial) (sample, error) {
	few := min(fewStreams, t.Streams)
	err := t.patiently(func() error {
		_, err := t.makeStreams(0, few)
		return err
	})
	if err != nil {
		return nil, err
	}
	withFew, err := t.rest()
	if err != nil {
		return nil, err
	}
	created, err := t.makeStreams(few, t.Streams)
	if err != nil {
		return nil, err
	}
	withAll, err := t.rest()
	if err != nil {
		return nil, err
	}
	current, err := t.restartOne()
	if err != nil {
		return nil, err
	}
	return sample{
		{work: streamsCreate, unit: "ms", value: created.Seconds() * 1e3},
		{work: streamsIdle, unit: "% of a core", value: withAll.cpu * 100},
		{work: fewFrames, unit: "frames/s", value: withFew.frames},
		{work: streamsFrames, unit: "frames/s", value: withAll.frames},
		{work: streamsRestart, unit: "ms", value: current.Seconds() * 1e3},
	}, nil
}

// makeStreams makes the streams with the numbers from lo up to hi, by several clients, and returns how long that took.
func (t *trial) makeStreams(lo, hi int) (time.Duration, error) {
	var makers [clients]jetstream.JetStream
	for i := range makers {
		js, err := t.jetStream()
		if err != nil {
			return 0, err
		}
		makers[i] = js
	}
	var next atomic.Int64
	next.Store(int64(lo))
	errs := make([]error, clients)
	var wait sync.WaitGroup
	begin := time.Now()
	for i, js := range makers {
		wait.Go(func() {
			for errs[i] == nil {
				n := int(next.Add(1)) - 1
				if n >= hi {
					return
				}
				errs[i] = t.makeStream(js, n)
			}
		})
	}
	wait.Wait()
	return time.Since(begin), errors.Join(errs...)
}

func (t *trial) makeStream(js jetstream.JetStream, n int) error {
	ctx, cancel := context.WithTimeout(t.ctx, ackMax)
	defer cancel()
	name := "S" + strconv.Itoa(n)
	s, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{"many." + strconv.Itoa(n)}, Storage: jetstream.FileStorage, Replicas: t.Replicas,
	})
	if err != nil {
		return fmt.Errorf("make stream %s: %w", name, err)
	}
	if _, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		return fmt.Errorf("make the consumer of stream %s: %w", name, err)
	}
	return nil
}

// resting is what servers cost that nobody asks for anything.
type resting struct {
	cpu    float64 // of one core, on the server that used the most
	frames float64 // between servers, per second
}

// rest lets the servers come to rest and measures what they cost.
func (t *trial) rest() (r resting, err error) {
	time.Sleep(restBefore)
	before := make([]time.Duration, len(t.nodes))
	for i, n := range t.nodes {
		before[i] = cpuTime(n.cmd.Process.Pid)
	}
	frames, err := t.framesSent()
	if err != nil {
		return r, err
	}
	begin := time.Now()
	time.Sleep(restSpan)
	took := time.Since(begin).Seconds()
	for i, n := range t.nodes {
		r.cpu = max(r.cpu, (cpuTime(n.cmd.Process.Pid)-before[i]).Seconds()/took)
	}
	after, err := t.framesSent()
	r.frames = float64(after-frames) / took
	return r, err
}

// framesSent is how many frames the servers have sent to each other.
func (t *trial) framesSent() (sum int64, err error) {
	for _, n := range t.nodes {
		var doc struct {
			Routes []struct {
				OutMsgs int64 `json:"out_msgs"`
			} `json:"routes"`
		}
		if err := n.ask("/routez", &doc); err != nil {
			return 0, err
		}
		for _, r := range doc.Routes {
			sum += r.OutMsgs
		}
	}
	return sum, nil
}

// ask reads a document of the monitoring port.
func (n *node) ask(path string, doc any) error {
	request, err := http.NewRequestWithContext(n.trial.ctx, http.MethodGet, n.monitor+path, nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: stopMax}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", path, response.Status, text)
	}
	return json.Unmarshal(text, doc)
}

// restartOne kills the last server and returns how long the next process takes until it says that it is healthy: it then
// has all streams and consumers, and they are current.
func (t *trial) restartOne() (time.Duration, error) {
	n := t.nodes[len(t.nodes)-1]
	if err := n.end(syscall.SIGKILL); err != nil {
		return 0, err
	}
	time.Sleep(time.Second) // the others notice
	begin := time.Now()
	if err := n.spawn(); err != nil {
		return 0, err
	}
	var last error
	for time.Since(begin) < currentMax && t.ctx.Err() == nil {
		var doc struct {
			Status string `json:"status"`
		}
		if last = n.ask("/healthz", &doc); last == nil && doc.Status == "ok" {
			return time.Since(begin), nil
		}
		time.Sleep(10 * pollEach)
	}
	return 0, fmt.Errorf("the server is not healthy: %w: %s", last, n.lastLog())
}
