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

// until repeats what may fail while servers look for a leader.
func until(t *testing.T, what string, f func(ctx context.Context) error) {
	t.Helper()
	var err error
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err = f(ctx)
		cancel()
		if err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// TestClusterLosesNothingWithItsLeader kills the leader of a stream in mid-publish.
func TestClusterLosesNothingWithItsLeader(t *testing.T) {
	p := startCluster(t, 3)
	nc, err := nats.Connect(p.urls[0], nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "create the stream", func(ctx context.Context) error {
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Replicas: 3})
		return err
	})
	until(t, "learn of the other servers", func(context.Context) error {
		if known := nc.Servers(); len(known) < len(p.urls) {
			return fmt.Errorf("the client knows %v", known)
		}
		return nil
	})
	const messages = 60
	acked := map[uint64]string{}
	for i := range messages {
		body := fmt.Sprintf("message %d", i)
		if i == messages/2 {
			p.killLeader(js)
		}
		until(t, "publish "+body, func(ctx context.Context) error {
			ack, err := js.Publish(ctx, "s.x", []byte(body), jetstream.WithMsgID(body))
			if err == nil {
				acked[ack.Sequence] = body
			}
			return err
		})
	}
	if len(acked) != messages {
		t.Errorf("%d messages have %d sequences", messages, len(acked))
	}
	for seq, want := range acked {
		until(t, "read back", func(ctx context.Context) error {
			s, err := js.Stream(ctx, "S")
			if err != nil {
				return err
			}
			m, err := s.GetMsg(ctx, seq)
			if err == nil && string(m.Data) != want {
				t.Errorf("message %d is %q, want %q", seq, m.Data, want)
			}
			return err
		})
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
func (p *playground) killLeader(js jetstream.JetStream) {
	leader := ""
	until(p.t, "find the leader", func(ctx context.Context) error {
		s, err := js.Stream(ctx, "S")
		if err != nil {
			return err
		}
		if leader = s.CachedInfo().Cluster.Leader; p.pids[leader] == 0 {
			return fmt.Errorf("the leader is %q", leader)
		}
		return nil
	})
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
