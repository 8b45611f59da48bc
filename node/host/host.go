// Package host runs a node in the real world: sockets, files, clocks and threads.
//
// It is an edge: it schedules and pumps, and decides nothing that the node could decide. All of the node runs under one
// lock, driven by whoever brings an input: the reader of a connection after parsing, the worker of the storage after
// its work, the timer. Replies are queued under the lock, which fixes their order, and written to the sockets after it
// is released.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"weir/disk/vfs"
	"weir/node"
	"weir/node/auth"
	"weir/node/engine"
	"weir/node/event"
	"weir/transport/tcp"
	"weir/transport/wire"
)

// Options is what a host needs.
type Options struct {
	// Node is the configuration of the node.
	Node node.Config
	// Disk holds the data directory.
	Disk vfs.FS
	// Listen is the address for clients, "host:port"; port 0 takes any free one.
	Listen string
	// Cluster is about other servers; nil without any.
	Cluster *Cluster
	// Guard, when it is not nil, is how the connections of clients are protected.
	Guard *tcp.Guard
	// Web is where clients connect by WebSocket; nil: nowhere.
	Web *Web
	// WriteDeadline bounds a write to a client that does not read.
	WriteDeadline time.Duration
	// SyncInterval, when not 0, makes the log durable in the background at this interval instead of before every
	// acknowledgement: the reference server's lazy mode.
	SyncInterval time.Duration
	// Log receives the lines for the operator. The protocol is shown at LevelTrace.
	Log *slog.Logger
	// TraceBytes cuts the payloads in lines that show the protocol; 0 does not.
	TraceBytes int
}

// Host is a running server. Its methods may be called from any goroutine.
type Host struct {
	options  Options
	listener net.Listener
	web      net.Listener // nil without WebSockets
	started  time.Time

	mu      sync.Mutex // guards node and everything that the node calls
	node    *node.Node
	conns   map[event.ConnID]*tcp.Conn
	nextID  event.ConnID
	timer   *time.Timer
	wakeAt  int64
	touched []*tcp.Conn // to be flushed after mu is released
	inputs  []event.Input
	ended   bool

	writtenMu sync.Mutex // guards what connections have written since the node last looked
	written   map[event.ConnID]int
	spare     [][]byte

	tracer atomic.Pointer[tracer]
	links  *links // nil without cluster

	log   worker // write-ahead log
	store worker // everything else on the disk
	vigil vigil  // over the use of the log

	accepting sync.WaitGroup
	quit      chan struct{}
}

// New opens the data directory and the listener. The server does not accept anybody before Run.
func New(options Options) (*Host, error) {
	options.Node.Storage.Log.Lazy = options.SyncInterval > 0
	h := &Host{
		options: options,
		started: time.Now(),
		conns:   map[event.ConnID]*tcp.Conn{},
		written: map[event.ConnID]int{},
		quit:    make(chan struct{}),
	}
	h.tracer.Store(newTracer(options.Log, options.TraceBytes))
	h.timer = time.AfterFunc(time.Hour, h.wake)
	h.log.init(h)
	h.store.init(h)
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for clients on %s: %w", options.Listen, err)
	}
	h.listener = listener
	if addr, ok := listener.Addr().(*net.TCPAddr); ok && h.options.Node.Engine.Port <= 0 {
		h.options.Node.Engine.Port = addr.Port
	}
	if err := errors.Join(h.openWeb(), h.openLinks()); err != nil {
		return nil, errors.Join(err, listener.Close(), h.closeWeb(), h.closeLinks())
	}
	env := node.Env{Clock: (*clock)(h), Network: (*network)(h), Worker: (*submitter)(h), Disk: options.Disk, Log: h.logLine}
	if err := h.openNode(env); err != nil {
		return nil, errors.Join(err, listener.Close(), h.closeWeb(), h.closeLinks())
	}
	if h.node.Storage() != nil {
		h.log.idle, h.log.chore = h.prepareLog, h.syncLog
		h.vigil.start()
	}
	h.log.start()
	h.store.start()
	h.log.wake()
	h.store.wake()
	if options.SyncInterval > 0 && h.node.Storage() != nil {
		go h.syncLazily()
	}
	h.links.start()
	return h, nil
}

// openNode starts the node, after some patience with a disk that does not read.
func (h *Host) openNode(env node.Env) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for attempt := range node.PatienceMax + 1 {
		config := h.options.Node
		config.Storage.Patient = attempt < node.PatienceMax
		h.node, err = node.New(env, config)
		if err == nil || !config.Storage.Patient || !errors.Is(err, vfs.ErrIO) {
			return err
		}
		h.logLine(event.LogLine{Level: event.Error, Text: fmt.Sprintf("The disk does not read, trying again: %v", err)})
		time.Sleep(time.Duration(node.PatienceNanos))
	}
	return err
}

// Addr is the address on which clients are accepted.
func (h *Host) Addr() net.Addr { return h.listener.Addr() }

// View runs f with the engine, which f may read and must not keep.
func (h *Host) View(f func(e *engine.Engine, now event.Time)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h.node.Engine(), (*clock)(h).Now())
}

// Run accepts clients until Shutdown. It returns nil after an orderly end.
func (h *Host) Run() error {
	h.accepting.Add(1)
	defer h.accepting.Done()
	return h.runAll()
}

// accepts accepts clients that connect in one way.
func (h *Host) accepts(listener net.Listener, way auth.Way) error {
	failing := false
	for {
		sock, err := listener.Accept()
		if err != nil {
			select {
			case <-h.quit:
				return nil
			default:
			}
			var transient interface{ Temporary() bool }
			if errors.As(err, &transient) && transient.Temporary() {
				if !failing { // it may fail for long, as while there are no file descriptors
					h.options.Log.Error("Accept of a client failed, trying again: " + err.Error())
				}
				failing = true
				time.Sleep(10 * time.Millisecond)
				continue
			}
			return fmt.Errorf("accept clients: %w", err)
		}
		if failing {
			failing = false
			h.options.Log.Info("Clients are accepted again")
		}
		h.accept(sock.(*net.TCPConn), way)
	}
}

func (h *Host) accept(sock *net.TCPConn, way auth.Way) {
	h.mu.Lock()
	h.nextID++
	id := h.nextID
	c, err := tcp.NewConn(uint64(id), sock, (*clients)(h), h.options.WriteDeadline)
	if err != nil || h.ended {
		h.mu.Unlock()
		// The client sees a closed connection; nothing was promised to it.
		_ = sock.Close()
		return
	}
	start, guard := event.Plain, h.options.Guard
	switch {
	case way == auth.WebSocket:
		start, guard = event.Silent, h.options.Web.Guard
		c.Upgrade(h.options.Web.Sockets)
	case guard.Waits():
		start = event.Silent
	case guard != nil:
		start = event.Guarded
	}
	c.Protect(guard)
	nonce := newNonce()
	h.conns[id] = c
	address := sock.RemoteAddr().String()
	h.tracer.Load().opened(clientName(id, address, way), id)
	h.stepLocked(0, event.Input{Kind: event.Opened, Conn: id, Text: address, Start: start, Way: way, Nonce: nonce})
	go c.Serve()
}

// step brings one input to the node.
func (h *Host) step(in event.Input) {
	h.mu.Lock()
	h.stepLocked(0, in)
}

// stepLocked is step with mu held; it releases mu, writes to the sockets what the step queued, and has the storage do
// what the step asked for: on this goroutine if its appends are no larger than inlineBytes.
func (h *Host) stepLocked(inlineBytes int, in ...event.Input) {
	h.advance(in...).flush()
	h.log.drive(inlineBytes)
	h.store.drive(0)
}

// advance brings inputs to the node with mu held, and releases mu. It writes what the step queued for other servers and
// returns the connections to be flushed; the caller then has the storage do what the step asked for.
func (h *Host) advance(in ...event.Input) touched {
	h.inputs = h.takeWritten(h.inputs[:0])
	h.inputs = append(h.inputs, in...)
	h.node.StepAll(h.inputs)
	clear(h.inputs)
	conns := touched(h.touched)
	h.touched = nil
	peers := h.links.takeTouched()
	h.mu.Unlock()
	for _, p := range peers {
		p.Flush()
	}
	return conns
}

// touched is the connections that a step queued something for.
type touched []*tcp.Conn

func (t touched) flush() {
	for _, c := range t {
		c.Flush()
	}
}

// takeWritten turns what connections have written since the last step into inputs.
func (h *Host) takeWritten(inputs []event.Input) []event.Input {
	h.writtenMu.Lock()
	defer h.writtenMu.Unlock()
	for id, n := range h.written {
		inputs = append(inputs, event.Input{Kind: event.Flushed, Conn: id, N: n})
	}
	clear(h.written)
	return inputs
}

func (h *Host) wake() { h.step(event.Input{Kind: event.Woke}) }

// LameDuck tells clients to leave for other servers; the caller closes them later with Shutdown.
func (h *Host) LameDuck() {
	_ = errors.Join(h.listener.Close(), h.closeWeb())
	h.step(event.Input{Kind: event.LameDuck})
}

// Disconnect closes up to n connections, for leaving gradually, and returns how many are left.
func (h *Host) Disconnect(n int) int {
	h.mu.Lock()
	var victims []*tcp.Conn
	for _, c := range h.conns {
		if len(victims) == n {
			break
		}
		victims = append(victims, c)
	}
	left := len(h.conns) - len(victims)
	h.mu.Unlock()
	for _, c := range victims {
		c.Close(wire.ServerShutdown, false)
	}
	return left
}

// Shutdown ends the server in order: waiting requests are told, clients are closed, the log is made durable, files are
// closed. It returns the first error of closing the storage.
func (h *Host) Shutdown() error {
	h.mu.Lock()
	if h.ended {
		h.mu.Unlock()
		return nil
	}
	h.ended = true
	close(h.quit)
	h.mu.Unlock()
	_ = errors.Join(h.listener.Close(), h.closeWeb())
	h.accepting.Wait()
	h.step(event.Input{Kind: event.Shutdown})
	for h.Disconnect(1<<30) > 0 {
		continue
	}
	h.links.stop()
	h.timer.Stop()
	if h.node.Storage() != nil {
		h.vigil.stop()
	}
	h.store.stop() // first: the end of a checkpoint leaves a mark in the log
	h.log.stop()
	if s := h.node.Storage(); s != nil {
		return s.Close()
	}
	return nil
}

func (h *Host) syncLazily() {
	tick := time.NewTicker(h.options.SyncInterval)
	defer tick.Stop()
	for {
		select {
		case <-h.quit:
			return
		case <-tick.C:
			h.log.order()
		}
	}
}

// syncLog makes the log durable in lazy mode. After a failure the next append fails as well, and the node stops to take
// changes.
func (h *Host) syncLog() {
	if err := h.node.Storage().Sync(); err != nil {
		h.options.Log.Error("Background sync of the log failed: " + err.Error())
	}
}

func (h *Host) logLine(line event.LogLine) {
	switch line.Level {
	case event.Debug:
		h.options.Log.Debug(line.Text)
	case event.Warn:
		h.options.Log.Warn(line.Text)
	case event.Error:
		h.options.Log.Error(line.Text)
	case event.Trace:
		h.options.Log.Log(context.Background(), LevelTrace, line.Text)
	default:
		h.options.Log.Info(line.Text)
	}
}
