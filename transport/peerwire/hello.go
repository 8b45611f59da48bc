package peerwire

import (
	"encoding/json"
	"fmt"
)

// Version is the version of the protocol. Servers of different versions refuse each other.
const Version = 1

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
	// Address is where other servers reach it, "host:port"; Addresses are those of the others that it knows.
	Address   string   `json:"address,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// ClientURLs are where clients reach it, "host:port".
	ClientURLs []string `json:"client_urls,omitempty"`
	// Tags are its server_tags.
	Tags []string `json:"tags,omitempty"`
	// JetStream says that it has streams.
	JetStream bool `json:"jetstream,omitempty"`
	// Domain is its JetStream domain.
	Domain string `json:"domain,omitempty"`
	// Catalog identifies the catalog that it holds a replica of, 0 without one: the id of the server that founded it.
	Catalog ServerID `json:"catalog,string"`
	// Expected is how many servers it was configured to found a catalog with, itself included.
	Expected int `json:"expected,omitempty"`
	// StoreMax and MemoryMax are the bytes that it has for streams; -1: no limit.
	StoreMax  int64 `json:"store_max,omitempty"`
	MemoryMax int64 `json:"memory_max,omitempty"`
	// User and Password are for a cluster with authorization. They never leave the handshake.
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
}

// AppendHello appends the introduction in JSON.
func AppendHello(dst []byte, h *Hello) ([]byte, error) {
	data, err := json.Marshal(h)
	if err != nil {
		return dst, fmt.Errorf("introduce the server: %w", err)
	}
	return append(dst, data...), nil
}

// ParseHello reads an introduction.
func ParseHello(data []byte) (*Hello, error) {
	if len(data) > HelloBytesMax {
		return nil, fmt.Errorf("%w: introduction of %d bytes", ErrMalformed, len(data))
	}
	var h Hello
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("%w: introduction: %w", ErrMalformed, err)
	}
	if h.Version != Version {
		return nil, fmt.Errorf("the other server speaks version %d of the cluster protocol, this one %d", h.Version, Version)
	}
	if h.ID == 0 || h.Name == "" {
		return nil, fmt.Errorf("%w: introduction without id or name", ErrMalformed)
	}
	return &h, nil
}
