package peerwire

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Version is the version of the protocol. Servers of different versions refuse each other.
const Version = 2

// HelloBytesMax bounds the introduction of a server, which is read before the other side is trusted.
const HelloBytesMax = 64 << 10

// Hello is how a server introduces itself when a session begins.
type Hello struct {
	// Version is the protocol's.
	Version int `json:"version"`
	// ID and Name identify the server; Cluster is the name of its cluster.
	ID      ServerID `json:"id,string"`
	Name    string   `json:"name"`
	Cluster string   `json:"cluster"`
	// Server is the id of the process that clients see.
	Server string `json:"server,omitempty"`
	// Address is where other servers reach it, "host:port"; Addresses are those of the others that it knows.
	Address   string   `json:"address,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// ClientURLs are where clients reach it, "host:port".
	ClientURLs []string `json:"client_urls,omitempty"`
	// WebURLs are where clients reach it by WebSocket, "host:port".
	WebURLs []string `json:"ws_urls,omitempty"`
	// Tags are its server_tags.
	Tags []string `json:"tags,omitempty"`
	// JetStream says that it has streams.
	JetStream bool `json:"jetstream,omitempty"`
	// ReadLease says that its replicas keep the promises that leases rest on.
	ReadLease bool `json:"read_lease,omitempty"`
	// Domain is its JetStream domain.
	Domain string `json:"domain,omitempty"`
	// Catalog identifies the catalog that it holds a replica of, 0 without one: the id of the server that founded it.
	Catalog ServerID `json:"catalog,string"`
	// Lost says that it had one and can not read it: none is founded where it is.
	Lost bool `json:"lost,omitempty"`
	// Unclaimed is how many streams its disk has without a catalog that says what they are. A catalog that does not know
	// the server is not theirs.
	Unclaimed int `json:"unclaimed,omitempty"`
	// Replica is the Raft id of its replica of the catalog, drawn before it has one.
	Replica uint64 `json:"replica,string"`
	// Expected is how many servers it was configured to found a catalog with, itself included.
	Expected int `json:"expected,omitempty"`
	// StoreMax and MemoryMax are the bytes that it has for streams; -1: no limit.
	StoreMax  int64 `json:"store_max,omitempty"`
	MemoryMax int64 `json:"memory_max,omitempty"`
	// Removed is the receiver, when the catalog has it no more: whoever leads the catalog says so.
	Removed ServerID `json:"removed,string,omitempty"`
	// User and Password are for a cluster with authorization. They never leave the handshake.
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
}

// The bounds of an introduction, in bytes and in elements.
const (
	nameBytesMax    = 256
	addressBytesMax = 512
	textBytesMax    = 1 << 10
	listMax         = 512
)

// Check reports what one server can see to be wrong with an introduction alone.
func (h *Hello) Check() error {
	if h.Version != Version {
		return fmt.Errorf("%w: the other server speaks version %d, this one %d", ErrVersion, h.Version, Version)
	}
	if h.ID == 0 || h.Name == "" {
		return fmt.Errorf("%w: introduction without id or name", ErrMalformed)
	}
	for _, name := range [...]string{h.Name, h.Cluster, h.Domain, h.Server} {
		if len(name) > nameBytesMax || strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("%w: name of %d bytes", ErrMalformed, len(name))
		}
	}
	for _, list := range [...][]string{{h.Address}, h.Addresses, h.ClientURLs, h.WebURLs, h.Tags} {
		if len(list) > listMax {
			return fmt.Errorf("%w: list of %d texts", ErrMalformed, len(list))
		}
		for _, text := range list {
			if len(text) > addressBytesMax || strings.ContainsFunc(text, unicode.IsControl) {
				return fmt.Errorf("%w: address of %d bytes", ErrMalformed, len(text))
			}
		}
	}
	return nil
}

// ErrVersion is returned for an introduction in another version of the protocol.
var ErrVersion = errors.New("another version of the cluster protocol")
