package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// node is one server process of a trial.
type node struct {
	trial   *trial
	name    string
	dir     string
	url     string // for clients
	monitor string // of the monitoring port
	cmd     *exec.Cmd
	ended   chan error
	log     *os.File
}

func (n *node) config() string { return filepath.Join(n.dir, "server.conf") }

// spawn starts the process.
func (n *node) spawn() (err error) {
	t := n.trial
	n.log, err = os.OpenFile(filepath.Join(n.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	args := append(append([]string(nil), t.server.args...), "-c", n.config())
	if t.server.profile != "" {
		dir := filepath.Join(profileDir, t.work)
		if t.Replicas > 1 {
			dir = filepath.Join(dir, n.name)
		}
		args = append(args, "--profile", t.server.profile, "--profile_dir", dir)
	}
	cmd := exec.CommandContext(t.ctx, t.server.binary, args...)
	cmd.Stdout, cmd.Stderr = n.log, n.log
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", t.server.name, err), n.log.Close())
	}
	n.cmd, n.ended = cmd, make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(cmd, n.ended)
	return nil
}

// until connects again and again until ask succeeds, and fails when the server ends or takes too long.
func (n *node) until(ask func(jetstream.JetStream) error) error {
	t := n.trial
	limit := time.Now().Add(startMax)
	var last error
	for time.Now().Before(limit) && t.ctx.Err() == nil {
		select {
		case err := <-n.ended:
			n.ended <- err
			return fmt.Errorf("the server ended at start (%v): %s", err, n.lastLog())
		default:
		}
		nc, err := nats.Connect(n.url, nats.Timeout(time.Second), nats.NoReconnect())
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
	return errors.Join(fmt.Errorf("the server does not answer: %w: %s", last, n.lastLog()), t.ctx.Err())
}

func (n *node) lastLog() string {
	text, err := os.ReadFile(n.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// end sends the signal and waits. It does nothing when the process has ended already.
func (n *node) end(signal syscall.Signal) error {
	if n.cmd == nil {
		return nil
	}
	defer n.log.Close()
	if err := n.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-n.ended:
	case <-time.After(stopMax):
		killed := n.cmd.Process.Kill()
		<-n.ended
		return errors.Join(fmt.Errorf("the server did not end within %v of %v", stopMax, signal), killed)
	}
	n.cmd = nil
	return nil
}
