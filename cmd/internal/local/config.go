package local

import (
	"fmt"
	"path/filepath"
	"strings"
)

// The users of a local cluster. Clients that name none are the first one.
const (
	AppUser    = "app"
	SystemUser = "sys"
)

// clusterName is the name of every local cluster.
const clusterName = "local"

// Config is the configuration file of one server.
func Config(o Options, i int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Written anew by each start of the local cluster.")
	line("server_name: %s", Name(i))
	line("listen: \"127.0.0.1:%d\"", o.Port+i)
	line("http: \"127.0.0.1:%d\"", o.HTTPPort+i)
	line("pid_file: %q", filepath.Join(o.Dir, Name(i), "weir.pid"))
	line("jetstream { store_dir: %q }", filepath.Join(o.Dir, Name(i)))
	line("cluster {\n  name: %s\n  listen: \"127.0.0.1:%d\"\n  routes: [", clusterName, o.ClusterPort+i)
	for other := range o.Nodes {
		line("    \"nats://127.0.0.1:%d\"", o.ClusterPort+other)
	}
	line("  ]\n}")
	line("accounts {\n  APP { jetstream: enabled, users: [ { user: %s, password: %s } ] }", AppUser, AppUser)
	line("  SYS { users: [ { user: %s, password: %s } ] }\n}", SystemUser, SystemUser)
	line("system_account: SYS\nno_auth_user: %s", AppUser)
	return b.String()
}

// Guide says what to do with a cluster that runs.
func Guide(o Options, pids []int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	var urls []string
	line("\n%d servers in %s:", o.Nodes, o.Dir)
	for i, pid := range pids {
		url := fmt.Sprintf("nats://127.0.0.1:%d", o.Port+i)
		urls = append(urls, url)
		line("  %s  pid %d  clients %s  servers 127.0.0.1:%d  monitoring http://127.0.0.1:%d", Name(i), pid, url, o.ClusterPort+i, o.HTTPPort+i)
	}
	all := strings.Join(urls, ",")
	line("\n  export NATS_URL=%s", all)
	line("  nats stream add ORDERS --subjects 'orders.>' --replicas %d --defaults", min(o.Nodes, 3))
	line("  nats pub orders.new hello && nats stream report")
	line("  nats --user %s --password %s server list", SystemUser, SystemUser)
	line("  nats --user %s --password %s server report jetstream", SystemUser, SystemUser)
	line("  kill -9 PID kills one of them; Ctrl-C ends all.\n")
	return b.String()
}
