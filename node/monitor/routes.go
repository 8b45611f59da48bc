package monitor

import (
	"encoding/json"

	"weir/model/jsapi"
)

// Route is a connection with another server. Times are unix nanoseconds.
type Route struct {
	// ID is the number of the connection; RemoteID and RemoteName are those of the other server.
	ID                   uint64
	RemoteID, RemoteName string
	// IP and Port are the other side.
	IP   string
	Port int
	// Solicited says that this server dialed, Configured that it did so because of its configuration.
	Solicited, Configured bool
	// StartNanos is when the connection began, LastNanos when something came.
	StartNanos, LastNanos int64
	// What went through since.
	InMsgs, OutMsgs, InBytes, OutBytes int64
	// Pending is how many bytes wait to be written.
	Pending int
}

// ClusterOptions is what the configuration says of the cluster; its zero value: nothing.
type ClusterOptions struct {
	// Name is its name, Host and Port are where other servers connect, URLs the servers that this one connects to.
	Name, Host string
	Port       int
	URLs       []string
	// AuthTimeoutNanos and TLSTimeoutNanos bound handshakes.
	AuthTimeoutNanos, TLSTimeoutNanos int64
	// TLS says that connections are protected and both sides prove themselves.
	TLS bool
	// WriteDeadlineNanos bounds a write; 0 when it is that for clients.
	WriteDeadlineNanos int64
}

// routez is the document of /routez.
type routez struct {
	ServerID   string     `json:"server_id"`
	ServerName string     `json:"server_name"`
	Now        jsapi.Time `json:"now"`
	Count      int        `json:"num_routes"`
	Routes     []route    `json:"routes"`
}

type route struct {
	ID            uint64     `json:"rid"`
	RemoteID      string     `json:"remote_id"`
	RemoteName    string     `json:"remote_name"`
	Solicited     bool       `json:"did_solicit"`
	Configured    bool       `json:"is_configured"`
	IP            string     `json:"ip"`
	Port          int        `json:"port"`
	Start         jsapi.Time `json:"start"`
	Last          jsapi.Time `json:"last_activity"`
	Uptime        string     `json:"uptime"`
	Idle          string     `json:"idle"`
	Pending       int        `json:"pending_size"`
	InMsgs        int64      `json:"in_msgs"`
	OutMsgs       int64      `json:"out_msgs"`
	InBytes       int64      `json:"in_bytes"`
	OutBytes      int64      `json:"out_bytes"`
	Subscriptions int        `json:"subscriptions"`
	Compression   string     `json:"compression"`
}

func (r *request) routez() *routez {
	s, now := r.source.Server(), r.source.Snapshot(Want{}).NowNanos
	doc := &routez{ServerID: s.ID, ServerName: s.Name, Now: jsapi.Time(now), Count: len(s.Routes), Routes: make([]route, len(s.Routes))}
	for i := range s.Routes {
		c := &s.Routes[i]
		doc.Routes[i] = route{
			ID: c.ID, RemoteID: c.RemoteID, RemoteName: c.RemoteName, Solicited: c.Solicited, Configured: c.Configured, IP: c.IP, Port: c.Port,
			Start: jsapi.Time(c.StartNanos), Last: jsapi.Time(c.LastNanos), Uptime: uptime(now - c.StartNanos), Idle: uptime(now - c.LastNanos),
			Pending: c.Pending, InMsgs: c.InMsgs, OutMsgs: c.OutMsgs, InBytes: c.InBytes, OutBytes: c.OutBytes, Compression: "off",
		}
	}
	return doc
}

// varzCluster is the part of /varz about the cluster.
type varzCluster struct {
	Name          string      `json:"name,omitempty"`
	Host          string      `json:"addr,omitempty"`
	Port          int         `json:"cluster_port,omitempty"`
	AuthTimeout   json.Number `json:"auth_timeout,omitempty"`
	URLs          []string    `json:"urls,omitempty"`
	TLSTimeout    json.Number `json:"tls_timeout,omitempty"`
	TLSRequired   bool        `json:"tls_required,omitempty"`
	TLSVerify     bool        `json:"tls_verify,omitempty"`
	PoolSize      int         `json:"pool_size,omitempty"`
	WriteDeadline int64       `json:"write_deadline,omitempty"`
}

// poolSize is the number of connections between two servers.
const poolSize = 1

func (c *ClusterOptions) varz() varzCluster {
	if c.Port == 0 {
		return varzCluster{}
	}
	return varzCluster{
		Name: c.Name, Host: c.Host, Port: c.Port, AuthTimeout: Seconds(c.AuthTimeoutNanos), URLs: c.URLs,
		TLSTimeout: Seconds(c.TLSTimeoutNanos), TLSRequired: c.TLS, TLSVerify: c.TLS, PoolSize: poolSize,
		WriteDeadline: c.WriteDeadlineNanos,
	}
}

// routeStat is a connection with another server in the description of a server.
type routeStat struct {
	ID       uint64 `json:"rid"`
	Name     string `json:"name,omitempty"`
	Sent     volume `json:"sent"`
	Received volume `json:"received"`
	Pending  int    `json:"pending"`
}

func (s *Server) routeStats() []routeStat {
	list := make([]routeStat, len(s.Routes))
	for i := range s.Routes {
		c := &s.Routes[i]
		list[i] = routeStat{
			ID: c.ID, Name: c.RemoteName, Sent: volume{uint64(c.OutMsgs), uint64(c.OutBytes)},
			Received: volume{uint64(c.InMsgs), uint64(c.InBytes)}, Pending: c.Pending,
		}
	}
	return list
}

// remotes counts the servers that there are connections with.
func (s *Server) remotes() int {
	names := map[string]bool{}
	for i := range s.Routes {
		names[s.Routes[i].RemoteName] = true
	}
	return len(names)
}
