package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/node"
	"weir/node/engine"
	"weir/node/event"
	"weir/transport/peerwire"
	"weir/transport/tcp"
)

// patience is how long anything in these tests may take.
const patience = 20 * time.Second

// linked is a host without a node: what its links bring to it is written down.
type linked struct {
	*Host
	t      *testing.T
	events chan string // "up NAME", "down ID", "from ID: TOKENS"
	lines  lines
}

// lines are log lines, and who waits for one.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return l.text.Write(p)
}

// await waits until a line was logged that contains the text.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	limit := time.After(patience)
	for {
		l.mu.Lock()
		found := strings.Contains(l.text.String(), text)
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-limit:
			t.Fatalf("nobody logged %q, only:\n%s", text, l.text.String())
		}
	}
}

// who is a server of a test.
type who struct {
	name    string
	id      event.ServerID
	boot    uint64
	cluster string
}

// link starts the links of a server without a node.
func link(t *testing.T, w who, c Cluster) *linked {
	t.Helper()
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if w.cluster == "" {
		w.cluster = "C"
	}
	s := &linked{t: t, events: make(chan string, 1<<16)}
	s.Host = &Host{started: time.Now(), options: Options{
		Cluster: &c, Log: slog.New(slog.NewTextHandler(&s.lines, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Listen: "127.0.0.1:4222", WriteDeadline: patience,
		Node: node.Config{Engine: engine.Config{
			Port: 4222, Server: w.id, ServerID: "N" + w.name, ServerName: w.name, Boot: w.boot, Cluster: engine.Cluster{Name: w.cluster, User: c.User, Password: c.Password},
		}},
	}}
	if err := s.openLinks(); err != nil {
		t.Fatal(err)
	}
	s.links.step = s.note
	s.links.hello = func() peerwire.Hello {
		e := &s.options.Node.Engine
		return peerwire.Hello{
			Version: peerwire.Version, ID: e.Server, Name: e.ServerName, Cluster: e.Cluster.Name, Address: e.Cluster.Address,
			User: e.Cluster.User, Password: e.Cluster.Password,
		}
	}
	s.links.start()
	t.Cleanup(s.links.stop)
	return s
}

func (s *linked) note(_ int, in ...event.Input) {
	for i := range in {
		switch in[i].Kind {
		case event.PeerUp:
			s.events <- "up " + in[i].Hello.Name
		case event.PeerDown:
			s.events <- fmt.Sprint("down ", in[i].Peer)
		case event.FromPeer:
			text := fmt.Sprintf("from %d:", in[i].Peer)
			for rest := in[i].Frames; len(rest) > 0; {
				frame, more, err := peerwire.Split(rest)
				var f peerwire.Frame
				if err = errors.Join(err, peerwire.Parse(frame, &f)); err != nil {
					text += " " + err.Error()
					break
				}
				text += fmt.Sprint(" ", f.Token)
				rest = more
			}
			s.events <- text
		}
	}
	peers := s.links.takeTouched()
	s.mu.Unlock()
	for _, p := range peers {
		p.Flush()
	}
}

// expect waits for an event.
func (s *linked) expect(want string) {
	s.t.Helper()
	select {
	case got := <-s.events:
		if got != want {
			s.t.Fatalf("%s: got %q, want %q\n%s", s.options.Node.Engine.ServerName, got, want, s.lines.text.String())
		}
	case <-time.After(patience):
		s.t.Fatalf("%s: nothing came, want %q\n%s", s.options.Node.Engine.ServerName, want, s.lines.text.String())
	}
}

// send sends a frame with a token, followed by bytes that only take room.
func (s *linked) send(to event.ServerID, token uint64) {
	s.mu.Lock()
	frame := peerwire.Append(nil, &peerwire.Frame{Kind: peerwire.Msg, Token: token})
	(*network)(s.Host).SendPeers([]event.PeerOut{{To: to, Frames: frame}})
	s.note(0)
}

func (s *linked) route() Route { return Route{Address: s.ClusterAddr().String()} }

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// stranger is another server played by a test.
type stranger struct {
	t    *testing.T
	conn *tcp.PeerConn
}

func dialAs(t *testing.T, s *linked) *stranger {
	t.Helper()
	conn, err := tcp.DialPeer(context.Background(), s.ClusterAddr().String(),
		tcp.PeerOptions{Timeout: patience, WriteDeadline: patience, Release: func([]byte) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(io.EOF) })
	return &stranger{t, conn}
}

// say sends a greeting and returns the answer.
func (s *stranger) say(g *peerwire.Greeting) *peerwire.Greeting {
	s.t.Helper()
	if err := s.conn.Greet(g); err != nil {
		s.t.Fatal(err)
	}
	answer, err := s.conn.Greeted()
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

func (w who) hello() *peerwire.Hello {
	return &peerwire.Hello{Version: peerwire.Version, ID: w.id, Name: w.name, Cluster: "C"}
}
