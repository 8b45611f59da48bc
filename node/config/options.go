package config

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
)

// Apply takes the options of a parsed file, given as the tree of its top-level block: values are bool, int64, float64,
// string, []any and map[string]any, each perhaps wrapped in a token with its place. Options that the file does not name
// keep what they are. It returns warnings, which do not keep a server from starting, and all problems as one error of
// type Problems; after an error c is changed in part.
func (c *Config) Apply(tree map[string]any) (Problems, error) {
	d := &decoder{}
	root := value{d: d, key: "configuration", raw: tree}
	root.block(c.options())
	if c.Port == 0 {
		c.Port = DefaultPort
	}
	d.problems.sort()
	d.warnings.sort()
	return d.warnings, d.problems.err()
}

// options are all options of the top level.
func (c *Config) options() []field {
	var fields []field
	fields = append(fields, c.listenOptions()...)
	fields = append(fields, c.logOptions()...)
	fields = append(fields, c.limitOptions()...)
	fields = append(fields, c.userOptions()...)
	return append(fields,
		field{"jetstream", func(v value) { c.JetStream.take(v) }},
		field{"store_dir storedir", func(v value) { c.JetStream.takeStoreDir(v) }},
		field{"cluster", func(v value) { c.Cluster.take(v) }},
		field{"websocket ws", func(v value) { c.WebSocket.take(v) }},
		unsupported("gateway leaf leafnodes mqtt"),
		field{"tls", func(v value) { c.TLS = takeClientTLS(v) }},
		field{"allow_non_tls", func(v value) { v.truth(&c.AllowNonTLS) }},
		unsupported("ocsp ocsp_cache https https_port"),
		field{"operator operators roots root root_operators root_operator", func(v value) { c.Trust.Operators = v.texts() }},
		field{"trusted trusted_keys", func(v value) { c.Trust.takeKeys(v) }},
		field{"resolver account_resolver accounts_resolver", func(v value) { c.Trust.takeResolver(v) }},
		field{"resolver_preload", func(v value) { c.Trust.takePreload(v) }},
		field{"resolver_pinned_accounts", func(v value) { c.Trust.Pinned = v.texts() }},
		unsupported("default_sentinel resolver_tls"),
		unsupported("mappings maps default_js_domain feature_flags proxies proxy_protocol"),
		unsupported("syslog remote_syslog prof_port prof_block_rate write_timeout"),
	)
}

func (c *Config) listenOptions() []field {
	return []field{
		{"listen", func(v value) { v.listen(&c.Host, &c.Port) }},
		{"host net", func(v value) { v.text(&c.Host) }},
		{"port", func(v value) { v.integer(&c.Port, -1, PortMax) }},
		{"server_name", func(v value) { v.text(&c.ServerName) }},
		{"client_advertise", func(v value) { v.text(&c.ClientAdvertise) }},
		{"http", func(v value) { v.listen(&c.HTTPHost, &c.HTTPPort) }},
		{"http_port monitor_port", func(v value) { v.integer(&c.HTTPPort, -1, PortMax) }},
		{"http_base_path", func(v value) { v.text(&c.HTTPBasePath) }},
		{"server_tags", func(v value) { c.ServerTags = v.texts() }},
		{"server_metadata", func(v value) {
			pairs, _ := v.entries("a block of texts")
			c.ServerMetadata = make(map[string]string, len(pairs))
			for _, pair := range pairs {
				var text string
				pair.text(&text)
				c.ServerMetadata[pair.key] = text
			}
		}},
		{"pid_file pidfile", func(v value) { v.text(&c.PidFile) }},
		{"ports_file_dir", func(v value) { v.text(&c.PortsFileDir) }},
	}
}

func (c *Config) logOptions() []field {
	return []field{
		{"debug", func(v value) { v.truth(&c.Debug) }},
		{"trace", func(v value) { v.truth(&c.Trace) }},
		{"trace_verbose", func(v value) {
			v.truth(&c.TraceVerbose)
			c.Trace = c.Trace || c.TraceVerbose
		}},
		{"trace_headers", func(v value) {
			v.truth(&c.TraceHeaders)
			c.Trace = c.Trace || c.TraceHeaders
		}},
		{"logtime", func(v value) { v.truth(&c.LogTime) }},
		{"logtime_utc", func(v value) { v.truth(&c.LogTimeUTC) }},
		{"log_file logfile", func(v value) { v.text(&c.LogFile) }},
		{"log_size_limit logfile_size_limit", func(v value) { v.integer64(&c.LogSizeLimitBytes, 0, sizeMax) }},
		{"log_max_num logfile_max_num", func(v value) { v.integer(&c.LogFilesMax, 0, math.MaxInt32) }},
		{"max_traced_msg_len", func(v value) { v.integer(&c.MaxTracedBytes, -1, math.MaxInt32) }},
		// How often failed attempts to connect to servers are logged: the first is, always, and the others when debugging.
		{"connect_error_reports reconnect_error_reports", func(v value) { v.number(0, math.MaxInt32) }},
	}
}

func (c *Config) limitOptions() []field {
	return []field{
		{"max_control_line", func(v value) { v.integer(&c.MaxControlLineBytes, 1, math.MaxInt32) }},
		{"max_payload", func(v value) {
			v.integer(&c.MaxPayloadBytes, 1, math.MaxInt32)
			if c.MaxPayloadBytes > LargePayloadBytes {
				v.warn("maximum payloads over 8 MiB are not recommended")
			}
		}},
		{"max_pending", func(v value) { v.integer64(&c.MaxPendingBytes, 1, sizeMax) }},
		{"max_connections max_conn", func(v value) { v.integer(&c.MaxConnections, math.MinInt32, math.MaxInt32) }},
		{"max_subscriptions max_subs", func(v value) { v.integer(&c.MaxSubscriptions, -1, math.MaxInt32) }},
		unsupported("max_subscription_tokens max_sub_tokens"),
		{"max_closed_clients", func(v value) { v.integer(&c.MaxClosedClients, 0, DefaultMaxClosedClients) }},
		{"ping_interval", func(v value) { v.duration(&c.PingIntervalNanos) }},
		{"ping_max", func(v value) { v.integer(&c.PingMax, 0, math.MaxInt32) }},
		{"write_deadline", func(v value) { v.duration(&c.WriteDeadlineNanos) }},
		{"lame_duck_duration", func(v value) {
			v.duration(&c.LameDuckDurationNanos)
			if c.LameDuckDurationNanos < LameDuckDurationMinNanos {
				v.problem("invalid lame_duck_duration of %v, minimum is 30 seconds", v.raw)
			}
		}},
		{"lame_duck_grace_period", func(v value) { v.duration(&c.LameDuckGraceNanos) }},
		{"no_header_support", func(v value) { v.truth(&c.NoHeaderSupport) }},
		// Tunings of mechanisms that this server does not have: it never stalls a producer and caches no matches.
		{"no_fast_producer_stall disable_sublist_cache no_sublist_cache", func(v value) { var b bool; v.truth(&b) }},
	}
}

// listen reads a port, or "host:port".
func (v value) listen(host *string, port *int) {
	text, ok := v.raw.(string)
	if !ok {
		v.integer(port, -1, PortMax)
		return
	}
	colon := strings.LastIndexByte(text, ':')
	if colon < 0 {
		v.problem("could not parse address string %q", text)
		return
	}
	n, err := strconv.Atoi(text[colon+1:])
	if err != nil || n < -1 || n > PortMax {
		v.problem("could not parse port %q", text[colon+1:])
		return
	}
	name := text[:colon]
	if bare, ok := strings.CutPrefix(name, "["); ok {
		name = strings.TrimSuffix(bare, "]")
		if _, err := netip.ParseAddr(name); err != nil {
			v.problem("could not parse address string %q", text)
			return
		}
	} else if strings.Contains(name, ":") {
		v.problem("could not parse address string %q", text)
		return
	}
	*host, *port = name, n
}
