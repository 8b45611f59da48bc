package config

import (
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/conf"
)

// read is the complete configuration of a text.
func read(t *testing.T, text string) *Config {
	t.Helper()
	if err := os.WriteFile("a.conf", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := conf.ParseFileWithChecks("a.conf")
	if err != nil {
		t.Fatal(err)
	}
	c := Default()
	if _, err := c.Apply(tree); err != nil {
		t.Fatal(err)
	}
	c.Complete()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return &c
}

// TestReloadTakesWhatCanBeChanged goes from one configuration to another. The result is what the operator is told, each
// line on its own, with + in front of it when users differ; or the refusal.
func TestReloadTakesWhatCanBeChanged(t *testing.T) {
	t.Chdir(t.TempDir())
	tls := func(cluster, cert string) string {
		return strings.Replace(cluster, "name: c", "name: c, tls { cert_file: "+cert+", key_file: k }", 1)
	}
	const cluster = "cluster { name: c, listen: \"127.0.0.1:6222\", routes: [\"nats://secret:word@h:1\"] }\n"
	for _, c := range []struct{ was, next, want string }{
		{"", "", ""},
		{"port: 4333", "port: -1", ""},
		{"", "debug: true, logtime: false, max_traced_msg_len: 7", "Reloaded: debug = true\nReloaded: logtime = false\nReloaded: max_traced_msg_len = 7"},
		{"", "trace_verbose: true", "Reloaded: trace = true\nReloaded: trace_verbose = true"},
		{"", "max_connections: 5, max_payload: 1000, max_control_line: 512, max_pending: 5000, ping_interval: \"5s\", ping_max: 3, write_deadline: \"3s\"",
			"Reloaded: max_connections = 5\nReloaded: max_control_line = 512\nReloaded: max_payload = 1000\nReloaded: max_pending = 5000\n" +
				"Reloaded: ping_interval = 5s\nReloaded: ping_max = 3\nReloaded: write_deadline = 3s"},
		{"pid_file: a", "pid_file: b, ports_file_dir: c", "Reloaded: pid_file = b\nReloaded: ports_file_dir = c"},
		{"authorization { user: a, password: b }", "authorization { user: a, password: c }", "+Reloaded: authorization password"},
		{"authorization { token: b }", "authorization { users: [ {user: a} ] }\nno_auth_user: a",
			"+Reloaded: authorization token\nReloaded: authorization users\nReloaded: no_auth_user = a"},
		{"authorization { users: [ {user: a, permissions: {publish: x}} ] }", "authorization { users: [ {user: a} ] }", "+Reloaded: authorization users"},
		{"authorization { timeout: 3 }", "", "Reloaded: authorization timeout = 2s"},
		{"accounts { A { users: [ {user: a} ] }, B { users: [] } }", "accounts { A { users: [] }, B { users: [ {user: a} ] } }", "+Reloaded: accounts"},
		{"accounts { A { users: [ {user: a} ] } }", "accounts { A { users: [ {user: a} ], jetstream: enabled } }",
			"config reload not supported for Accounts: accounts can be changed only in their users"},
		{"accounts { A { users: [ {user: a} ] } }", "accounts { A { users: [ {user: a} ], limits { max_conn: 1 } } }", "+Reloaded: accounts"},
		{"accounts { A { users: [ {user: a} ] } }", "accounts { C { users: [ {user: a} ] } }",
			"config reload not supported for Accounts: accounts can be changed only in their users"},
		{"", "tls { cert_file: c, key_file: k }", "Reloaded: authorization timeout = 3s\nReloaded: tls = enabled"},
		{"tls { cert_file: c, key_file: k }", "tls { cert_file: c, key_file: k, verify_and_map: true }", "+Reloaded: tls = enabled"},
		{"tls { cert_file: c, key_file: k, timeout: 2 }", "tls { cert_file: c, key_file: k }\nallow_non_tls: true", "Reloaded: allow_non_tls = true"},
		{"tls { cert_file: c, key_file: k }", "", "Reloaded: authorization timeout = 2s\nReloaded: tls = disabled"},
		{"", "server_tags: [a]\nclient_advertise: \"h:1\"\nserver_metadata { a: b }",
			"Reloaded: metadata\nReloaded: tags\nReload: client_advertise = h:1"},
		{cluster, cluster + "server_tags: [a]", "config reload not supported for Tags: old=[], new=[a]"},
		{cluster, cluster + "client_advertise: \"h:1\"", "config reload not supported for ClientAdvertise: old=, new=h:1"},
		{cluster, strings.Replace(cluster, "6222", "6223", 1), "config reload not supported for cluster port: old=6222, new=6223"},
		{cluster, strings.Replace(cluster, "name: c", "name: d", 1), "config reload not supported for Cluster"},
		{cluster, strings.Replace(cluster, "h:1\"", "h:1\", \"nats://h:2\"", 1), "Reloaded: cluster routes"},
		{cluster, tls(cluster, "c"), "config reload not supported for Cluster TLS"},
		{tls(cluster, "c"), tls(cluster, "d"), "Reloaded: cluster"},
		{"", "port: 4333", "config reload not supported for Port: old=4222, new=4333"},
		{"", "listen: \"127.0.0.1:4222\"", "config reload not supported for Host: old=0.0.0.0, new=127.0.0.1"},
		{"", "server_name: x", "config reload not supported for ServerName: old=, new=x"},
		{"", "http_port: 8222", "config reload not supported for HTTPPort: old=0, new=8222"},
		{"", "lame_duck_duration: \"1m\"", "config reload not supported for LameDuckDuration: old=2m0s, new=1m0s"},
		{"", "max_subscriptions: 9", "config reload not supported for MaxSubs: old=0, new=9"},
		{"", "system_account: X\naccounts { X {} }", "config reload not supported for SystemAccount: old=$SYS, new=X"},
		{"", "jetstream: enabled", "config reload not supported for JetStream: old=false, new=true"},
		{"jetstream { store_dir: a }", "jetstream { store_dir: b }", "config reload not supported for jetstream storage directory"},
		{"jetstream { max_mem: 5 }", "jetstream { max_mem: 4 }", "config reload not supported for JetStreamMaxMemory: old=5, new=4"},
		{"jetstream { domain: a }", "jetstream { domain: b }", "config reload not supported for JetStream"},
	} {
		d, err := Compare(read(t, c.was), read(t, c.next))
		got := strings.Join(d.Lines, "\n")
		if d.Users {
			got = "+" + got
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("from %q to %q: got\n%s\nwant\n%s", c.was, c.next, got, c.want)
		}
		if strings.Contains(got, "secret") {
			t.Errorf("a secret is told: %s", got)
		}
	}
}
