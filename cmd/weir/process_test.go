package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// asCommand makes the test binary behave as weir itself.
const asCommand = "WEIR_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// server is a weir process of a test.
type server struct {
	t     *testing.T
	dir   string // of its files, kept over restarts
	args  []string
	cmd   *exec.Cmd
	url   string
	http  string
	log   *buffer
	ended chan error
}

// buffer collects what a process writes, and tells who waits for a text when it is there.
type buffer struct {
	mu     sync.Mutex
	text   bytes.Buffer
	awaits map[string]chan struct{}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.text.Write(p)
	b.notify()
	return n, err
}

// notify closes the channels of the texts that have been written. The lock is held.
func (b *buffer) notify() {
	for text, written := range b.awaits {
		if bytes.Contains(b.text.Bytes(), []byte(text)) {
			close(written)
			delete(b.awaits, text)
		}
	}
}

// written returns a channel that is closed as soon as the process has written a text. One at a time may wait for a text.
func (b *buffer) written(text string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	written := make(chan struct{})
	b.awaits[text] = written
	b.notify()
	return written
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// patience is how long anything may take.
const patience = 30 * time.Second

// startServer starts weir on free ports with JetStream in dir.
func startServer(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	s := &server{t: t, dir: dir, args: args}
	s.start()
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			s.end(syscall.SIGKILL)
		}
	})
	return s
}

func (s *server) start() {
	s.t.Helper()
	args := append([]string{"serve", "-a", "127.0.0.1", "-p", "-1", "-m", "-1", "-js", "-sd", filepath.Join(s.dir, "data"),
		"--ports_file_dir", s.dir}, s.args...)
	s.cmd = exec.Command(os.Args[0], args...)
	s.cmd.Env = append(os.Environ(), asCommand+"=1")
	s.log = &buffer{awaits: map[string]chan struct{}{}}
	s.cmd.Stderr, s.cmd.Stdout = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(s.cmd, s.ended)
	s.await("Server is ready")
	text, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("%s_%d.ports", filepath.Base(os.Args[0]), s.cmd.Process.Pid)))
	if err != nil {
		s.t.Fatal(err)
	}
	var ports struct{ Nats, Monitoring []string }
	if err := json.Unmarshal(text, &ports); err != nil || len(ports.Nats) != 1 || len(ports.Monitoring) != 1 {
		s.t.Fatalf("ports file holds %s: %v", text, err)
	}
	s.url, s.http = ports.Nats[0], ports.Monitoring[0]
}

// await waits until the server has logged a text.
func (s *server) await(text string) {
	s.t.Helper()
	written := s.log.written(text)
	select {
	case <-written:
	case err := <-s.ended:
		s.ended <- err
		s.t.Fatalf("waiting for %q in the log: the server has ended (%v):\n%s", text, err, s.log)
	case <-time.After(patience):
		s.t.Fatalf("waiting for %q in the log: not after %v:\n%s", text, patience, s.log)
	}
}

// end sends a signal and returns the exit code, -1 after a kill.
func (s *server) end(signal syscall.Signal) int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Fatalf("the server does not end on %v:\n%s", signal, s.log)
	}
	return s.cmd.ProcessState.ExitCode()
}

func (s *server) connect(options ...nats.Option) *nats.Conn {
	s.t.Helper()
	nc, err := nats.Connect(s.url, options...)
	if err != nil {
		s.t.Fatalf("connect: %v:\n%s", err, s.log)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

// command runs weir with arguments to its end.
func command(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	text, err := cmd.CombinedOutput()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

func TestExitCodesAndTexts(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.conf")
	if err := os.WriteFile(bad, []byte("port: 4222\nprot: 1\nleafnodes {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"-v", 0, "weir: v"},
		{"version", 0, "compatible with nats-server v2.15.2"},
		{"-h", 0, "Usage: weir [serve] [options]"},
		{"serve --help", 0, "Usage: weir [serve] [options]"},
		{"help bench", 0, "fresh\ndirectories"},
		{"-foo", 2, "flag provided but not defined: -foo"},
		{"serve -p x", 2, "invalid value"},
		{"-syslog", 1, "flag -syslog is not supported by this version of weir"},
		{"-tls", 1, "TLS Server certificate must be present and valid"},
		{"-c /nonexistent/a.conf", 1, "no such file"},
		{"-t -c " + bad, 1, `bad.conf:2:1: unknown field "prot"`},
		{"-c " + bad, 1, `option "leafnodes" is not supported by this version of weir`},
		{"--routes nats://h:1", 1, "solicited routes require cluster capabilities, e.g. --cluster"},
		{"-js -cluster nats://127.0.0.1:-1", 1, "jetstream cluster requires `server_name` to be set"},
		{"cluster --nodes 0", 1, "between 1 and 9 servers"},
		{"check", 1, "not part of this version"},
		{"frobnicate", 1, "unknown command"},
		{"sim --nodes 10", 2, "--nodes 10"},
		{"bench --replicas 2", 1, "it is 1 or 3"},
	} {
		out, code := command(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("weir %s: exit code %d (want %d), output %.300q (want %q in it)", c.args, code, c.code, out, c.want)
		}
	}
}

func TestSignalsEndTheServerInOrder(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		s := startServer(t, t.TempDir())
		closed := make(chan struct{})
		s.connect(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
		if code := s.end(signal); code != 0 {
			t.Errorf("%v: exit code %d:\n%s", signal, code, s.log)
		}
		select {
		case <-closed:
		case <-time.After(patience):
			t.Errorf("%v: the client is not closed", signal)
		}
		if left, _ := filepath.Glob(filepath.Join(s.dir, "*.ports")); len(left) > 0 {
			t.Errorf("%v: %s is left behind", signal, left)
		}
	}
}

func TestReloadNeedsAFile(t *testing.T) {
	s := startServer(t, t.TempDir())
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.await("can only reload config when a file is provided")
}

// TestReloadChangesUsersAndBounds changes the file of a server, and asks for what can not be changed at the end.
func TestReloadChangesUsersAndBounds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.conf")
	reload := func(s *server, text, line string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s == nil {
			return
		}
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.await(line)
	}
	users := "authorization { users: [ {user: a, password: secret1}, {user: b, password: secret2} ] }\n"
	reload(nil, users, "")
	s := startServer(t, t.TempDir(), "-c", file)
	closed := make(chan error, 4)
	options := func(user, password string) []nats.Option {
		return []nats.Option{nats.UserInfo(user, password), nats.NoReconnect(), nats.Name(user),
			nats.ClosedHandler(func(nc *nats.Conn) { closed <- fmt.Errorf("%s: %w", nc.Opts.Name, nc.LastError()) })}
	}
	gone := func(user string, why ...error) {
		t.Helper()
		select {
		case err := <-closed:
			if !slices.ContainsFunc(why, func(e error) bool { return errors.Is(err, e) }) || !strings.HasPrefix(err.Error(), user+":") {
				t.Errorf("closed: %v, want %s: %v", err, user, why)
			}
		case <-time.After(patience):
			t.Errorf("user %s is not closed", user)
		}
	}
	first := s.connect(options("a", "secret1")...)
	s.connect(options("b", "secret2")...)
	reload(s, users+"max_connections: 1\n", "Reloaded: max_connections = 1")
	gone("b", nats.ErrMaxConnectionsExceeded)
	reload(s, "authorization { users: [ {user: a, password: secret1}, {user: c, password: secret3} ] }\n", "Reloaded: authorization users")
	third := s.connect(options("c", "secret3")...)
	reload(s, "authorization { users: [ {user: a, password: changed}, {user: c, password: secret3} ] }\nmax_connections: 7\n",
		"Reloaded: max_connections = 7")
	gone("a", nats.ErrAuthorization, io.EOF) // the client may see the end after the reason
	reload(s, users+"server_tags: [\"a\"]\nlame_duck_duration: \"1m\"\n", "config reload not supported for LameDuckDuration: old=2m0s, new=1m0s")
	reload(s, users+"server_name: x\n", "config reload not supported for ServerName: old=, new=x")
	reload(s, "prot: 1\n", `unknown field "prot"`)
	if !first.IsClosed() || third.Flush() != nil {
		t.Errorf("the clients are %v and %v", first.Status(), third.Status())
	}
	if strings.Contains(s.log.String(), "secret") || strings.Contains(s.log.String(), "changed") {
		t.Error("passwords are in the log")
	}
}

func TestLameDuckTellsClientsAndEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.conf")
	text := "lame_duck_duration: \"30s\"\nlame_duck_grace_period: \"10ms\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, t.TempDir(), "-c", file)
	told := make(chan struct{})
	s.connect(nats.NoReconnect(), nats.LameDuckModeHandler(func(*nats.Conn) { close(told) }))
	if code := s.end(syscall.SIGUSR2); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.log)
	}
	select {
	case <-told:
	case <-time.After(patience):
		t.Error("the client is not told")
	}
}

func TestMonitoringAnswers(t *testing.T) {
	s := startServer(t, t.TempDir())
	s.connect()
	for path, want := range map[string]string{
		"/varz": `"connections": 1`, "/connz": `"num_connections": 1`, "/jsz": `"streams": 0`, "/healthz": `{"status":"ok"}`,
		"/subsz": `"num_subscriptions"`, "/": "/varz", "/nope": "404 page not found", "/connz?sort=x": "invalid sorting option: x",
	} {
		response, err := http.Get(s.http + path)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(response.Body); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if !strings.Contains(body.String(), want) {
			t.Errorf("%s: %s", path, body.String())
		}
	}
}

func TestSecondServerIsKeptOffTheDirectory(t *testing.T) {
	s := startServer(t, t.TempDir())
	out, code := command(t, "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", filepath.Join(s.dir, "data"))
	if code != 1 || !strings.Contains(out, "lock") {
		t.Errorf("exit code %d, output %s", code, out)
	}
}
