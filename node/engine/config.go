package engine

import (
	"weir/disk/wal"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/model/stream"
	"weir/node/auth"
	"weir/node/event"
	"weir/node/replica"
	"weir/node/session"
	"weir/transport/wire"
)

// Config is the configuration of an engine. It changes only by reloads.
type Config struct {
	// ServerID is the id that clients see, new at each start; ServerName is the configured name or the id.
	ServerID, ServerName string
	// Host and Port are what INFO tells clients to connect to.
	Host string
	Port int
	// AdvertiseHost and AdvertisePort, when they are set, stand for Host and for Port in INFO.
	AdvertiseHost string
	AdvertisePort int
	// GoVersion is shown in INFO.
	GoVersion string
	// Auth decides who may connect.
	Auth *auth.Authenticator
	// Protection is what INFO says about TLS; the edge provides it.
	Protection event.Protection
	// WebSockets is what clients that connect by WebSocket are told.
	WebSockets event.Door
	// Accounts are the accounts; empty: all clients share one, "$G". SystemAccount is the name of the system account;
	// empty means "$SYS".
	Accounts      []Account
	SystemAccount string
	// Limits bound what clients may do.
	Limits Limits
	// JetStream configures streams.
	JetStream JetStream
	// Seed feeds the engine's choices (queue group members, names of ephemeral consumers, message ids of advisories).
	Seed uint64
	// Boot distinguishes this run of the process from all earlier ones of the same data directory.
	Boot uint64
	// Observe, when it is not nil, is told of every applied entry: its group, its index, and how to compute the digest
	// of the group's state. It is for the simulator, which compares the states of one index.
	Observe func(group wal.GroupID, index uint64, digest func() uint64)
	// Reads, when it is not nil, is told of every read that a replica is asked for; what it returns is called when the read is
	// answered. It is for the simulator, which knows what was committed when.
	Reads func(r *replica.Replica) (answered func())
	// Roles, when it is not nil, is told when a replica here leads its group, or no longer, or knows another leader. It is
	// for the simulator.
	Roles func(r *replica.Replica)
	// Process completes what clients of the system account are told; nil leaves it at what the engine knows.
	Process Process
	// Server is the identity of the data directory; not 0 with JetStream.
	Server event.ServerID
	// Hidden, when it is not nil, is the damage that may have taken groups from what storage recovered: a group that the
	// catalog knows and that was not recovered is damaged then, not new. A server without a cluster can not start so.
	Hidden error
	// Cluster says which cluster the server is a part of; its zero value: none.
	Cluster Cluster
	// Pin, when it is not nil, decides how many ticks a replica waits before it campaigns: at least ElectionTicks and less
	// than twice that. It is for the simulator; production leaves it to Raft.
	Pin func(group wal.GroupID, term uint64, role uint8) int
	// Plant holds deliberate faults for the simulator; empty in production.
	Plant Plant
}

// Cluster says which cluster a server is a part of.
type Cluster struct {
	// Name is the name of the cluster; "" without one.
	Name string
	// Address is where other servers reach this one, "host:port".
	Address string
	// Expected is how many servers found the catalog of streams together, this one included.
	Expected int
	// ClientURLs are where clients reach this server, as others are to advertise it.
	ClientURLs []string
	// WebURLs are where clients reach this server by WebSocket.
	WebURLs []string
	// Tags are the server's tags, for placement.
	Tags []string
	// User and Password introduce this server to others.
	User, Password string
	// TickNanos is the time between two ticks of Raft; 0 means TickNanosDefault.
	TickNanos int64
	// ElectionTicks is how many ticks without a leader make a follower campaign; 0 means ElectionTicksDefault.
	ElectionTicks int
	// LogTailBytes bounds the entries that one group keeps in memory for followers that lag behind; 0 means
	// replica.LogTailBytesDefault.
	LogTailBytes int
}

// Defaults of Cluster.
const (
	TickNanosDefault     = int64(100e6)
	ElectionTicksDefault = 10
)

// Limits bound what clients may do. Numbers have to be set, unless they say otherwise.
type Limits struct {
	// ControlLineBytes and PayloadBytes bound one operation.
	ControlLineBytes, PayloadBytes int
	// PendingBytes bounds what waits to be written to one client.
	PendingBytes int
	// Connections bounds the clients; 0 refuses everybody.
	Connections int
	// Subscriptions bounds the subscriptions of one connection; 0: no bound.
	Subscriptions int
	// PingIntervalNanos is the time between two pings of an idle connection, PingsOut how many may be unanswered.
	PingIntervalNanos int64
	PingsOut          int
	// NoHeaders refuses messages with headers.
	NoHeaders bool
	// AuthTimeoutNanos is the time within which a client has to authenticate.
	AuthTimeoutNanos int64
}

// JetStream configures streams.
type JetStream struct {
	// Enabled switches streams on.
	Enabled bool
	// StoreDir is shown to operators; the files are reached through the node's disk.
	StoreDir string
	// Limits are the server's limits for streams and consumers.
	Limits jsapi.Limits
	// Strict refuses requests with unknown JSON fields.
	Strict bool
	// Domain is the name under which the API can be reached as well, "" for none: a subject token.
	Domain string
	// ReadLease lets leaders of groups with several members answer reads under a lease. All servers of a cluster have the
	// same setting.
	ReadLease bool
	// UniqueTag is the prefix of the server tag in which the servers of a stream have to differ, "" for no such rule.
	UniqueTag string
	// CacheBytes bounds the message bytes that are kept in memory for reading; 0 means CacheBytesDefault.
	CacheBytes int
	// CheckpointBytes is how many bytes of log a group gathers before it is checkpointed; 0 means
	// CheckpointBytesDefault.
	CheckpointBytes int
	// BlockBytes is the size of a message block; 0 means the default of disk/msgstore.
	BlockBytes int
	// SyncIntervalNanos is shown by monitoring; 0: every acknowledgement waits for the disk.
	SyncIntervalNanos int64
}

// Defaults of JetStream.
const (
	CacheBytesDefault      = 64 << 20
	CheckpointBytesDefault = 32 << 20
)

// Plant names deliberate faults, for checking that the simulator finds them.
type Plant struct {
	// Replica and Stream are passed on to every replica and stream.
	Replica replica.Plant
	Stream  stream.Plant
	// Catalog is passed on to the catalog.
	Catalog meta.Plant
	// EarlyExpect checks Nats-Expected-Last-Sequence against the applied state when a message arrives, and not again in
	// log order.
	EarlyExpect bool
	// DeliverEarly sends what a delivery will hand out when it is proposed, before its record is committed.
	DeliverEarly bool
	// KeepFailedID answers a message whose id was proposed here before as a duplicate, also when that proposal failed.
	KeepFailedID bool
	// OwnClock judges ticks by the clock of the server instead of the time in the log.
	OwnClock bool
	// CopyByName takes a stream that was created again for the one of the name before, when it is copied to a mirror.
	CopyByName bool
	// CopyCached leaves out of the answer to a mirror what has to be read from the disk, as if it were gone.
	CopyCached bool
	// ServeByOldCatalog serves streams before the catalog has been current once since the start.
	ServeByOldCatalog bool
	// DropByOldCatalog ends what the catalog does not name before it has been current once.
	DropByOldCatalog bool
	// EndForgotten ends a log without making durable what the catalog says about that.
	EndForgotten bool
	// LeaseOutlives answers a deletion without waiting for the end of leases.
	LeaseOutlives bool
	// DeskKeepsLead goes on to serve the consumers of a stream that another server leads.
	DeskKeepsLead bool
	// FoundLost founds a catalog where one was lost.
	FoundLost bool
	// InviteUnasked has a server give up its damaged catalog, or replica, on the word of a leader that may be alone.
	InviteUnasked bool
	// DamageIsEnd takes a damaged message for one that is not there.
	DamageIsEnd bool
}

// clients is what the sessions of the server share.
func (c *Config) clients() session.Config {
	host, port := c.Host, c.Port
	if c.AdvertiseHost != "" {
		host = c.AdvertiseHost
	}
	if c.AdvertisePort != 0 {
		port = c.AdvertisePort
	}
	return session.Config{
		Info: wire.Info{
			ServerID: c.ServerID, ServerName: c.ServerName, Version: jsapi.Version, Proto: 1, GoVersion: c.GoVersion,
			Host: host, Port: port, Headers: !c.Limits.NoHeaders, JetStream: c.JetStream.Enabled, Domain: c.JetStream.Domain,
			APILevel: jsapi.APILevel, Cluster: c.Cluster.Name,
			TLSRequired: c.Protection.Required, TLSAvailable: c.Protection.Available, TLSVerify: c.Protection.Verify,
		},
		Auth:               c.Auth,
		Limits:             wire.Limits{ControlLineBytes: c.Limits.ControlLineBytes, PayloadBytes: c.Limits.PayloadBytes},
		PendingBytesMax:    c.Limits.PendingBytes,
		SubscriptionsMax:   c.Limits.Subscriptions,
		AuthTimeoutNanos:   c.Limits.AuthTimeoutNanos,
		PingIntervalNanos:  c.Limits.PingIntervalNanos,
		PingOutstandingMax: c.Limits.PingsOut,
		SystemAccount:      c.SystemAccount,
		WebSockets:         c.WebSockets,
	}
}
