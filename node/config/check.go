package config

import (
	"fmt"
	"slices"
	"strings"
)

// Check reports what does not fit together once files and flags have been applied, as an error of type Problems.
func (c *Config) Check() error {
	var p Problems
	add := func(text string, args ...any) { p = append(p, Problem{Text: fmt.Sprintf(text, args...)}) }
	if strings.ContainsAny(c.ServerName, " \t") {
		add("server name cannot contain spaces")
	}
	if c.Port < -1 || c.Port > PortMax {
		add("port %d is not within -1 and %d", c.Port, PortMax)
	}
	if c.HTTPPort < -1 || c.HTTPPort > PortMax {
		add("http_port %d is not within -1 and %d", c.HTTPPort, PortMax)
	}
	if int64(c.MaxPayloadBytes) > c.MaxPendingBytes {
		add("max_payload (%v) cannot be higher than max_pending (%v)", c.MaxPayloadBytes, c.MaxPendingBytes)
	}
	if c.LameDuckGraceNanos >= c.LameDuckDurationNanos {
		add("lame duck grace period (%v) should be strictly lower than lame duck duration (%v)",
			seconds(c.LameDuckGraceNanos), seconds(c.LameDuckDurationNanos))
	}
	if c.HTTPBasePath != "" && !strings.HasPrefix(c.HTTPBasePath, "/") {
		add("http_base_path %q does not start with a slash", c.HTTPBasePath)
	}
	a := &c.Authorization
	if a.Token != "" && a.User != "" {
		add("Cannot have a user/pass and token")
	}
	c.checkTLS(add)
	c.checkAccounts(add)
	c.checkTrust(add)
	c.checkCluster(add)
	c.checkWebSocket(add)
	return p.err()
}

func (c *Config) checkAccounts(add func(string, ...any)) {
	for _, account := range c.Accounts {
		for _, u := range account.Users {
			if slices.ContainsFunc(c.Authorization.Users, func(w User) bool { return w.Name == u.Name }) {
				add("Duplicate user %q detected", u.Name)
			}
		}
		if account.Name == c.SystemAccount && account.JetStream != nil {
			add("JetStream cannot be enabled on the system account")
		}
	}
	if c.SystemAccount == GlobalAccount {
		add("the global account %q cannot be the system account", GlobalAccount)
	}
	if c.NoAuthUser != "" && c.AccountOf(c.NoAuthUser) == "" {
		add("no_auth_user: %q not present as user or nkey in authorization block or account configuration", c.NoAuthUser)
	}
}

// AccountOf returns the name of the account that a user is bound to, "" for an unknown user.
func (c *Config) AccountOf(user string) string {
	named := func(u User) bool { return u.Name == user }
	if slices.ContainsFunc(c.Authorization.Users, named) || user != "" && c.Authorization.User == user {
		return GlobalAccount
	}
	for _, account := range c.Accounts {
		if slices.ContainsFunc(account.Users, named) {
			return account.Name
		}
	}
	return ""
}

func seconds(nanos int64) string { return fmt.Sprintf("%ds", nanos/1e9) }
