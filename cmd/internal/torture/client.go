package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/linearizability/history"
)

// Bounds of what clients wait for.
const (
	// answerMax is how long a client waits for an answer, hastyMax how long one that gives up early.
	answerMax = 3 * time.Second
	hastyMax  = 30 * time.Millisecond
	// pinnedPatience is the time between two pings of a client that knows one server only.
	pinnedPatience = 15 * time.Second
	// dialMax bounds a connection attempt.
	dialMax = 2 * time.Second
	// opsPerLife is the mean number of operations until a client begins anew, with another connection.
	opsPerLife = 300
	// thinkMax is how long a client pauses at most between two operations.
	thinkMax = 40 * time.Millisecond
)

// valueHeader carries the value of a message that has to be empty.
const valueHeader = "Torture-Value"

// client is a sequential client with a connection of nats.go.
type client struct {
	run    *run
	name   string
	number int
	rng    *rand.Rand
	home   int              // the server it likes best
	pinned bool             // it knows no other server
	sent   []history.Record // publishes with an id, as they were sent
	nc     *nats.Conn
	js     jetstream.JetStream
}

// newClient returns a client without a connection. Equal seeds and names draw equal operations.
func (r *run) newClient(name string, home int) *client {
	seed := r.options.Seed
	for _, b := range []byte(name) {
		seed = seed*1_099_511_628_211 + uint64(b)
	}
	return &client{run: r, name: name, number: r.log.number(), rng: rand.New(rand.NewPCG(r.options.Seed, seed)), home: home % r.options.Nodes}
}

// connect makes a new connection, whether or not any server answers now.
func (c *client) connect() error {
	c.close()
	servers := []string{c.run.cluster.url(c.home)}
	for i := 1; i < c.run.options.Nodes && !c.pinned; i++ {
		servers = append(servers, c.run.cluster.url((c.home+i)%c.run.options.Nodes))
	}
	patience := time.Second
	if c.pinned {
		patience = pinnedPatience // its questions wait for a server that is paused
	}
	nc, err := nats.Connect(strings.Join(servers, ","), nats.Name(c.name), nats.DontRandomize(), nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond), nats.ReconnectJitter(50*time.Millisecond, 0), nats.RetryOnFailedConnect(true),
		nats.Timeout(dialMax), nats.PingInterval(patience), nats.MaxPingsOutstanding(2), nats.IgnoreDiscoveredServers(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // what matters is told to callers
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return err
	}
	c.nc, c.js = nc, js
	return nil
}

func (c *client) close() {
	if c.nc != nil {
		c.nc.Close()
		c.nc = nil
	}
}

// limit is the context of one operation: most clients are patient.
func (c *client) limit() (context.Context, context.CancelFunc) {
	wait := answerMax
	if c.rng.IntN(50) == 0 {
		wait = hastyMax
	}
	return context.WithTimeout(context.Background(), wait)
}

// refresh begins a new life now and then, and goes to another server after a bad answer.
func (c *client) refresh(failed bool) error {
	switch {
	case failed && !c.pinned && c.rng.IntN(2) == 0:
		c.home = (c.home + 1) % c.run.options.Nodes
		return c.connect()
	case c.rng.IntN(opsPerLife) == 0:
		if !c.pinned {
			c.home = c.rng.IntN(c.run.options.Nodes)
		}
		return c.connect()
	}
	return nil
}

// think pauses.
func (c *client) think() { time.Sleep(time.Duration(c.rng.Int64N(int64(thinkMax)))) }

// unknown makes the client another one: the old one waits for its answer for ever.
func (c *client) unknown(pos int) {
	c.run.log.end(pos, history.Unknown, nil)
	c.number = c.run.log.number()
}

// published writes down how a publish ended and says whether that is known.
func (c *client) published(pos int, ack *jetstream.PubAck, err error) bool {
	if err == nil {
		main := false
		c.run.log.end(pos, history.OK, func(r *history.Record) {
			r.Seq, r.Duplicate, main = ack.Sequence, ack.Duplicate, r.Stream == mainStream
		})
		if main && !ack.Duplicate {
			c.run.outages.success(c.run.log.now())
		}
		return true
	}
	var refusal jetstream.JetStreamError
	if !errors.As(err, &refusal) || refusal.APIError() == nil || !decides(refusal.APIError()) {
		c.unknown(pos)
		return false
	}
	api := refusal.APIError()
	c.run.log.end(pos, history.Rejected, func(r *history.Record) {
		r.Code = int(api.ErrorCode)
		if at, found := strings.CutPrefix(api.Description, "wrong last sequence: "); found {
			if seq, err := strconv.ParseUint(at, 10, 64); err == nil {
				r.Seq, r.Observed = seq, true
			}
		}
	})
	return true
}

// decides reports whether the error can only be given after deciding that the operation did not happen.
func decides(e *jetstream.APIError) bool {
	return e.Code < 500 || e.ErrorCode == 10077 || e.ErrorCode == 10057
}

// ask sends an API request and decodes the answer; an error of the API is an *jetstream.APIError.
func (c *client) ask(subject string, request, answer any) error {
	ctx, cancel := c.limit()
	defer cancel()
	return ask(ctx, c.nc, call{subject, request, answer})
}

// call is an API request.
type call struct {
	subject string
	request any // encoded as JSON; nil is empty
	answer  any // filled from JSON
}

// ask sends an API request on a connection.
func ask(ctx context.Context, nc *nats.Conn, k call) error {
	var body []byte
	if k.request != nil {
		var err error
		if body, err = json.Marshal(k.request); err != nil {
			return err
		}
	}
	m, err := nc.RequestWithContext(ctx, "$JS.API."+k.subject, body)
	if err != nil {
		return err
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &failed); err != nil {
		return fmt.Errorf("%s answered %q: %w", k.subject, m.Data, err)
	}
	if failed.Error != nil {
		return failed.Error
	}
	if k.answer == nil {
		return nil
	}
	return json.Unmarshal(m.Data, k.answer)
}
