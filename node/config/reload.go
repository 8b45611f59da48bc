package config

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"weir/node/auth"
)

// Difference is what a reload changes.
type Difference struct {
	// Lines say it to the operator, without anything secret.
	Lines []string
	// Users says that who may connect, or what they may do, differs.
	Users bool
}

// option is one option before and after.
type option struct {
	// name is how operators of the reference server know the option in messages of a reload.
	name      string
	was, next any
	// line is what the operator is told of a change; "" when the option can not be changed while the server runs.
	line string
	// secret values are not shown.
	secret bool
}

// Compare says what a reload from one configuration to another changes, both of which are complete and checked. An error
// names the first difference that a running server can not take; nothing may be changed then.
func Compare(was, next *Config) (Difference, error) {
	var d Difference
	options := slices.Concat(logReload(was, next), limitReload(was, next), userReload(was, next), tlsReload(was, next), fixed(was, next))
	for _, o := range options {
		switch {
		case reflect.DeepEqual(o.was, o.next):
		case o.line != "":
			d.Lines = append(d.Lines, o.line)
		case o.secret:
			return Difference{}, fmt.Errorf("config reload not supported for %s", o.name)
		default:
			return Difference{}, fmt.Errorf("config reload not supported for %s: old=%v, new=%v", o.name, o.was, o.next)
		}
	}
	for _, o := range userReload(was, next) {
		d.Users = d.Users || !reflect.DeepEqual(o.was, o.next)
	}
	mapped := func(c *Config) bool { return c.TLS != nil && c.TLS.VerifyAndMap }
	d.Users = d.Users || mapped(was) != mapped(next)
	return d, nil
}

func reloaded(format string, args ...any) string { return "Reloaded: " + fmt.Sprintf(format, args...) }

func logReload(was, next *Config) []option {
	return []option{
		{name: "Trace", was: was.Trace, next: next.Trace, line: reloaded("trace = %v", next.Trace)},
		{name: "TraceVerbose", was: was.TraceVerbose, next: next.TraceVerbose, line: reloaded("trace_verbose = %v", next.TraceVerbose)},
		{name: "TraceHeaders", was: was.TraceHeaders, next: next.TraceHeaders, line: reloaded("trace_headers = %v", next.TraceHeaders)},
		{name: "Debug", was: was.Debug, next: next.Debug, line: reloaded("debug = %v", next.Debug)},
		{name: "Logtime", was: was.LogTime, next: next.LogTime, line: reloaded("logtime = %v", next.LogTime)},
		{name: "LogtimeUTC", was: was.LogTimeUTC, next: next.LogTimeUTC, line: reloaded("logtime_utc = %v", next.LogTimeUTC)},
		{name: "LogFile", was: was.LogFile, next: next.LogFile, line: reloaded("log_file = %v", next.LogFile)},
		{name: "LogSizeLimit", was: was.LogSizeLimitBytes, next: next.LogSizeLimitBytes, line: reloaded("log_size_limit = %d", next.LogSizeLimitBytes)},
		{name: "LogMaxFiles", was: was.LogFilesMax, next: next.LogFilesMax, line: reloaded("log_max_num = %d", next.LogFilesMax)},
		{name: "MaxTracedMsgLen", was: was.MaxTracedBytes, next: next.MaxTracedBytes, line: reloaded("max_traced_msg_len = %d", next.MaxTracedBytes)},
		{name: "PidFile", was: was.PidFile, next: next.PidFile, line: reloaded("pid_file = %v", next.PidFile)},
		{name: "PortsFileDir", was: was.PortsFileDir, next: next.PortsFileDir, line: reloaded("ports_file_dir = %v", next.PortsFileDir)},
	}
}

func limitReload(was, next *Config) []option {
	return []option{
		{name: "MaxConn", was: was.MaxConnections, next: next.MaxConnections, line: reloaded("max_connections = %v", next.MaxConnections)},
		{name: "MaxControlLine", was: was.MaxControlLineBytes, next: next.MaxControlLineBytes, line: reloaded("max_control_line = %d", next.MaxControlLineBytes)},
		{name: "MaxPayload", was: was.MaxPayloadBytes, next: next.MaxPayloadBytes, line: reloaded("max_payload = %d", next.MaxPayloadBytes)},
		{name: "MaxPending", was: was.MaxPendingBytes, next: next.MaxPendingBytes, line: reloaded("max_pending = %d", next.MaxPendingBytes)},
		{name: "PingInterval", was: was.PingIntervalNanos, next: next.PingIntervalNanos, line: reloaded("ping_interval = %v", time.Duration(next.PingIntervalNanos))},
		{name: "MaxPingsOut", was: was.PingMax, next: next.PingMax, line: reloaded("ping_max = %d", next.PingMax)},
		{name: "WriteDeadline", was: was.WriteDeadlineNanos, next: next.WriteDeadlineNanos, line: reloaded("write_deadline = %v", time.Duration(next.WriteDeadlineNanos))},
		{name: "AuthTimeout", was: was.Authorization.TimeoutNanos, next: next.Authorization.TimeoutNanos,
			line: reloaded("authorization timeout = %v", time.Duration(next.Authorization.TimeoutNanos))},
		{name: "Metadata", was: was.ServerMetadata, next: next.ServerMetadata, line: reloaded("metadata")},
	}
}

func userReload(was, next *Config) []option {
	a, b := &was.Authorization, &next.Authorization
	return []option{
		{name: "Username", was: a.User, next: b.User, line: reloaded("authorization username")},
		{name: "Password", was: a.Password, next: b.Password, line: reloaded("authorization password")},
		{name: "Authorization", was: a.Token, next: b.Token, line: reloaded("authorization token")},
		{name: "Users", was: a.Users, next: b.Users, line: reloaded("authorization users")},
		{name: "Permissions", was: a.Permissions, next: b.Permissions, line: reloaded("authorization permissions")},
		{name: "Trusted operators", was: was.Trust, next: next.Trust, line: reloaded("operators and accounts"), secret: true},
		{name: "NoAuthUser", was: was.NoAuthUser, next: next.NoAuthUser, line: reloaded("no_auth_user = %v", next.NoAuthUser)},
		{name: "Accounts", was: accountUsers(was), next: accountUsers(next), line: reloaded("accounts")},
	}
}

// accountUsers are the users of each account, and their limits.
func accountUsers(c *Config) map[string]Account {
	users := make(map[string]Account, len(c.Accounts))
	for _, a := range c.Accounts {
		users[a.Name] = Account{Users: a.Users, Limits: a.Limits}
	}
	return users
}

// tlsReload is about protection. Files may hold something else under the same names, so that it is always read anew.
func tlsReload(was, next *Config) []option {
	state := "disabled"
	if next.TLS != nil {
		state = "enabled"
	}
	return []option{
		{name: "TLSConfig", was: was.TLS, next: next.TLS, line: reloaded("tls = %s", state)},
		{name: "AllowNonTLS", was: was.AllowNonTLS, next: next.AllowNonTLS, line: reloaded("allow_non_tls = %v", next.AllowNonTLS)},
	}
}

// fixed are the options that count from the start to the end of a server.
func fixed(was, next *Config) []option {
	port := next.Port
	if port <= 0 {
		port = was.Port
	}
	advertise := option{name: "ClientAdvertise", was: was.ClientAdvertise, next: next.ClientAdvertise,
		line: "Reload: client_advertise = " + next.ClientAdvertise}
	tags := option{name: "Tags", was: was.ServerTags, next: next.ServerTags, line: reloaded("tags")}
	if was.Cluster.Port != 0 {
		tags.line, advertise.line = "", "" // the other servers place streams by them, and tell their clients
	}
	peerTLS := option{name: "Cluster TLS", was: was.Cluster.TLS, next: next.Cluster.TLS, line: reloaded("cluster"), secret: true}
	if was.Cluster.TLS == nil || next.Cluster.TLS == nil {
		peerTLS.line = "" // servers with it and servers without it do not understand each other
	}
	return []option{
		tags,
		advertise,
		{name: "Host", was: was.Host, next: next.Host},
		{name: "Port", was: was.Port, next: port},
		{name: "ServerName", was: was.ServerName, next: next.ServerName},
		{name: "HTTPHost", was: was.HTTPHost, next: next.HTTPHost},
		{name: "HTTPPort", was: was.HTTPPort, next: next.HTTPPort},
		{name: "HTTPBasePath", was: was.HTTPBasePath, next: next.HTTPBasePath},
		{name: "MaxSubs", was: was.MaxSubscriptions, next: next.MaxSubscriptions},
		{name: "MaxClosedClients", was: was.MaxClosedClients, next: next.MaxClosedClients},
		{name: "LameDuckDuration", was: time.Duration(was.LameDuckDurationNanos), next: time.Duration(next.LameDuckDurationNanos)},
		{name: "LameDuckGracePeriod", was: time.Duration(was.LameDuckGraceNanos), next: time.Duration(next.LameDuckGraceNanos)},
		{name: "NoHeaderSupport", was: was.NoHeaderSupport, next: next.NoHeaderSupport},
		{name: "SystemAccount", was: was.SystemAccount, next: next.SystemAccount},
		{name: "Accounts: accounts can be changed only in their users", was: accountTraits(was), next: accountTraits(next), secret: true},
		{name: "jetstream storage directory", was: was.JetStream.StoreDir, next: next.JetStream.StoreDir, secret: true},
		{name: "JetStream", was: was.JetStream.Enabled, next: next.JetStream.Enabled},
		{name: "JetStreamMaxMemory", was: was.JetStream.MaxMemoryBytes, next: next.JetStream.MaxMemoryBytes},
		{name: "JetStreamMaxStore", was: was.JetStream.MaxFileBytes, next: next.JetStream.MaxFileBytes},
		{name: "JetStreamLimits", was: was.JetStream.Limits, next: next.JetStream.Limits},
		{name: "JetStream", was: was.JetStream, next: next.JetStream, secret: true},
		{name: "cluster host", was: was.Cluster.Host, next: next.Cluster.Host},
		{name: "cluster port", was: was.Cluster.Port, next: next.Cluster.Port},
		{name: "Routes", was: was.Cluster.Routes, next: next.Cluster.Routes, line: reloaded("cluster routes")},
		peerTLS,
		{name: "Websocket TLS", was: was.WebSocket.TLS, next: next.WebSocket.TLS, line: reloaded("websocket tls"), secret: true},
		{name: "Websocket", was: restOfWeb(was), next: restOfWeb(next), secret: true},
		{name: "Cluster", was: rest(was), next: rest(next), secret: true},
	}
}

// accountTraits are accounts without their users, as text.
func accountTraits(c *Config) (list []string) {
	for _, text := range c.Trust.Preload {
		if a, err := auth.DecodeAccount(text); err == nil { // as it was when the file was read
			list = append(list, fmt.Sprintf("%s %+v", a.Claims.Subject, a.Claims.Limits.JetStreamLimits))
		}
	}
	slices.Sort(list)
	for _, a := range c.Accounts {
		var j AccountJetStream
		if a.JetStream != nil {
			j = *a.JetStream
		}
		list = append(list, fmt.Sprintf("%s %v %+v", a.Name, a.JetStream != nil, j))
	}
	return list
}

// restOfWeb is the block of WebSockets without what can be changed.
func restOfWeb(c *Config) WebSocket {
	w := c.WebSocket
	if w.TLS != nil {
		w.TLS = &TLS{VerifyAndMap: w.TLS.VerifyAndMap}
	}
	return w
}

// rest is the block of the cluster without what can be changed.
func rest(c *Config) Cluster {
	k := c.Cluster
	k.Routes, k.TLS = nil, nil
	return k
}
