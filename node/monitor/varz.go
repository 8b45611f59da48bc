package monitor

import (
	"encoding/json"

	"weir/model/jsapi"
)

// empty is a block for something that this server does not have.
type empty struct{}

// kinds counts events by the kind of connection.
type kinds struct {
	Clients  uint64 `json:"clients"`
	Routes   uint64 `json:"routes"`
	Gateways uint64 `json:"gateways"`
	Leafs    uint64 `json:"leafs"`
}

// ioWaits counts waits for a turn to use the disk. Nothing waits here: one worker does all writes, in order.
type ioWaits struct {
	Waiters  int   `json:"waiters"`
	Waits    int   `json:"waits"`
	WaitTime int64 `json:"wait_time"`
	MaxWait  int64 `json:"max_wait_time"`
}

// varz is the document of /varz. The order of the fields is that of the document.
type varz struct {
	ServerID         string            `json:"server_id"`
	ServerName       string            `json:"server_name"`
	Version          string            `json:"version"`
	Proto            int               `json:"proto"`
	GitCommit        string            `json:"git_commit,omitempty"`
	Go               string            `json:"go"`
	Host             string            `json:"host"`
	Port             int               `json:"port"`
	AuthRequired     bool              `json:"auth_required,omitempty"`
	TLSRequired      bool              `json:"tls_required,omitempty"`
	TLSVerify        bool              `json:"tls_verify,omitempty"`
	ConnectURLs      []string          `json:"connect_urls,omitempty"`
	WebURLs          []string          `json:"ws_connect_urls,omitempty"`
	MaxConnections   int               `json:"max_connections"`
	MaxSubscriptions int               `json:"max_subscriptions,omitempty"`
	PingInterval     int64             `json:"ping_interval"`
	PingMax          int               `json:"ping_max"`
	HTTPHost         string            `json:"http_host"`
	HTTPPort         int               `json:"http_port"`
	HTTPBasePath     string            `json:"http_base_path"`
	HTTPSPort        int               `json:"https_port"`
	AuthTimeout      json.Number       `json:"auth_timeout"`
	MaxControlLine   int               `json:"max_control_line"`
	MaxPayload       int               `json:"max_payload"`
	MaxPending       int64             `json:"max_pending"`
	Cluster          varzCluster       `json:"cluster"`
	Gateway          empty             `json:"gateway"`
	Leaf             empty             `json:"leaf"`
	MQTT             empty             `json:"mqtt"`
	WebSocket        WebSocket         `json:"websocket"`
	JetStream        varzJetStream     `json:"jetstream"`
	TLSTimeout       json.Number       `json:"tls_timeout"`
	WriteDeadline    int64             `json:"write_deadline"`
	Start            jsapi.Time        `json:"start"`
	Now              jsapi.Time        `json:"now"`
	Uptime           string            `json:"uptime"`
	Mem              int64             `json:"mem"`
	Cores            int               `json:"cores"`
	MaxProcs         int               `json:"gomaxprocs"`
	CPU              float64           `json:"cpu"`
	Connections      int               `json:"connections"`
	TotalConnections uint64            `json:"total_connections"`
	Routes           int               `json:"routes"`
	Remotes          int               `json:"remotes"`
	Leafnodes        int               `json:"leafnodes"`
	InMsgs           uint64            `json:"in_msgs"`
	InBytes          uint64            `json:"in_bytes"`
	InClientMsgs     uint64            `json:"in_client_msgs"`
	InClientBytes    uint64            `json:"in_client_bytes"`
	OutMsgs          uint64            `json:"out_msgs"`
	OutBytes         uint64            `json:"out_bytes"`
	OutClientMsgs    uint64            `json:"out_client_msgs"`
	OutClientBytes   uint64            `json:"out_client_bytes"`
	SlowConsumers    uint64            `json:"slow_consumers"`
	StaleConnections uint64            `json:"stale_connections"`
	StalledClients   uint64            `json:"stalled_clients"`
	Subscriptions    int               `json:"subscriptions"`
	Requests         map[string]uint64 `json:"http_req_stats"`
	ConfigLoadTime   jsapi.Time        `json:"config_load_time"`
	ConfigDigest     string            `json:"config_digest"`
	Tags             []string          `json:"tags,omitempty"`
	Metadata         map[string]string `json:"metadata,omitempty"`
	SystemAccount    string            `json:"system_account,omitempty"`
	SlowStats        kinds             `json:"slow_consumer_stats"`
	StaleStats       kinds             `json:"stale_connection_stats"`
	IOWaits          ioWaits           `json:"disk_io_wait_stats"`
	CertificateEnd   *jsapi.Time       `json:"tls_cert_not_after,omitempty"`
}

type varzJetStream struct {
	Config *jetStreamConfig `json:"config,omitempty"`
	Stats  *jetStreamStats  `json:"stats,omitempty"`
	Meta   *metaCluster     `json:"meta,omitempty"`
	Limits *JetStreamLimits `json:"limits,omitempty"`
}

// jetStreamConfig is shown by varz and jsz.
type jetStreamConfig struct {
	MaxMemory    int64  `json:"max_memory"`
	MaxStorage   int64  `json:"max_storage"`
	StoreDir     string `json:"store_dir,omitempty"`
	SyncInterval int64  `json:"sync_interval,omitempty"`
	SyncAlways   bool   `json:"sync_always,omitempty"`
	Domain       string `json:"domain,omitempty"`
	UniqueTag    string `json:"unique_tag,omitempty"`
	Strict       bool   `json:"strict,omitempty"`
}

// jetStreamStats is shown by varz, jsz, and for each account.
type jetStreamStats struct {
	Memory          uint64   `json:"memory"`
	Storage         uint64   `json:"storage"`
	ReservedMemory  uint64   `json:"reserved_memory"`
	ReservedStorage uint64   `json:"reserved_storage"`
	Accounts        int      `json:"accounts"`
	HAAssets        int      `json:"ha_assets"`
	API             apiStats `json:"api"`
}

type apiStats struct {
	Level    int    `json:"level"`
	Total    uint64 `json:"total"`
	Errors   uint64 `json:"errors"`
	Inflight uint64 `json:"inflight,omitempty"`
}

// defaultSyncNanos is the interval that is shown where it does not matter, as the default of the reference server.
const defaultSyncNanos = 120e9

func (j *JetStream) config() *jetStreamConfig {
	c := &jetStreamConfig{
		MaxMemory:    j.MaxMemory,
		MaxStorage:   j.MaxStorage,
		StoreDir:     j.StoreDir,
		SyncInterval: j.SyncIntervalNanos,
		SyncAlways:   j.SyncIntervalNanos == 0,
		Domain:       j.Domain,
		UniqueTag:    j.UniqueTag,
		Strict:       j.Strict,
	}
	if c.SyncAlways {
		c.SyncInterval = defaultSyncNanos
	}
	return c
}

func (j *JetStream) stats() jetStreamStats {
	return jetStreamStats{
		Memory:          j.Memory,
		Storage:         j.Storage,
		ReservedMemory:  j.ReservedMemory,
		ReservedStorage: j.ReservedStorage,
		Accounts:        len(j.Accounts),
		HAAssets:        j.HAAssets,
		API:             apiStats{Level: j.APILevel, Total: j.APITotal, Errors: j.APIErrors, Inflight: j.APIInflight},
	}
}

func (r *request) varz() *varz {
	s, n := r.source.Server(), r.source.Snapshot(Want{})
	v := &varz{
		ServerID: s.ID, ServerName: s.Name, Version: s.Version, Proto: 1, GitCommit: s.GitCommit, Go: s.GoVersion,
		Host: s.Host, Port: s.Port, AuthRequired: s.AuthRequired, ConnectURLs: n.connectURLs(), WebURLs: n.webURLs(), WebSocket: s.WebSocket,
		MaxConnections: s.MaxConnections, MaxSubscriptions: s.MaxSubscriptions, PingInterval: s.PingIntervalNanos, PingMax: s.PingMax,
		HTTPHost: s.HTTPHost, HTTPPort: s.HTTPPort, HTTPBasePath: s.HTTPBasePath,
		AuthTimeout: Seconds(s.AuthTimeoutNanos), MaxControlLine: s.MaxControlLine, MaxPayload: s.MaxPayload, MaxPending: s.MaxPending,
		TLSRequired: s.TLSRequired, TLSVerify: s.TLSVerify, TLSTimeout: Seconds(s.TLSTimeoutNanos), WriteDeadline: s.WriteDeadlineNanos,
		Start: jsapi.Time(s.StartNanos), Now: jsapi.Time(n.NowNanos), Uptime: uptime(n.NowNanos - s.StartNanos),
		Mem: s.MemoryBytes, Cores: s.Cores, MaxProcs: s.MaxProcs, CPU: s.CPU,
		Connections: n.Traffic.OpenConnections, TotalConnections: n.Traffic.TotalConnections,
		InMsgs: n.Traffic.InMsgs, InBytes: n.Traffic.InBytes, InClientMsgs: n.Traffic.InMsgs, InClientBytes: n.Traffic.InBytes,
		OutMsgs: n.Traffic.OutMsgs, OutBytes: n.Traffic.OutBytes, OutClientMsgs: n.Traffic.OutMsgs, OutClientBytes: n.Traffic.OutBytes,
		SlowConsumers: n.Traffic.SlowConsumers, StaleConnections: n.Traffic.StaleConnections,
		Subscriptions: n.Subscriptions.Count, Requests: s.Requests,
		ConfigLoadTime: jsapi.Time(s.ConfigNanos), ConfigDigest: s.ConfigDigest, Tags: s.Tags, Metadata: s.Metadata,
		SystemAccount: s.SystemAccount, Cluster: s.Cluster.varz(), Routes: len(s.Routes), Remotes: s.remotes(),
		SlowStats: kinds{Clients: n.Traffic.SlowConsumers}, StaleStats: kinds{Clients: n.Traffic.StaleConnections},
	}
	if s.CertificateEndNanos != 0 {
		end := jsapi.Time(s.CertificateEndNanos)
		v.CertificateEnd = &end
	}
	if j := n.JetStream; j != nil {
		stats, limits := j.stats(), j.Limits
		v.JetStream = varzJetStream{Config: j.config(), Stats: &stats, Meta: n.meta(), Limits: &limits}
	}
	return v
}
