// Package config is what an operator can set about a server: the options, their defaults, how they are read from a parsed
// configuration file, and how they must agree.
//
// It promises that no option is ignored: whatever a file holds is taken, or reported as unknown or as not supported by
// this version, with its place in the file. It reads no files, no environment and no command line; the caller parses the
// file's grammar and hands over the tree.
package config

import (
	"math"
	"time"
)

// Dynamic stands for a limit that the edge derives from the machine, and for "no limit" where the option says so.
const Dynamic = -1

// The defaults of options, and limits on them.
const (
	DefaultPort                = 4222
	DefaultHost                = "0.0.0.0"
	DefaultMaxControlLineBytes = 4096
	DefaultMaxPayloadBytes     = 1 << 20
	DefaultMaxPendingBytes     = 64 << 20
	DefaultMaxConnections      = 64 << 10
	DefaultPingMax             = 2
	DefaultMaxClosedClients    = 10_000
	DefaultMaxConsumers        = 1_000
	DefaultSystemAccount       = "$SYS"
	DefaultTLSTimeoutNanos     = int64(2 * time.Second)
	DefaultAuthTimeoutNanos    = int64(2 * time.Second)

	// LargePayloadBytes is the payload limit from which on a server warns.
	LargePayloadBytes = 8 << 20
	// LameDuckDurationMinNanos is the shortest time over which a server may send its clients away.
	LameDuckDurationMinNanos = int64(30 * time.Second)
	// PortMax is the highest port.
	PortMax = math.MaxUint16
)

// Config is everything that can be set. Times are nanoseconds, sizes are bytes.
type Config struct {
	// Host and Port are where clients connect; port -1 takes any free one.
	Host string
	Port int
	// ServerName is the name of the server; "" takes its id.
	ServerName string
	// ClientAdvertise is the address, host or host:port, that clients are told instead of the listening one.
	ClientAdvertise string
	// ServerTags and ServerMetadata are shown in monitoring.
	ServerTags     []string
	ServerMetadata map[string]string

	// HTTPHost and HTTPPort are where monitoring listens; port 0 turns it off, -1 takes any free one. An empty host
	// means Host.
	HTTPHost string
	HTTPPort int
	// HTTPBasePath precedes all paths of monitoring.
	HTTPBasePath string

	// Debug and Trace show more log lines; TraceVerbose also traces the system account, TraceHeaders cuts traced messages
	// after their headers.
	Debug, Trace, TraceVerbose, TraceHeaders bool
	// LogTime puts the time into log lines, LogTimeUTC in UTC.
	LogTime, LogTimeUTC bool
	// LogFile is where log lines go; "" is standard error. It is rotated at LogSizeLimitBytes, when that is not 0, and
	// LogFilesMax rotated files are kept, 0 keeps all.
	LogFile           string
	LogSizeLimitBytes int64
	LogFilesMax       int
	// MaxTracedBytes cuts traced messages; 0 does not.
	MaxTracedBytes int
	// PidFile receives the process id, and a file in PortsFileDir the addresses that the server listens on.
	PidFile      string
	PortsFileDir string

	// MaxControlLineBytes bounds a line of the protocol, MaxPayloadBytes header and body of a message, and
	// MaxPendingBytes what is queued for one client.
	MaxControlLineBytes int
	MaxPayloadBytes     int
	MaxPendingBytes     int64
	// MaxConnections bounds the clients; 0 or less refuses all of them.
	MaxConnections int
	// MaxSubscriptions bounds the subscriptions of a client; 0 does not.
	MaxSubscriptions int
	// MaxClosedClients is how many closed connections monitoring remembers.
	MaxClosedClients int
	// PingIntervalNanos is the time between pings to an idle client; after PingMax without an answer it is closed.
	PingIntervalNanos int64
	PingMax           int
	// WriteDeadlineNanos bounds a write to a client.
	WriteDeadlineNanos int64
	// LameDuckDurationNanos is the time over which clients are sent away, after LameDuckGraceNanos.
	LameDuckDurationNanos int64
	LameDuckGraceNanos    int64
	// NoHeaderSupport refuses messages with headers.
	NoHeaderSupport bool

	// TLS, when not nil, protects the connections of clients; AllowNonTLS leaves it to them.
	TLS         *TLS
	AllowNonTLS bool

	// Authorization is who may connect.
	Authorization Authorization
	// NoAuthUser is the user that a client without credentials becomes; "" is none.
	NoAuthUser string
	// Accounts are the accounts in the order of their names. Without any, all clients share the account "$G".
	Accounts []Account
	// SystemAccount is the name of the account that may ask about the server.
	SystemAccount string

	// Trust is about accounts that operators have signed.
	Trust Trust

	// JetStream is about persistence.
	JetStream JetStream
	// Cluster is about other servers.
	Cluster Cluster
	// WebSocket is about clients that connect by WebSocket.
	WebSocket WebSocket
}

// JetStream is the jetstream block.
type JetStream struct {
	// Enabled turns persistence on.
	Enabled bool
	// StoreDir is the directory given by the operator; the server keeps its data in a directory of its own below. ""
	// leaves the choice to the edge.
	StoreDir string
	// MaxMemoryBytes and MaxFileBytes bound what all streams hold; Dynamic leaves it to the edge.
	MaxMemoryBytes int64
	MaxFileBytes   int64
	// SyncIntervalNanos is how long acknowledged messages may stay without a sync; 0 acknowledges after the sync.
	SyncIntervalNanos int64
	// SyncAlways says that the file asks for what is the default, in so many words; it wins over SyncIntervalNanos.
	SyncAlways bool
	// Strict refuses unknown fields in API requests.
	Strict bool
	// Domain is the name under which clients of other systems reach these streams; "" is none.
	Domain string
	// ReadLease lets leaders answer reads for a while without asking the others again; see node/replica/lease.go for what it
	// trusts.
	ReadLease bool
	// UniqueTag is a prefix of the server tags by which replicas are kept apart.
	UniqueTag string
	// Limits bound what clients may ask for.
	Limits JetStreamLimits
}

// JetStreamLimits is the limits block of JetStream. 0 means that nothing was set.
type JetStreamLimits struct {
	// MaxAckPending bounds what a consumer may ask for.
	MaxAckPending int64
	// MaxRequestBatch bounds the batch of a pull request.
	MaxRequestBatch int64
	// MaxConsumers is the limit of streams that set none; -1 does not limit them.
	MaxConsumers int64
	// DuplicateWindowNanos bounds the dedup window of a stream.
	DuplicateWindowNanos int64
}

// Authorization is the authorization block, and what the flags say of it.
type Authorization struct {
	// User and Password are the one pair that may connect.
	User, Password string
	// Token is the one token that may connect.
	Token string
	// Users are those who may connect, all of them in account "$G".
	Users []User
	// Permissions are those of User, and of Users that have none of their own; nil permits everything.
	Permissions *Permissions
	// TimeoutNanos is how long a client has to authenticate; 0 leaves it to Complete.
	TimeoutNanos int64
}

// User is one user of a list.
type User struct {
	// Name and Password are what a client sends; a password that starts with "$2" is a bcrypt hash.
	Name, Password string
	// Permissions are nil when the default permissions count.
	Permissions *Permissions
	// ConnectionTypes are the ways in which the user may connect, in capitals; empty means all.
	ConnectionTypes []string
	// Nkey says that Name is the public key of the user, who signs instead of sending a password.
	Nkey bool
}

// Permissions say which subjects a user may use.
type Permissions struct {
	// Publish and Subscribe are rules on subjects; those of Subscribe may be "subject queue".
	Publish, Subscribe Rule
	// Responses, when not nil, lets a user publish to the reply subject of what it received.
	Responses *Responses
}

// Rule allows and denies subjects.
type Rule struct {
	// Allow are the patterns that are allowed; nil allows everything, an empty list nothing.
	Allow []string
	// Deny are the patterns that are denied although they are allowed.
	Deny []string
}

// Responses bounds the use of reply subjects.
type Responses struct {
	// Max is how many messages may be sent to one reply subject; -1 does not limit them.
	Max int
	// ExpiresNanos is how long a reply subject may be used; 0 is for ever.
	ExpiresNanos int64
}

// Account is one account of the accounts block.
type Account struct {
	// Name is the name.
	Name string
	// Users are the users bound to it.
	Users []User
	// JetStream is nil when the account has no persistence.
	JetStream *AccountJetStream
	// Limits bound the clients of the account; nil does not.
	Limits *AccountLimits
}

// AccountLimits bound the clients of an account; negative ones do not.
type AccountLimits struct {
	// MaxConnections is how many there may be on one server.
	MaxConnections int64
	// MaxSubscriptions and MaxPayloadBytes bound each of them.
	MaxSubscriptions, MaxPayloadBytes int64
}

// AccountJetStream is what an account may store; -1 does not limit it.
type AccountJetStream struct {
	MaxMemoryBytes, MaxFileBytes int64
	MaxStreams, MaxConsumers     int64
	// MaxAckPending bounds what a consumer may ask for.
	MaxAckPending int64
	// MemoryMaxStreamBytes and FileMaxStreamBytes bound max_bytes of a stream.
	MemoryMaxStreamBytes, FileMaxStreamBytes int64
	// MaxBytesRequired refuses streams that do not set max_bytes.
	MaxBytesRequired bool
}

// Unlimited is the persistence of an account that sets no limits.
func Unlimited() AccountJetStream {
	return AccountJetStream{
		MaxMemoryBytes: -1, MaxFileBytes: -1, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1,
		MemoryMaxStreamBytes: -1, FileMaxStreamBytes: -1,
	}
}

// Default returns what holds where nothing is set.
func Default() Config {
	return Config{
		Host:                  DefaultHost,
		Port:                  DefaultPort,
		LogTime:               true,
		MaxControlLineBytes:   DefaultMaxControlLineBytes,
		MaxPayloadBytes:       DefaultMaxPayloadBytes,
		MaxPendingBytes:       DefaultMaxPendingBytes,
		MaxConnections:        DefaultMaxConnections,
		MaxClosedClients:      DefaultMaxClosedClients,
		PingIntervalNanos:     int64(2 * time.Minute),
		PingMax:               DefaultPingMax,
		WriteDeadlineNanos:    int64(10 * time.Second),
		LameDuckDurationNanos: int64(2 * time.Minute),
		LameDuckGraceNanos:    int64(10 * time.Second),
		SystemAccount:         DefaultSystemAccount,
		Cluster:               Cluster{TimeoutNanos: int64(2 * time.Second)},
		WebSocket:             WebSocket{HandshakeTimeoutNanos: DefaultHandshakeTimeoutNanos},
		JetStream: JetStream{
			MaxMemoryBytes: Dynamic,
			MaxFileBytes:   Dynamic,
			Strict:         true,
			Limits:         JetStreamLimits{MaxConsumers: DefaultMaxConsumers},
		},
	}
}
