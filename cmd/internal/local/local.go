// Package local runs a cluster on one machine, for a person to play with: each server is a process of its own with a
// configuration file and a directory of its own, so that it can be killed, looked at and started again by hand.
//
// It starts the servers once and watches them: their log lines appear with the name of the server before them, their end
// is told, and nothing is restarted. An interrupt ends them all in order.
package local

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options is what a local cluster is made of.
type Options struct {
	// Nodes is how many servers there are.
	Nodes int
	// Dir holds a directory for each server: its configuration and its data.
	Dir string
	// Port, ClusterPort and HTTPPort are the first server's for clients, for servers and for monitoring; the others have
	// the numbers that follow.
	Port, ClusterPort, HTTPPort int
	// Command starts a server: it is followed by -c and the configuration file.
	Command []string
	// Args are further flags for each server.
	Args []string
	// Out receives what there is to read.
	Out io.Writer
}

// NodesMax bounds the servers of a local cluster.
const NodesMax = 9

// endMax is how long servers have to end before they are killed.
const endMax = 20 * time.Second

// server is one process.
type server struct {
	name string
	file string
	cmd  *exec.Cmd
}

// runner is a cluster that runs.
type runner struct {
	options Options
	mu      sync.Mutex // of options.Out
	servers []*server
	ended   chan *server
}

// Run starts the servers and waits until they have ended: by an interrupt, or each by itself. It returns an error when
// they could not be started, or ended with one although nobody asked them to.
func Run(o Options) error {
	if o.Nodes < 1 || o.Nodes > NodesMax {
		return fmt.Errorf("a local cluster has between 1 and %d servers", NodesMax)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	o.Dir = dir
	interrupt := make(chan os.Signal, 2)
	signal.Notify(interrupt, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(interrupt)
	r := &runner{options: o, ended: make(chan *server, o.Nodes)}
	for i := range o.Nodes {
		if err := r.start(i); err != nil {
			r.signal(syscall.SIGKILL)
			return errors.Join(err, r.wait(nil))
		}
	}
	r.say("%s", Guide(o, r.pids()))
	return r.wait(interrupt)
}

// start begins one server.
func (r *runner) start(i int) error {
	name := Name(i)
	dir := filepath.Join(r.options.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(dir, "weir.conf")
	if err := os.WriteFile(file, []byte(Config(r.options, i)), 0o600); err != nil {
		return err
	}
	args := append(append([]string{}, r.options.Command[1:]...), "-c", file)
	cmd := exec.Command(r.options.Command[0], append(args, r.options.Args...)...)
	// A process group of its own: the terminal's interrupt comes here, and is passed on in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	s := &server{name: name, file: file, cmd: cmd}
	r.servers = append(r.servers, s)
	go func() {
		r.copy(name, output)
		_ = cmd.Wait() // how it ended is in its state
		r.ended <- s
	}()
	return nil
}

// copy shows the lines of a server.
func (r *runner) copy(name string, from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.say("%s | %s\n", name, strings.TrimRight(line, "\n"))
		}
		if err != nil {
			return
		}
	}
}

func (r *runner) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Who does not read any more misses nothing.
	_, _ = fmt.Fprintf(r.options.Out, format, args...)
}

func (r *runner) signal(s syscall.Signal) {
	for _, server := range r.servers {
		// One that has ended already needs no signal.
		_ = server.cmd.Process.Signal(s)
	}
}

func (r *runner) pids() []int {
	pids := make([]int, len(r.servers))
	for i, s := range r.servers {
		pids[i] = s.cmd.Process.Pid
	}
	return pids
}

// wait waits until all servers have ended.
func (r *runner) wait(interrupt <-chan os.Signal) error {
	var err error
	var limit <-chan time.Time
	for left := len(r.servers); left > 0; {
		select {
		case <-interrupt:
			if limit != nil {
				r.signal(syscall.SIGKILL)
				continue
			}
			limit = time.After(endMax)
			r.signal(syscall.SIGINT)
		case <-limit:
			r.signal(syscall.SIGKILL)
		case s := <-r.ended:
			left--
			if limit == nil && interrupt != nil {
				r.say("%s | ended: %v. To start it again: %s -c %s\n", s.name, s.cmd.ProcessState, strings.Join(r.options.Command, " "), s.file)
			}
			if state := s.cmd.ProcessState; !state.Success() && state.Sys().(syscall.WaitStatus).Exited() {
				err = errors.Join(err, fmt.Errorf("%s: %v", s.name, state))
			}
		}
	}
	return err
}

// Name is the name of a server; the first is 0.
func Name(i int) string { return "n" + strconv.Itoa(i+1) }
