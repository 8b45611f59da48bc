package wire

import (
	"encoding/json"
	"fmt"

	"weir/spec/assert"
)

// Info is what a server says about itself in INFO. The fields and their names are those that clients know.
type Info struct {
	// ServerID is the public key of the server, new at each start.
	ServerID string `json:"server_id"`
	// ServerName is the configured name, the id without one.
	ServerName string `json:"server_name"`
	// Version is the version by which clients decide what they may use.
	Version string `json:"version"`
	// Proto is the protocol level: 1 when the server sends INFO at any time.
	Proto int `json:"proto"`
	// GitCommit names the build; informative.
	GitCommit string `json:"git_commit,omitempty"`
	// GoVersion names the compiler; informative.
	GoVersion string `json:"go"`
	// Host is the listening address.
	Host string `json:"host"`
	// Port is the listening port.
	Port int `json:"port"`
	// Headers says that the server takes HPUB and sends HMSG.
	Headers bool `json:"headers"`
	// AuthRequired says that CONNECT has to carry credentials.
	AuthRequired bool `json:"auth_required,omitempty"`
	// TLSRequired says that the client has to start TLS after this INFO.
	TLSRequired bool `json:"tls_required,omitempty"`
	// TLSVerify says that a client certificate is required.
	TLSVerify bool `json:"tls_verify,omitempty"`
	// TLSAvailable says that the client may start TLS after this INFO.
	TLSAvailable bool `json:"tls_available,omitempty"`
	// MaxPayload is the limit on header plus body in bytes for this client; -1 means none.
	MaxPayload int `json:"max_payload"`
	// JetStream says that JetStream is enabled.
	JetStream bool `json:"jetstream,omitempty"`
	// ClientID is the id of this connection.
	ClientID uint64 `json:"client_id,omitempty"`
	// ClientIP is the address of the client as the server sees it.
	ClientIP string `json:"client_ip,omitempty"`
	// Nonce is what the client has to sign, when keys are in use.
	Nonce string `json:"nonce,omitempty"`
	// Cluster is the name of the cluster.
	Cluster string `json:"cluster,omitempty"`
	// Domain is the JetStream domain.
	Domain string `json:"domain,omitempty"`
	// ConnectURLs are the addresses (host:port) of all servers of the cluster.
	ConnectURLs []string `json:"connect_urls,omitempty"`
	// LameDuck tells the client to move to another server.
	LameDuck bool `json:"ldm,omitempty"`
	// ConnectInfo marks the INFO that follows the first PONG.
	ConnectInfo bool `json:"connect_info,omitempty"`
	// RemoteAccount is the account the client is bound to; set together with ConnectInfo.
	RemoteAccount string `json:"remote_account,omitempty"`
	// IsSystemAccount says that RemoteAccount is the system account.
	IsSystemAccount bool `json:"acc_is_sys,omitempty"`
	// APILevel is the level of the JetStream API.
	APILevel int `json:"api_lvl,omitempty"`
}

// DecodeInfo decodes the JSON of an INFO. Unknown fields are ignored.
func DecodeInfo(args []byte) (Info, error) {
	var info Info
	if err := json.Unmarshal(args, &info); err != nil {
		return Info{}, fmt.Errorf("decode INFO of %d bytes: %w", len(args), err)
	}
	return info, nil
}

// AppendInfo appends INFO. It allocates; INFO is sent once or twice in the life of a connection.
func AppendInfo(dst []byte, info *Info) []byte {
	dst = append(dst, "INFO "...)
	dst = append(dst, encode(info)...)
	return append(dst, " \r\n"...)
}

// Connect is what a client says about itself in CONNECT.
type Connect struct {
	// Verbose asks for +OK after each operation.
	Verbose bool `json:"verbose"`
	// Pedantic asks for a check of published subjects.
	Pedantic bool `json:"pedantic"`
	// TLSRequired says that the client wants TLS.
	TLSRequired bool `json:"tls_required"`
	// Nkey is the public key of the user.
	Nkey string `json:"nkey,omitempty"`
	// JWT is the user's token of a decentralised set-up.
	JWT string `json:"jwt,omitempty"`
	// Sig is the signature of the nonce.
	Sig string `json:"sig,omitempty"`
	// Token is the bearer token.
	Token string `json:"auth_token,omitempty"`
	// User is the user name.
	User string `json:"user,omitempty"`
	// Password belongs to User.
	Password string `json:"pass,omitempty"`
	// Name is the client's name for itself, shown in monitoring.
	Name string `json:"name"`
	// Lang is the language of the client library.
	Lang string `json:"lang"`
	// Version is the version of the client library.
	Version string `json:"version"`
	// Protocol is 1 when the client takes INFO at any time, else 0.
	Protocol int `json:"protocol"`
	// Account is refused when not empty.
	Account string `json:"account,omitempty"`
	// NewAccount is refused when true.
	NewAccount bool `json:"new_account,omitempty"`
	// Headers says that the client takes HMSG.
	Headers bool `json:"headers"`
	// NoResponders asks for status 503 when a request reaches nobody.
	NoResponders bool `json:"no_responders"`
	// Echo says that the client wants what it publishes itself.
	Echo bool `json:"echo"`
}

// DefaultConnect is how a client is treated that has sent no CONNECT, and what CONNECT is decoded onto.
func DefaultConnect() Connect { return Connect{Verbose: true, Pedantic: true, Echo: true} }

// Decode decodes the JSON of a CONNECT onto c: fields that are absent keep their values, unknown ones are ignored. After
// an error c may be changed in part.
func (c *Connect) Decode(args []byte) error {
	if err := json.Unmarshal(args, c); err != nil {
		return fmt.Errorf("decode CONNECT of %d bytes: %w", len(args), err)
	}
	return nil
}

// AppendConnect appends CONNECT as a client sends it.
func AppendConnect(dst []byte, c *Connect) []byte {
	dst = append(dst, "CONNECT "...)
	dst = append(dst, encode(c)...)
	return append(dst, "\r\n"...)
}

// encode encodes a struct of plain fields, which cannot fail.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	assert.True(err == nil, "a struct of plain fields encodes")
	return text
}
