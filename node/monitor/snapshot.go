// Package monitor turns a snapshot of a server into the answers of its monitoring port: the paths, queries, JSON
// documents and error texts that dashboards and health probes of the reference server know.
//
// It promises that equal snapshots give equal bytes. It is pure: the edge serves HTTP, takes the snapshot and counts
// requests; this package neither listens nor looks at a running engine.
package monitor

import (
	"encoding/json"

	"weir/model/jsapi"
)

// Want says which parts of a snapshot a request needs, so that nobody collects what is not shown.
type Want struct {
	// Connections and Closed ask for open and for remembered closed connections.
	Connections, Closed bool
	// Subscriptions asks for the subscriptions of each connection.
	Subscriptions bool
	// Streams and Consumers ask for a list of each account's streams, and of each stream's consumers.
	Streams, Consumers bool
}

// Server is what is fixed while a server runs, and what only the edge knows. Times are unix nanoseconds or durations in
// nanoseconds, sizes are bytes.
type Server struct {
	// ID, Name and Version are those of INFO; GoVersion and GitCommit describe the build.
	ID, Name, Version, GoVersion, GitCommit string
	// Host and Port are where clients connect, HTTPHost and HTTPPort where monitoring listens.
	Host     string
	Port     int
	HTTPHost string
	HTTPPort int
	// HTTPBasePath precedes the paths of monitoring.
	HTTPBasePath string
	// AuthRequired says that clients need credentials.
	AuthRequired bool
	// TLSRequired says that clients have to begin TLS, TLSVerify that they have to show a certificate. TLSTimeoutNanos
	// bounds a handshake, and CertificateEndNanos is when the server's own certificate expires, 0 without one.
	TLSRequired, TLSVerify               bool
	TLSTimeoutNanos, CertificateEndNanos int64
	// The limits of the server, as in package config.
	MaxConnections, MaxSubscriptions, PingMax, MaxControlLine, MaxPayload int
	MaxPending, PingIntervalNanos, AuthTimeoutNanos, WriteDeadlineNanos   int64
	// StartNanos is when the server started, and ConfigNanos when its configuration was read.
	StartNanos, ConfigNanos int64
	// ConfigDigest is the digest of the configuration file, "" without one.
	ConfigDigest string
	// Tags and Metadata were set by the operator.
	Tags     []string
	Metadata map[string]string
	// SystemAccount is the name of the system account.
	SystemAccount string
	// MemoryBytes, Cores and MaxProcs describe the process. CPU is the share of one processor it uses, in percent.
	MemoryBytes     int64
	Cores, MaxProcs int
	CPU             float64
	// Cluster is what the configuration says of the cluster, Routes are the connections with its other servers.
	Cluster ClusterOptions
	Routes  []Route
	// WebSocket is what the configuration says of WebSockets.
	WebSocket WebSocket
	// Requests counts requests by path.
	Requests map[string]uint64
}

// WebSocket is what varz shows of the configuration of WebSockets. Its zero value means that there are none.
type WebSocket struct {
	Host             string      `json:"host,omitempty"`
	Port             int         `json:"port,omitempty"`
	Advertise        string      `json:"advertise,omitempty"`
	NoAuthUser       string      `json:"no_auth_user,omitempty"`
	JWTCookie        string      `json:"jwt_cookie,omitempty"`
	HandshakeTimeout int64       `json:"handshake_timeout,omitempty"`
	AuthTimeout      json.Number `json:"auth_timeout,omitempty"`
	NoTLS            bool        `json:"no_tls,omitempty"`
	TLSMap           bool        `json:"tls_map,omitempty"`
	SameOrigin       bool        `json:"same_origin,omitempty"`
	AllowedOrigins   []string    `json:"allowed_origins,omitempty"`
	Compression      bool        `json:"compression,omitempty"`
	CertificateEnd   *jsapi.Time `json:"tls_cert_not_after,omitempty"`
}

// Snapshot is the state of an engine at one moment.
type Snapshot struct {
	// NowNanos is the moment in unix nanoseconds.
	NowNanos int64
	// Traffic is what went through.
	Traffic Traffic
	// Subscriptions describes the interest of all accounts.
	Subscriptions Interest
	// Connections are the open ones, Closed those remembered; in the order of their ids.
	Connections []Connection
	Closed      []Connection
	// Tenants are the accounts in the order of their names.
	Tenants []Tenant
	// JetStream is nil when persistence is off.
	JetStream *JetStream
	// Cluster is nil for a server on its own.
	Cluster *Cluster
}

// Tenant is one account and what its clients do.
type Tenant struct {
	// Name is the name; JetStream says whether it has persistence.
	Name      string
	JetStream bool
	// Connections and Subscriptions are how many there are.
	Connections, Subscriptions int
	// What came from the clients of the account and went to them.
	InMsgs, InBytes, OutMsgs, OutBytes uint64
	// SlowConsumers counts clients that were closed because they were.
	SlowConsumers uint64
}

// Traffic counts messages, bytes and connections since the start.
type Traffic struct {
	// InMsgs and InBytes came from clients, OutMsgs and OutBytes went to them.
	InMsgs, InBytes, OutMsgs, OutBytes uint64
	// SlowConsumers and StaleConnections count clients that were closed for these reasons.
	SlowConsumers, StaleConnections uint64
	// TotalConnections counts all clients so far, OpenConnections those that are there.
	TotalConnections uint64
	OpenConnections  int
}

// Interest counts subscriptions.
type Interest struct {
	// Count is how many there are, Inserts and Removes how many came and went, Matches how often they were searched.
	Count                     int
	Inserts, Removes, Matches uint64
	// Cached is how many results of searches are remembered, Hits how many searches those answered.
	Cached int
	Hits   uint64
}

// Connection is one client. Times are unix nanoseconds.
type Connection struct {
	// ID is the id of the connection.
	ID uint64
	// IP and Port are the client's address.
	IP   string
	Port int
	// StartNanos and LastNanos are when it came and when it last sent or received; StopNanos when it went, 0 before.
	StartNanos, LastNanos, StopNanos int64
	// Reason is why it went.
	Reason string
	// RTTNanos is the round trip last measured; 0 before the first.
	RTTNanos int64
	// PendingBytes wait to be written.
	PendingBytes int64
	// What came from the client and went to it.
	InMsgs, OutMsgs, InBytes, OutBytes uint64
	// Subscriptions is how many it has, List which, when asked for.
	Subscriptions int
	List          []Subscription
	// Name, Lang and Version are what the client says about itself.
	Name, Lang, Version string
	// WebSocket says that it connects by WebSocket.
	WebSocket bool
	// User is the name it authenticated as, Account the account it is bound to.
	User, Account string
	// AccountTag is the account's name for people, "" when Account is. Issuer is the key that signed the user, and Tags are
	// what its holder said of it.
	AccountTag, Issuer string
	Tags               []string
	// TLS is how it is protected; nil when it is not.
	TLS *TLS
}

// TLS is how a connection is protected.
type TLS struct {
	// Version and Cipher are the names of the version and of the cipher suite.
	Version, Cipher string
	// First says that the handshake came before INFO.
	First bool
	// Peers are the certificates that the client sent.
	Peers []PeerCertificate
}

// PeerCertificate is a certificate: its subject, and SHA-256 of its public key and of all of it, in hexadecimal.
type PeerCertificate struct {
	Subject, KeySum, Sum string
}

// Subscription is one subscription of a connection.
type Subscription struct {
	// Subject, Queue and SID are as in SUB.
	Subject, Queue, SID string
	// Msgs counts what was delivered; Max is the number after which it ends, 0 for none.
	Msgs, Max uint64
}

// JetStream is the state of persistence.
type JetStream struct {
	// StoreDir is the directory on disk; MaxMemory and MaxStorage bound what streams may hold.
	StoreDir              string
	MaxMemory, MaxStorage int64
	// SyncIntervalNanos is 0 when every acknowledgement waits for the sync.
	SyncIntervalNanos int64
	// Strict says that unknown fields in requests are refused; UniqueTag keeps replicas apart.
	Strict    bool
	UniqueTag string
	// Domain is the name by which clients may address these streams, "" for none.
	Domain string
	// Limits bound what clients may ask for; fields that are 0 are not shown.
	Limits JetStreamLimits
	// Memory and Storage are held, ReservedMemory and ReservedStorage promised to streams, in bytes.
	Memory, Storage, ReservedMemory, ReservedStorage uint64
	// APITotal and APIErrors count requests, APIInflight those under way. APILevel is the level of the API.
	APITotal, APIErrors, APIInflight uint64
	APILevel                         int
	// Streams, Consumers, Messages and Bytes are totals over all accounts.
	Streams, Consumers int
	Messages, Bytes    uint64
	// HAAssets counts the streams and consumers with more than one replica of which one is here, and the catalog in a
	// cluster. StreamsLed and ConsumersLed count those that this server leads.
	HAAssets                 int
	StreamsLed, ConsumersLed int
	// Recovering is how many streams are not served yet after a start.
	Recovering int
	// Failure is why nothing can be written, "" when all is well.
	Failure string
	// Accounts are those with persistence, in the order of their names.
	Accounts []Account
}

// JetStreamLimits are what varz and jsz show of the server's limits.
type JetStreamLimits struct {
	MaxRequestBatch     int   `json:"max_request_batch,omitempty"`
	MaxAckPending       int   `json:"max_ack_pending,omitempty"`
	MaxDuplicateWindow  int64 `json:"max_duplicate_window,omitempty"`
	DefaultMaxConsumers int   `json:"default_max_consumers,omitempty"`
}

// Account is an account with persistence.
type Account struct {
	// Name is the name.
	Name string
	// Memory and Storage are held, the reserved ones what the account may hold; negative without a limit.
	Memory, Storage                 uint64
	ReservedMemory, ReservedStorage int64
	// APITotal and APIErrors count its requests.
	APITotal, APIErrors uint64
	// Streams are its streams in the order of their names, when asked for.
	Streams []Stream
}

// Stream is one stream with its consumers.
type Stream struct {
	// Info is what the API says of it.
	Info jsapi.StreamInfo
	// RaftGroup is the name of its group.
	RaftGroup string
	// Failure is why it is not served here, Damage what of it can not be read, Unsaved why it can not be written other than to
	// the log; "" when all is well. They say what to do, or that nothing is to be done.
	Failure, Damage, Unsaved string
	// Led says that this server leads it.
	Led bool
	// Behind is why this server's replica is not what the leader's is, "" when it is.
	Behind string
	// Consumers are its consumers in the order of their names, when asked for.
	Consumers []jsapi.ConsumerInfo
}
