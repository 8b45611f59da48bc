package serve

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/pkg/profile"

	"weir/disk/osfs"
	"weir/node/config"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/host"
)

// Run is the server command: it reads the command line and serves until a signal ends it. The result is the exit code.
func Run(args []string) int {
	f, err := parseFlags(args)
	var wrong usageError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintf(os.Stderr, "weir: %v\n%s", wrong, Usage)
		return 2
	case err != nil:
		return failed(err)
	case f.help:
		fmt.Print(Usage)
		return 0
	case f.version:
		fmt.Println(VersionLine())
		return 0
	case f.signal != "":
		if err := sendSignal(f.signal); err != nil {
			return failed(err)
		}
		return 0
	case f.check:
		if err := checkOnly(f); err != nil {
			return failed(err)
		}
		return 0
	}
	s, warnings, err := load(f)
	for _, w := range warnings {
		fmt.Fprintf(os.Stderr, "weir: %v\n", w)
	}
	if err != nil {
		return failed(err)
	}
	stopProfile, err := startProfile(f)
	if err != nil {
		return failed(err)
	}
	defer stopProfile()
	return run(&s, f)
}

func failed(err error) int {
	fmt.Fprintf(os.Stderr, "weir: %v\n", err)
	return 1
}

// process is a server that runs.
type process struct {
	*settings // at the start
	// current is what counts after reloads.
	current atomic.Pointer[settings]
	flags   *flags
	self    identity
	log     *slog.Logger
	sink    *logger
	host    *host.Host
	started time.Time
	served  chan error // the end of accepting clients
	monitor *monitoring
	ports   string // name of the ports file
}

func run(s *settings, f *flags) int {
	sink, err := newLogger(&s.Config)
	if err != nil {
		return failed(err)
	}
	caught := catch()
	defer signal.Stop(caught)
	p := &process{settings: s, flags: f, sink: sink, log: slog.New(sink), started: time.Now()}
	p.current.Store(s)
	if err := p.start(caught); err != nil {
		if errors.Is(err, errInterrupted) {
			return 0
		}
		p.fatal(err)
		return 1
	}
	return p.wait(caught)
}

func (p *process) fatal(err error) {
	p.log.Log(nilContext, levelFatal, err.Error())
	if p.sink.file != "" {
		// Whoever started the process looks at its standard error first.
		fmt.Fprintf(os.Stderr, "weir: %v\n", err)
	}
}

// start brings the server up in the order that probes expect: monitoring answers while streams are still recovered,
// clients are let in when everything is there.
func (p *process) start(caught <-chan os.Signal) (err error) {
	if p.self, err = newIdentity(); err != nil {
		return err
	}
	if p.JetStream.Enabled {
		dir, _ := storeDir(&p.JetStream)
		if p.self.server, err = serverID(dir, p.self.server); err != nil {
			return err
		}
	}
	announce(p.log, p.settings, p.self)
	options, err := p.options()
	if err != nil {
		return err
	}
	if p.monitor, err = startMonitoring(p); err != nil {
		return err
	}
	options.Node.Engine.Process = p.monitor
	if p.JetStream.Enabled {
		announceJetStream(p.log, p.settings)
	}
	begin := time.Now()
	if p.host, err = host.New(options); err != nil {
		return errors.Join(err, p.monitor.close())
	}
	p.monitor.attach(p.host)
	p.announceCluster()
	if p.JetStream.Enabled {
		if err := p.recover(caught); err != nil {
			return errors.Join(err, p.host.Shutdown(), p.monitor.close())
		}
		// What was read to recover is garbage now; it would take the collector long to notice on an idle server.
		debug.FreeOSMemory()
		p.log.Info(fmt.Sprintf("Took %v to start JetStream", time.Since(begin)))
	}
	p.served = make(chan error, 1)
	go func() { p.served <- p.host.Run() }()
	p.log.Info("Listening for client connections on " + listening(p.Host, p.host.Addr()))
	p.announceTLS()
	p.announceWeb()
	if err := writePid(p.PidFile); err != nil {
		return errors.Join(err, p.host.Shutdown(), p.monitor.close())
	}
	if p.ports, err = writePorts(p.PortsFileDir, p.listeners(&p.Config)); err != nil {
		return errors.Join(err, p.host.Shutdown(), p.monitor.close())
	}
	p.log.Info("Server is ready")
	return nil
}

// listeners are where the server listens.
func (p *process) listeners(c *config.Config) listeners {
	return listeners{
		client: p.host.Addr(), monitoring: p.monitor.addr(), cluster: p.host.ClusterAddr(), web: p.host.WebAddr(),
		clientTLS: protection(c).Required, clusterTLS: c.Cluster.TLS != nil, webTLS: c.WebSocket.TLS != nil,
	}
}

// recoverMax is how long a start waits for streams before it lets clients in without them; health says which. A part of
// a cluster waits less: it may be the others that are missing, and clients may want to know that.
const (
	recoverMax        = 10 * time.Minute
	recoverClusterMax = 2 * time.Second
)

// recoverPoll is how often a start looks whether all streams are served.
const recoverPoll = time.Millisecond

// errInterrupted is the end of a start that a signal ended.
var errInterrupted = errors.New("interrupted while starting")

// recover waits until all streams are served.
func (p *process) recover(caught <-chan os.Signal) error {
	most := recoverMax
	if p.Cluster.Port != 0 {
		most = recoverClusterMax
	}
	limit := time.After(most)
	poll := time.NewTicker(recoverPoll)
	defer poll.Stop()
	for {
		ready := false
		p.host.View(func(e *engine.Engine, _ event.Time) { ready = e.Ready() })
		if ready {
			return nil
		}
		select {
		case <-poll.C:
		case <-limit:
			p.log.Warn(fmt.Sprintf("Not all streams are served after %v; clients are let in", most))
			return nil
		case s := <-caught:
			if s == syscall.SIGINT || s == syscall.SIGTERM {
				p.log.Info(fmt.Sprintf("Trapped %q signal", s))
				return errInterrupted
			}
		}
	}
}

// options are what the host runs with.
func (p *process) options() (host.Options, error) {
	c, err := nodeConfig(p.settings, p.self)
	if err != nil {
		return host.Options{}, err
	}
	o := host.Options{
		Node:          c,
		Listen:        net.JoinHostPort(p.Host, strconv.Itoa(max(p.Port, 0))),
		Guard:         p.guard,
		WriteDeadline: time.Duration(p.WriteDeadlineNanos),
		SyncInterval:  time.Duration(p.JetStream.SyncIntervalNanos),
		Log:           p.log,
		TraceBytes:    max(p.MaxTracedBytes, 0),
	}
	if o.Web, err = hostWeb(p.settings); err != nil {
		return o, err
	}
	if o.Cluster, err = hostCluster(&p.Config); err != nil {
		return o, err
	}
	if !p.JetStream.Enabled {
		return o, nil
	}
	dir, _ := storeDir(&p.JetStream)
	base, name := filepath.Split(dir)
	if err := os.MkdirAll(base, 0o755); err != nil {
		return o, fmt.Errorf("could not create storage directory - %w", err)
	}
	o.Node.Dir = name
	o.Disk, err = osfs.New(base)
	return o, err
}

// newIdentity draws what distinguishes this process from all others.
func newIdentity() (identity, error) {
	pair, err := nkeys.CreateServer()
	if err != nil {
		return identity{}, err
	}
	id, err := pair.PublicKey()
	if err != nil {
		return identity{}, err
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return identity{}, err
	}
	server, err := randomID()
	if err != nil {
		return identity{}, err
	}
	return identity{server: server, id: id, seed: binary.LittleEndian.Uint64(random[:8]), boot: binary.LittleEndian.Uint64(random[8:])}, nil
}

// profiles are the modes of the --profile flag.
var profiles = map[string]func(*profile.Profile){
	"cpu": profile.CPUProfile, "mem": profile.MemProfile, "heap": profile.MemProfileHeap, "allocs": profile.MemProfileAllocs,
	"block": profile.BlockProfile, "mutex": profile.MutexProfile, "goroutine": profile.GoroutineProfile,
	"trace": profile.TraceProfile, "clock": profile.ClockProfile, "thread": profile.ThreadcreationProfile,
}

// startProfile returns what ends and writes the profile.
func startProfile(f *flags) (func(), error) {
	if f.profile == "" {
		return func() {}, nil
	}
	mode, known := profiles[f.profile]
	if !known {
		return nil, fmt.Errorf("--profile %s: this version writes profiles to files; modes are cpu, mem, heap, allocs, block, mutex, "+
			"goroutine, trace, clock and thread", f.profile)
	}
	if err := os.MkdirAll(f.profileDir, 0o755); err != nil {
		return nil, err
	}
	return profile.Start(mode, profile.ProfilePath(f.profileDir), profile.NoShutdownHook, profile.Quiet).Stop, nil
}
