package config

import (
	"errors"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Cluster is the cluster block: the other servers that this one works together with.
type Cluster struct {
	// Name is the name of the cluster; servers of clusters with different names refuse each other.
	Name string
	// Host and Port are where other servers connect; port 0: there are none, -1 takes any free one. An empty host listens
	// on all addresses.
	Host string
	Port int
	// Advertise is the address, host or host:port, at which others reach this server instead.
	Advertise string
	// NoAdvertise keeps the addresses for clients from other servers, and so from their clients.
	NoAdvertise bool
	// Routes are the servers to connect to.
	Routes []Route
	// User and Password are what other servers have to know.
	User, Password string
	// TimeoutNanos is how long another server has to introduce itself.
	TimeoutNanos int64
	// ConnectRetries bounds how often in a row a server is dialed that others told of; 0 does not.
	ConnectRetries int
	// WriteDeadlineNanos bounds a write to another server; 0 takes that for clients.
	WriteDeadlineNanos int64
	// TLS, when not nil, protects the connections.
	TLS *TLS
}

// Route is a server to connect to.
type Route struct {
	// Address is "host:port".
	Address string
	// User and Password introduce this server there; "" takes those of the cluster.
	User, Password string
}

func (c *Cluster) take(v value) {
	v.block([]field{
		{"name", func(v value) { v.text(&c.Name) }},
		{"listen", func(v value) { v.listen(&c.Host, &c.Port) }},
		{"host net", func(v value) { v.text(&c.Host) }},
		{"port", func(v value) { v.integer(&c.Port, -1, PortMax) }},
		{"authorization", func(v value) { c.takeAuthorization(v) }},
		{"routes", func(v value) { c.takeRoutes(v) }},
		{"tls", func(v value) { c.TLS = takePeerTLS(v) }},
		{"cluster_advertise advertise", func(v value) { v.text(&c.Advertise) }},
		{"no_advertise", func(v value) { v.truth(&c.NoAdvertise) }},
		{"connect_retries", func(v value) { v.integer(&c.ConnectRetries, 0, math.MaxInt32) }},
		{"write_deadline", func(v value) { v.duration(&c.WriteDeadlineNanos) }},
		// Tunings of the reference server's connections: here one connection carries everything, is watched all the time,
		// and attempts to connect are always spaced out.
		{"pool_size", func(v value) { v.number(-1, math.MaxInt32) }},
		{"ping_interval", func(v value) { var n int64; v.duration(&n) }},
		{"ping_max", func(v value) { v.number(0, math.MaxInt32) }},
		{"connect_backoff", func(v value) { var b bool; v.truth(&b) }},
		{"compression", takeCompression},
		unsupported("permissions accounts write_timeout"),
	})
}

// takeCompression accepts what the reference server knows. Not to compress suits every mode, and differs only in
// speed.
func takeCompression(v value) {
	mode := ""
	switch v.raw.(type) {
	case bool:
		return
	case map[string]any:
		v.block([]field{
			{"mode", func(v value) { v.text(&mode) }},
			{"rtt_thresholds thresholds rtts rtt", func(v value) { v.texts() }},
		})
	default:
		v.text(&mode)
	}
	switch strings.ToLower(mode) {
	case "", "off", "disabled", "none", "accept":
	case "on", "enabled", "s2_fast", "fast", "s2_better", "better", "s2_best", "best", "s2_auto", "auto", "s2_uncompressed":
		v.warn("connections between servers are not compressed by this version of weir")
	default:
		v.problem("unsupported compression mode %q", mode)
	}
}

func (c *Cluster) takeAuthorization(v value) {
	v.block([]field{
		{"user username", func(v value) { v.text(&c.User) }},
		{"password pass", func(v value) { v.text(&c.Password) }},
		{"timeout", func(v value) { v.seconds(&c.TimeoutNanos) }},
		{"users", func(v value) { v.problem("Cluster authorization does not allow multiple users") }},
		{"token", func(v value) { v.problem("Cluster authorization does not support tokens") }},
		{"auth_callout", func(v value) { v.problem("Cluster authorization does not support callouts") }},
		unsupported("permissions default_permissions proxy_required"),
	})
}

func (c *Cluster) takeRoutes(v value) {
	list, ok := v.items("a list of URLs")
	if !ok {
		return
	}
	c.Routes = nil
	for _, item := range list {
		text := ""
		item.text(&text)
		if text == "" {
			continue
		}
		r, err := ParseRoute(text)
		if err != nil {
			item.problem("%v", err)
			continue
		}
		if slices.Contains(c.Routes, r) {
			item.warn("Duplicate route: %s detected", r.Address)
			continue
		}
		c.Routes = append(c.Routes, r)
	}
}

var (
	errRoute    = errors.New("error parsing route url: it is not of the form nats://[user:password@]host:port")
	errListen   = errors.New("the cluster is not of the form nats://[user:password@]host:port")
	errPassword = errors.New("expected cluster password to be set")
)

// ParseRoute reads the URL of a server to connect to: scheme://[user:password@]host:port, with any scheme.
func ParseRoute(text string) (Route, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Hostname() == "" || u.Port() == "" {
		// The URL itself may hold a password.
		return Route{}, errRoute
	}
	r := Route{Address: u.Host}
	if u.User != nil {
		r.User = u.User.Username()
		r.Password, _ = u.User.Password()
	}
	return r, nil
}

// Listen takes the URL of the --cluster flag: nats://[user:password@]host:port; "" turns the cluster off.
func (c *Cluster) Listen(text string) error {
	if text == "" {
		c.Port = 0
		return nil
	}
	address, user := text, ""
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		user, address = address[:at], address[at+1:]
	}
	colon := strings.LastIndexByte(address, ':')
	port, err := strconv.Atoi(strings.TrimSuffix(address[colon+1:], "/"))
	if colon < 0 || err != nil || port < -1 || port > PortMax || port == 0 {
		return errListen
	}
	c.Host, c.Port = strings.Trim(address[:colon], "[]"), port
	c.User, c.Password = "", ""
	if user == "" {
		return nil
	}
	info, err := url.Parse("nats://" + user + "@host")
	if err != nil {
		return errListen
	}
	password, given := info.User.Password()
	if !given {
		return errPassword
	}
	c.User, c.Password = info.User.Username(), password
	return nil
}

// ParseRoutes reads the list of the --routes flag, separated by commas.
func ParseRoutes(text string) ([]Route, error) {
	var routes []Route
	for one := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(one) == "" {
			continue
		}
		r, err := ParseRoute(one)
		if err != nil {
			return nil, err
		}
		routes = append(routes, r)
	}
	return routes, nil
}

// checkCluster reports what does not fit together about the cluster.
func (c *Config) checkCluster(add func(string, ...any)) {
	k := &c.Cluster
	if strings.ContainsAny(k.Name, " \t") {
		add("cluster name cannot contain spaces")
	}
	if k.Port < -1 || k.Port > PortMax {
		add("cluster port %d is not within -1 and %d", k.Port, PortMax)
	}
	if len(k.Routes) > 0 && k.Port == 0 {
		add("solicited routes require cluster capabilities, e.g. --cluster")
	}
	if k.Port == 0 || !c.JetStream.Enabled {
		return
	}
	if c.ServerName == "" {
		add("jetstream cluster requires `server_name` to be set")
	}
	if k.Name == "" {
		add("jetstream cluster requires `cluster.name` to be set")
	}
}
