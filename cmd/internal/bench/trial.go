package bench

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// trial is the servers that a work is measured on, each on its own directory, and the connections to them.
type trial struct {
	*run
	server *contender
	work   string
	dir    string
	round  int
	nodes  []*node
	conns  []*nats.Conn
	// first is the node that the next client connects to; each takes the one after it.
	first int
}

// start runs the servers and returns once JetStream answers at each of them.
func (t *trial) start() error {
	if t.nodes == nil {
		if err := t.configure(); err != nil {
			return err
		}
	}
	for _, n := range t.nodes {
		if err := n.spawn(); err != nil {
			return err
		}
	}
	for _, n := range t.nodes {
		err := n.until(func(js jetstream.JetStream) error {
			_, err := js.AccountInfo(t.ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// portsEach is how many ports a server takes: for clients, for monitoring and for other servers.
const portsEach = 3

// configure finds ports and writes the configuration files.
func (t *trial) configure() error {
	addresses, err := freeAddresses(t.Port, portsEach*t.Replicas)
	if err != nil {
		return err
	}
	for i := range t.Replicas {
		n := &node{trial: t, name: "bench" + strconv.Itoa(i+1)}
		n.url, n.monitor = "nats://"+addresses[portsEach*i], "http://"+addresses[portsEach*i+1]
		n.dir = filepath.Join(t.dir, n.name)
		if err := os.Mkdir(n.dir, 0o755); err != nil {
			return err
		}
		text := fmt.Sprintf("server_name: %s\nlisten: %q\nhttp: %q\njetstream {\n  store_dir: %q\n  %s\n}\n",
			n.name, addresses[portsEach*i], addresses[portsEach*i+1], filepath.Join(n.dir, "data"), t.server.extra)
		if t.Replicas > 1 {
			text += fmt.Sprintf("cluster {\n  name: bench\n  listen: %q\n  routes: [", addresses[portsEach*i+2])
			for other := range t.Replicas {
				text += fmt.Sprintf(" %q,", "nats://"+addresses[portsEach*other+2])
			}
			text = strings.TrimSuffix(text, ",") + " ]\n}\n"
		}
		if err := os.WriteFile(n.config(), []byte(text), 0o644); err != nil {
			return err
		}
		t.nodes = append(t.nodes, n)
	}
	return nil
}

// freeAddresses returns n different addresses that nobody listens on, from a port on, or any for port 0.
func freeAddresses(port, n int) ([]string, error) {
	var list []string
	for len(list) < n {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if port > 0 {
			port++
		}
		if err != nil {
			if port == 0 || !errors.Is(err, syscall.EADDRINUSE) {
				return nil, err
			}
			continue
		}
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list, nil
}

// connect opens a connection that lasts as long as the trial, to the node whose turn it is.
func (t *trial) connect() (*nats.Conn, error) {
	at := t.nodes[t.first%len(t.nodes)]
	t.first++
	nc, err := nats.Connect(at.url, nats.Timeout(5*time.Second), nats.NoReconnect())
	if err == nil {
		t.conns = append(t.conns, nc)
	}
	return nc, err
}

func (t *trial) jetStream() (jetstream.JetStream, error) {
	nc, err := t.connect()
	if err != nil {
		return nil, err
	}
	return jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(2*inFlight))
}

// stream makes the one stream of a work.
func (t *trial) stream() error {
	js, err := t.jetStream()
	if err != nil {
		return err
	}
	err = t.patiently(func() error {
		_, err := js.CreateStream(t.ctx, jetstream.StreamConfig{
			Name: streamName, Subjects: []string{"bench.>"}, Storage: jetstream.FileStorage, Replicas: t.Replicas,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("make the stream: %w", err)
	}
	return t.settled(js, streamName)
}

// patiently tries something that a young cluster may not be ready for.
func (t *trial) patiently(do func() error) (err error) {
	for limit := time.Now().Add(startMax); time.Now().Before(limit) && t.ctx.Err() == nil; time.Sleep(10 * pollEach) {
		if err = do(); err == nil || t.Replicas == 1 {
			return err
		}
	}
	return err
}

// settled waits until all replicas of a stream are there. The next client connects to its leader in the first round and
// to its followers in others, so that the rounds of a work cover where a client may be.
func (t *trial) settled(js jetstream.JetStream, name string) error {
	leader, err := t.leader(js, name)
	t.first = leader + t.round
	return err
}

// leader waits until all replicas of a stream are current and returns the node that leads.
func (t *trial) leader(js jetstream.JetStream, name string) (int, error) {
	if t.Replicas == 1 {
		return 0, nil
	}
	var last error
	for limit := time.Now().Add(startMax); time.Now().Before(limit) && t.ctx.Err() == nil; time.Sleep(10 * pollEach) {
		stream, err := js.Stream(t.ctx, name)
		if last = err; err != nil {
			continue
		}
		cluster := stream.CachedInfo().Cluster
		if cluster == nil || !allCurrent(cluster.Replicas, t.Replicas-1) {
			last = errors.New("replicas are not current")
			continue
		}
		if i := slices.IndexFunc(t.nodes, func(n *node) bool { return n.name == cluster.Leader }); i >= 0 {
			return i, nil
		}
	}
	return 0, errors.Join(fmt.Errorf("stream %s is not settled: %w", name, last), t.ctx.Err())
}

func allCurrent(replicas []*jetstream.PeerInfo, n int) bool {
	for _, r := range replicas {
		if !r.Current || r.Offline {
			return false
		}
	}
	return len(replicas) == n
}

// cpu is the processor time that the servers have used.
func (t *trial) cpu() (sum time.Duration) {
	for _, n := range t.nodes {
		if n.cmd != nil {
			sum += cpuTime(n.cmd.Process.Pid)
		}
	}
	return sum
}

// stop ends the servers: at once, or in order when their profiles are still to be written.
func (t *trial) stop() error {
	signal := syscall.SIGKILL
	if t.server.profile != "" {
		signal = syscall.SIGTERM
	}
	for _, nc := range t.conns {
		nc.Close()
	}
	t.conns = nil
	var err error
	for _, n := range t.nodes {
		err = errors.Join(err, n.end(signal))
	}
	return err
}
