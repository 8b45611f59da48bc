package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/model/jsapi"
	"weir/node/config"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/host"
	"weir/node/monitor"
)

// headerMax is how long a client of the monitoring port may take to send its request.
const headerMax = 5 * time.Second

// monitoring serves the monitoring port. It answers before the host is attached, with what is known then.
type monitoring struct {
	process  *process
	listener net.Listener
	server   *http.Server

	mu       sync.Mutex
	host     *host.Host
	requests map[string]uint64
	cpu      usage
}

// startMonitoring listens when the configuration asks for it; otherwise the result answers nobody.
func startMonitoring(p *process) (*monitoring, error) {
	m := &monitoring{process: p, requests: map[string]uint64{}}
	if p.HTTPPort == 0 {
		return m, nil
	}
	address := p.HTTPHost
	if address == "" {
		address = p.Host
	}
	var err error
	if m.listener, err = net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(max(p.HTTPPort, 0)))); err != nil {
		return nil, fmt.Errorf("listen for monitoring: %w", err)
	}
	p.log.Info("Starting http monitor on " + listening(address, m.listener.Addr()))
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: headerMax, ErrorLog: slog.NewLogLogger(p.sink, slog.LevelWarn)}
	go func() {
		if err := m.server.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error("Monitoring port: " + err.Error())
		}
	}()
	return m, nil
}

func (m *monitoring) attach(h *host.Host) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.host = h
}

// addr is where it listens, nil when it does not.
func (m *monitoring) addr() net.Addr {
	if m.listener == nil {
		return nil
	}
	return m.listener.Addr()
}

func (m *monitoring) close() error {
	if m.server == nil {
		return nil
	}
	return m.server.Close()
}

// ServeHTTP answers any method, as the reference server does.
func (m *monitoring) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, m.process.HTTPBasePath)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if path == "" {
		path = "/"
	}
	m.count(path)
	a := monitor.Handle(path, r.URL.Query(), m)
	w.Header().Set("Content-Type", a.ContentType)
	if a.ContentType == "application/json" {
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}
	w.WriteHeader(a.Status)
	// A client that went away meanwhile misses nothing.
	_, _ = w.Write(a.Body)
}

// count notes a request for one of the known paths.
func (m *monitoring) count(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, known := range monitor.Paths() {
		if path == known {
			m.requests[path]++
		}
	}
}

// Server implements monitor.Source.
func (m *monitoring) Server() monitor.Server {
	p := m.process
	c := p.current.Load()
	m.mu.Lock()
	requests, cpu := maps.Clone(m.requests), m.cpu.percent()
	m.mu.Unlock()
	s := monitor.Server{
		ID: p.self.id, Name: c.ServerName, Version: jsapi.Version, GoVersion: runtime.Version(), GitCommit: commit(),
		Host: c.Host, Port: c.Port, HTTPHost: c.HTTPHost, HTTPPort: c.HTTPPort, HTTPBasePath: c.HTTPBasePath,
		AuthRequired: authRequired(c), MaxConnections: c.MaxConnections, MaxSubscriptions: c.MaxSubscriptions, PingMax: c.PingMax,
		MaxControlLine: c.MaxControlLineBytes, MaxPayload: c.MaxPayloadBytes, MaxPending: c.MaxPendingBytes,
		PingIntervalNanos: c.PingIntervalNanos, AuthTimeoutNanos: c.Authorization.TimeoutNanos,
		WriteDeadlineNanos: c.WriteDeadlineNanos, StartNanos: p.started.UnixNano(), ConfigNanos: c.loaded.UnixNano(),
		ConfigDigest: c.digest, Tags: c.ServerTags, Metadata: c.ServerMetadata, SystemAccount: c.SystemAccount,
		MemoryBytes: residentBytes(), Cores: runtime.NumCPU(), MaxProcs: runtime.GOMAXPROCS(0), CPU: cpu, Requests: requests,
		TLSTimeoutNanos: config.DefaultTLSTimeoutNanos, CertificateEndNanos: certificateEnd(c.guard),
	}
	s.WebSocket = shownWeb(c, m.attached())
	shown := protection(&c.Config)
	s.TLSRequired, s.TLSVerify = shown.Required, shown.Verify
	if c.TLS != nil {
		s.TLSTimeoutNanos = c.TLS.TimeoutNanos
	}
	if s.Name == "" {
		s.Name = s.ID
	}
	if s.HTTPHost == "" {
		s.HTTPHost = p.Host
	}
	if a, ok := m.addr().(*net.TCPAddr); ok {
		s.HTTPPort = a.Port
	}
	if h := m.attached(); h != nil {
		if a, ok := h.Addr().(*net.TCPAddr); ok {
			s.Port = a.Port
		}
		s.Cluster, s.Routes = clusterOptions(&p.Config, h.ClusterAddr()), h.Routes()
	}
	return s
}

func authRequired(s *settings) bool {
	a := authConfig(s)
	return a.Trust != nil || len(a.Users) > 0 || a.Token != ""
}

func (m *monitoring) attached() *host.Host {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.host
}

// Snapshot implements monitor.Source. Before the host is attached, streams are being recovered.
func (m *monitoring) Snapshot(want monitor.Want) monitor.Snapshot {
	h := m.attached()
	if h == nil {
		s := monitor.Snapshot{NowNanos: time.Now().UnixNano()}
		if m.process.JetStream.Enabled {
			s.JetStream = &monitor.JetStream{Recovering: 1}
		}
		return s
	}
	var s monitor.Snapshot
	h.View(func(e *engine.Engine, now event.Time) {
		s = e.Snapshot(now, want)
		newest := s.Closed[max(0, len(s.Closed)-m.process.MaxClosedClients):]
		s.Closed = slices.Clone(newest) // the engine goes on writing to its own
	})
	m.Complete(&s)
	return s
}

// Complete implements engine.Process.
func (m *monitoring) Complete(s *monitor.Snapshot) {
	j := s.JetStream
	if j == nil {
		return
	}
	j.MaxMemory, j.MaxStorage = m.process.JetStream.MaxMemoryBytes, m.process.JetStream.MaxFileBytes
	j.UniqueTag = m.process.JetStream.UniqueTag
	limits := m.process.JetStream.Limits
	j.Limits = monitor.JetStreamLimits{
		MaxRequestBatch: int(limits.MaxRequestBatch), MaxAckPending: int(limits.MaxAckPending),
		MaxDuplicateWindow: limits.DuplicateWindowNanos, DefaultMaxConsumers: int(limits.MaxConsumers),
	}
}

// usage measures the processor time of this process between two looks.
type usage struct {
	at   time.Time
	used time.Duration
	last float64
}

// usageEach is the shortest time over which a share is computed.
const usageEach = time.Second

// percent is the share of one processor that was used since the last look.
func (u *usage) percent() float64 {
	now := time.Now()
	if !u.at.IsZero() && now.Sub(u.at) < usageEach {
		return u.last
	}
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return u.last
	}
	used := time.Duration(r.Utime.Nano() + r.Stime.Nano())
	if !u.at.IsZero() {
		share := float64(used-u.used) / float64(now.Sub(u.at))
		u.last = float64(int(share*1000)) / 10
	}
	u.at, u.used = now, used
	return u.last
}
