package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	peerModule  = "github.com/nats-io/nats-server/v2"
	peerVersion = "v2.15.2" // where the build information of this binary names none

	startMax = 60 * time.Second // how long a server may take until it answers
	stopMax  = 30 * time.Second // how long it may take to end when asked
	pollEach = time.Millisecond

	profileDir = "profiles" // below the current directory; a directory per work
)

// contender is a server that can be started.
type contender struct {
	name   string
	binary string
	args   []string
	extra  string // lines of its jetstream block

	profile string // mode of its --profile flag, "" for none
}

func contenders(ctx context.Context, o Options) (servers [columnCount]*contender, err error) {
	servers[weirColumn] = &contender{name: "weir", binary: o.Binary, args: []string{"serve"}, profile: o.Profile}
	if !o.Peer {
		return servers, nil
	}
	binary := o.PeerBinary
	if binary == "" {
		if binary, err = buildPeer(ctx, o); err != nil {
			return servers, fmt.Errorf("build the reference server: %w", err)
		}
	}
	servers[defaultColumn] = &contender{name: "reference", binary: binary}
	servers[alwaysColumn] = &contender{name: "reference, sync always", binary: binary, extra: "sync_interval: always"}
	return servers, nil
}

// buildPeer builds the reference server of the version that this module depends on, once per version and user.
func buildPeer(ctx context.Context, o Options) (string, error) {
	version := peerVersion
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == peerModule {
				version = dep.Version
			}
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "weir", "peer-"+version)
	binary := filepath.Join(dir, "nats-server")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	fmt.Fprintf(o.Progress, "building %s %s\n", peerModule, version)
	work, err := os.MkdirTemp("", "weir-peer-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	cmd := exec.CommandContext(ctx, "go", "install", peerModule+"@"+version)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "GOBIN="+work, "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	made := filepath.Join(work, "nats-server")
	if os.Rename(made, binary) == nil {
		return binary, nil
	}
	text, err := os.ReadFile(made)
	if err != nil {
		return "", err
	}
	return binary, os.WriteFile(binary, text, 0o755)
}

// trial is one server process on its own directory, and the connections to it.
type trial struct {
	*run
	server *contender
	work   string
	dir    string
	url    string
	cmd    *exec.Cmd
	ended  chan error
	log    *os.File
	conns  []*nats.Conn
}

// start runs the server and returns once JetStream answers.
func (t *trial) start() error {
	if t.url == "" {
		if err := t.configure(); err != nil {
			return err
		}
	}
	if err := t.spawn(); err != nil {
		return err
	}
	return t.until(func(js jetstream.JetStream) error {
		_, err := js.AccountInfo(t.ctx)
		return err
	})
}

// configure reserves a port and writes the configuration file.
func (t *trial) configure() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	t.url = "nats://" + address
	text := fmt.Sprintf("listen: %q\nserver_name: bench\njetstream {\n  store_dir: %q\n  %s\n}\n",
		address, filepath.Join(t.dir, "data"), t.server.extra)
	return os.WriteFile(filepath.Join(t.dir, "server.conf"), []byte(text), 0o644)
}

func (t *trial) spawn() (err error) {
	t.log, err = os.OpenFile(filepath.Join(t.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	args := append(append([]string(nil), t.server.args...), "-c", filepath.Join(t.dir, "server.conf"))
	if t.server.profile != "" {
		args = append(args, "--profile", t.server.profile, "--profile_dir", filepath.Join(profileDir, t.work))
	}
	t.cmd = exec.CommandContext(t.ctx, t.server.binary, args...)
	t.cmd.Stdout, t.cmd.Stderr = t.log, t.log
	if err := t.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", t.server.name, err)
	}
	t.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(t.cmd, t.ended)
	return nil
}

// until connects again and again until ask succeeds, and fails when the server ends or takes too long.
func (t *trial) until(ask func(jetstream.JetStream) error) error {
	limit := time.Now().Add(startMax)
	var last error
	for time.Now().Before(limit) && t.ctx.Err() == nil {
		select {
		case err := <-t.ended:
			t.ended <- err
			return fmt.Errorf("the server ended at start (%v): %s", err, t.lastLog())
		default:
		}
		nc, err := nats.Connect(t.url, nats.Timeout(time.Second), nats.NoReconnect())
		if err == nil {
			var js jetstream.JetStream
			if js, err = jetstream.New(nc); err == nil {
				err = ask(js)
			}
			nc.Close()
		}
		if err == nil {
			return nil
		}
		last = err
		time.Sleep(pollEach)
	}
	return errors.Join(fmt.Errorf("the server does not answer: %w: %s", last, t.lastLog()), t.ctx.Err())
}

func (t *trial) lastLog() string {
	text, err := os.ReadFile(t.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// connect opens a connection that lasts as long as the trial.
func (t *trial) connect() (*nats.Conn, error) {
	nc, err := nats.Connect(t.url, nats.Timeout(5*time.Second), nats.NoReconnect())
	if err == nil {
		t.conns = append(t.conns, nc)
	}
	return nc, err
}

// stop ends the server: at once, or in order when its profile is still to be written.
func (t *trial) stop() error {
	if t.server.profile != "" {
		return t.end(syscall.SIGTERM)
	}
	return t.end(syscall.SIGKILL)
}

// end closes the connections, sends the signal and waits.
func (t *trial) end(signal syscall.Signal) error {
	for _, nc := range t.conns {
		nc.Close()
	}
	t.conns = nil
	if t.cmd == nil {
		return nil
	}
	defer t.log.Close()
	if err := t.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-t.ended:
	case <-time.After(stopMax):
		killed := t.cmd.Process.Kill()
		<-t.ended
		return errors.Join(fmt.Errorf("the server did not end within %v of %v", stopMax, signal), killed)
	}
	t.cmd = nil
	return nil
}
