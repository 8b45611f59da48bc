package torture

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The users of the cluster: clients that name none are the first one.
const (
	appUser    = "app"
	systemUser = "sys"
)

// endMax is how long servers have to end in order.
const endMax = 20 * time.Second

// tailMax is how much of the end of a log is shown.
const tailMax = 4096

// server is one server with its processes, one after the other.
type server struct {
	name, dir, file string
	index           int

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	wanted  bool          // the process is not meant to end
	stopped bool          // by SIGSTOP
	starts  int
}

// cluster is the servers and the network between them.
type cluster struct {
	run     *run
	net     fabric
	servers []*server
	mu      sync.Mutex
	crashes []string // processes that ended although nobody asked them to
}

func newCluster(r *run) (*cluster, error) {
	net, err := newFabric(r.options)
	if err != nil {
		return nil, err
	}
	c := &cluster{run: r, net: net}
	for i := range r.options.Nodes {
		name := serverName(i)
		s := &server{name: name, index: i, dir: filepath.Join(r.options.Dir, name)}
		s.file = filepath.Join(s.dir, "weir.conf")
		c.servers = append(c.servers, s)
		if _, err := os.Stat(s.dir); err == nil {
			return nil, errors.Join(fmt.Errorf("torture: %s is there already: a run begins with servers that have no data", s.dir), net.close())
		}
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return nil, errors.Join(err, net.close())
		}
		if err := os.WriteFile(s.file, []byte(c.config(s)), 0o600); err != nil {
			return nil, errors.Join(err, net.close())
		}
	}
	return c, nil
}

// serverName is the name of a server; the first is 0.
func serverName(i int) string { return fmt.Sprintf("n%d", i+1) }

// config is the configuration file of a server.
func (c *cluster) config(s *server) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	at := c.net.place(s.index)
	line("server_name: %s\nlisten: %q\nhttp: %q", s.name, at.client, at.monitor)
	line("jetstream { store_dir: %q }", filepath.Join(s.dir, "data"))
	line("accounts {\n  APP { jetstream: enabled, users: [ { user: %s, password: %s } ] }", appUser, appUser)
	line("  SYS { users: [ { user: %s, password: %s } ] }\n}", systemUser, systemUser)
	line("system_account: SYS\nno_auth_user: %s", appUser)
	if c.run.options.Nodes == 1 {
		return b.String()
	}
	line("cluster {\n  name: torture\n  listen: %q\n  connect_retries: 0\n  no_advertise: true\n  routes: [", at.peer)
	for _, route := range at.routes {
		line("    \"nats://%s\"", route)
	}
	line("  ]\n}")
	return b.String()
}

// url is where clients reach a server.
func (c *cluster) url(i int) string { return "nats://" + c.net.place(i).client }

func (c *cluster) startAll() error {
	for _, s := range c.servers {
		if err := c.start(s); err != nil {
			return err
		}
	}
	return nil
}

// start begins a process of the server; there is none.
func (c *cluster) start(s *server) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	argv := append(append([]string{}, c.run.options.Command...), "-c", s.file)
	cmd := c.net.command(s.index, argv)
	cmd.Env = append(os.Environ(), c.run.options.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", s.name, err), log.Close())
	}
	s.cmd, s.wanted, s.stopped, s.ended = cmd, true, false, make(chan struct{})
	s.starts++
	go func(ended chan struct{}) {
		_ = cmd.Wait() // how it ended is in its state
		_ = log.Close()
		s.mu.Lock()
		if s.wanted && s.cmd == cmd {
			c.crashed(s)
		}
		s.mu.Unlock()
		close(ended)
	}(s.ended)
	return nil
}

// crashed notes an end that nobody asked for. The lock of the server is held.
func (c *cluster) crashed(s *server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf("%s ended by itself: %v\n%s", s.name, s.cmd.ProcessState, tail(filepath.Join(s.dir, "log")))
	c.crashes = append(c.crashes, text)
	c.run.enough()
	c.run.say("%s", text)
}

// signal sends a signal to the process and notes what it means.
func (s *server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch sig {
	case syscall.SIGSTOP:
		s.stopped = true
	case syscall.SIGCONT:
		s.stopped = false
	default:
		s.wanted = false
	}
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig) // one that has ended needs none
	}
}

// kill ends the process at once.
func (s *server) kill() {
	s.signal(syscall.SIGKILL)
	<-s.ended
}

// end ends the process in order, by force after a while. It reports whether it ended by itself.
func (s *server) end() bool {
	s.signal(syscall.SIGTERM)
	select {
	case <-s.ended:
		return true
	case <-time.After(endMax):
		s.kill()
		return false
	}
}

// runs says whether the server has a process that is not stopped.
func (s *server) runs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || s.stopped {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// close ends everything.
func (c *cluster) close() error {
	var all error
	for _, s := range c.servers {
		if s.cmd == nil {
			continue
		}
		s.signal(syscall.SIGCONT)
		s.signal(syscall.SIGTERM)
	}
	for _, s := range c.servers {
		if s.cmd != nil && !s.end() {
			all = errors.Join(all, fmt.Errorf("%s did not end within %v and was killed", s.name, endMax))
		}
	}
	return errors.Join(all, c.net.close())
}

// tails are the ends of the logs of all servers.
func (c *cluster) tails() string {
	var b strings.Builder
	for _, s := range c.servers {
		fmt.Fprintf(&b, "--- %s\n%s\n", s.name, tail(filepath.Join(s.dir, "log")))
	}
	return b.String()
}

// tail is the end of a file.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(text) > tailMax {
		text = text[len(text)-tailMax:]
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return string(text)
}

// resume lets a stopped process go on.
func (s *server) resume() {
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		s.signal(syscall.SIGCONT)
	}
}
