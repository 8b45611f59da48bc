package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// playground is `weir cluster` as a process of a test.
type playground struct {
	t     *testing.T
	cmd   *exec.Cmd
	log   *buffer
	urls  []string
	pids  map[string]int
	ended chan error
}

// ports returns the first of n free ports that follow each other.
func ports(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		base := first.Addr().(*net.TCPAddr).Port
		held := []net.Listener{first}
		for i := 1; i < n; i++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", base+i))
			if err != nil {
				break
			}
			held = append(held, l)
		}
		for _, l := range held {
			l.Close()
		}
		if len(held) == n {
			return base
		}
	}
	t.Fatal("no free ports that follow each other")
	return 0
}

func startCluster(t *testing.T, nodes int) *playground {
	t.Helper()
	base := ports(t, 3*nodes)
	p := &playground{t: t, log: &buffer{awaits: map[string]chan struct{}{}}, pids: map[string]int{}, ended: make(chan error, 1)}
	p.cmd = exec.Command(os.Args[0], "cluster", "--nodes", strconv.Itoa(nodes), "--dir", t.TempDir(), "--port", strconv.Itoa(base),
		"--cluster-port", strconv.Itoa(base+nodes), "--http-port", strconv.Itoa(base+2*nodes))
	p.cmd.Env = append(os.Environ(), asCommand+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Signal(syscall.SIGINT)
			<-p.ended
		}
		if t.Failed() {
			t.Log(p.log)
		}
	})
	p.await("Ctrl-C ends all")
	for _, m := range regexp.MustCompile(`(?m)^  (n\d)  pid (\d+)  clients (\S+)`).FindAllStringSubmatch(p.log.String(), -1) {
		p.pids[m[1]], _ = strconv.Atoi(m[2])
		p.urls = append(p.urls, m[3])
	}
	if len(p.pids) != nodes {
		t.Fatalf("the guide names %d of %d processes", len(p.pids), nodes)
	}
	return p
}

func (p *playground) await(text string) {
	p.t.Helper()
	select {
	case <-p.log.written(text):
	case err := <-p.ended:
		p.ended <- err
		p.t.Fatalf("waiting for %q: the cluster has ended: %v", text, err)
	case <-time.After(patience):
		p.t.Fatalf("waiting for %q: not after %v", text, patience)
	}
}

// publish publishes a message with an id. A client that does not learn what became of it asks again with the same id: it is
// stored once all the same.
func publish(t *testing.T, js jetstream.JetStream, body string) uint64 {
	t.Helper()
	all, end := context.WithTimeout(context.Background(), patience)
	defer end()
	for {
		ctx, cancel := context.WithTimeout(all, 2*time.Second)
		ack, err := js.Publish(ctx, "s.x", []byte(body), jetstream.WithMsgID(body), jetstream.WithRetryAttempts(8))
		cancel()
		if err == nil {
			return ack.Sequence
		}
		if all.Err() != nil {
			t.Fatalf("publish %q: %v", body, err)
		}
	}
}

// TestClusterLosesNothingWithItsLeader kills the leader of a stream in mid-publish.
func TestClusterLosesNothingWithItsLeader(t *testing.T) {
	p := startCluster(t, 3)
	p.await("is founded by this server")
	told := make(chan struct{}, 1)
	tell := func(*nats.Conn) {
		select {
		case told <- struct{}{}:
		default:
		}
	}
	nc, err := nats.Connect(p.urls[0], nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.RetryOnFailedConnect(true),
		nats.ConnectHandler(tell), nats.DiscoveredServersHandler(tell))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for limit := time.After(patience); len(nc.Servers()) < len(p.urls); {
		select {
		case <-told:
		case <-limit:
			t.Fatalf("the client knows %v", nc.Servers())
		}
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 6*patience)
	defer cancel()
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	const messages = 60
	acked := map[uint64]string{}
	for i := range messages {
		body := fmt.Sprintf("message %d", i)
		if i == messages/2 {
			p.killLeader(ctx, js)
		}
		acked[publish(t, js, body)] = body
	}
	if len(acked) != messages {
		t.Errorf("%d messages have %d sequences", messages, len(acked))
	}
	stream, err := js.Stream(ctx, "S")
	if err != nil {
		t.Fatal(err)
	}
	for seq, want := range acked {
		if m, err := stream.GetMsg(ctx, seq); err != nil || string(m.Data) != want {
			t.Errorf("message %d is %v, want %q: %v", seq, m, want, err)
		}
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("the cluster ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the cluster does not end")
	}
}

// killLeader kills the server that leads the stream.
func (p *playground) killLeader(ctx context.Context, js jetstream.JetStream) {
	s, err := js.Stream(ctx, "S")
	if err != nil {
		p.t.Fatal(err)
	}
	leader := s.CachedInfo().Cluster.Leader
	if p.pids[leader] == 0 {
		p.t.Fatalf("the leader is %q", leader)
	}
	if err := syscall.Kill(p.pids[leader], syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
	p.await(leader + " | ended: signal: killed. To start it again: ")
}

func TestClusterNeedsPorts(t *testing.T) {
	base := ports(t, 3)
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", base))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	out, code := command(t, "cluster", "--nodes", "1", "--dir", t.TempDir(), "--port", strconv.Itoa(base),
		"--cluster-port", strconv.Itoa(base+1), "--http-port", strconv.Itoa(base+2))
	if code != 1 || !strings.Contains(out, "address already in use") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
