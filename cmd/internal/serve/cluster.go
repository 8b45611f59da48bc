package serve

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"time"

	"weir/node/config"
	"weir/node/engine"
	"weir/node/host"
	"weir/node/monitor"
)

// unnamedCluster is the name of a cluster that has none. Only servers without streams may go without.
const unnamedCluster = "default"

// clusterName is the name of the cluster.
func clusterName(c *config.Config) string {
	if c.Cluster.Name == "" {
		return unnamedCluster
	}
	return c.Cluster.Name
}

// clusterConfig is what the engine knows of the cluster; the host adds what follows from ports.
func clusterConfig(c *config.Config) engine.Cluster {
	k := &c.Cluster
	if k.Port == 0 {
		return engine.Cluster{}
	}
	made := engine.Cluster{Name: clusterName(c), Expected: 1, Tags: c.ServerTags, User: k.User, Password: k.Password}
	for _, r := range k.Routes {
		if !leadsHere(r.Address, k.Port) {
			made.Expected++
		}
	}
	if c.ClientAdvertise != "" && !k.NoAdvertise {
		made.ClientURLs = []string{advertised(c.ClientAdvertise, c.Port)}
	}
	if c.WebSocket.Advertise != "" && !k.NoAdvertise {
		made.WebURLs = []string{advertised(c.WebSocket.Advertise, c.WebSocket.Port)}
	}
	return made
}

// leadsHere reports whether a route leads to this very server: configurations commonly list all servers.
func leadsHere(address string, port int) bool {
	name, its, err := net.SplitHostPort(address)
	if err != nil || its != strconv.Itoa(port) {
		return false
	}
	ips, err := net.LookupIP(name)
	if err != nil {
		return false // then it is dialed, and found out
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, ip := range ips {
		if ip.IsLoopback() || ip.IsUnspecified() {
			return true
		}
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return true
			}
		}
	}
	return false
}

// hostCluster is what the host needs to connect to others; nil without cluster.
func hostCluster(c *config.Config) (*host.Cluster, error) {
	k := &c.Cluster
	if k.Port == 0 {
		return nil, nil
	}
	address := k.Host
	if address == "" {
		address = config.DefaultHost
	}
	made := &host.Cluster{
		Listen: net.JoinHostPort(address, strconv.Itoa(max(k.Port, 0))), NoAdvertise: k.NoAdvertise, User: k.User, Password: k.Password,
		Timeout: time.Duration(k.TimeoutNanos), WriteDeadline: time.Duration(k.WriteDeadlineNanos), Retries: k.ConnectRetries,
	}
	if k.Advertise != "" {
		made.Advertise = advertised(k.Advertise, k.Port)
	}
	for _, r := range k.Routes {
		made.Routes = append(made.Routes, host.Route{Address: r.Address, User: r.User, Password: r.Password})
	}
	if k.TLS == nil {
		return made, nil
	}
	made.Timeout += time.Duration(k.TLS.TimeoutNanos)
	var err error
	made.ServerTLS, made.ClientTLS, err = clusterTLS(k.TLS)
	return made, err
}

// clusterTLS makes the two sides of connections between servers. Each server is both, so both show a certificate and
// check the other's.
func clusterTLS(t *config.TLS) (server, client *tls.Config, err error) {
	if server, err = serverTLS(t); err != nil {
		return nil, nil, fmt.Errorf("cluster: %w", err)
	}
	client = &tls.Config{
		Certificates: server.Certificates, RootCAs: server.ClientCAs, MinVersion: server.MinVersion, InsecureSkipVerify: t.Insecure,
	}
	return server, client, nil
}

// clusterOptions is what monitoring shows of the configuration of a cluster.
func clusterOptions(c *config.Config, addr net.Addr) monitor.ClusterOptions {
	k := &c.Cluster
	listens, ok := addr.(*net.TCPAddr)
	if !ok {
		return monitor.ClusterOptions{}
	}
	o := monitor.ClusterOptions{
		Name: clusterName(c), Host: k.Host, Port: listens.Port, AuthTimeoutNanos: k.TimeoutNanos, TLSTimeoutNanos: config.DefaultTLSTimeoutNanos,
		WriteDeadlineNanos: k.WriteDeadlineNanos,
	}
	if o.Host == "" {
		o.Host = config.DefaultHost
	}
	for _, r := range k.Routes {
		o.URLs = append(o.URLs, r.Address)
	}
	if k.TLS != nil {
		o.TLS, o.TLSTimeoutNanos = true, k.TLS.TimeoutNanos
	}
	return o
}
