package config

import (
	"math"
	"slices"
	"strings"

	"weir/model/subject"
	"weir/node/auth"
)

// GlobalAccount is the account of all clients that are bound to no other.
const GlobalAccount = "$G"

// connectionTypes are the ways to connect that a user can be restricted to.
var connectionTypes = []string{"STANDARD", "WEBSOCKET", "LEAFNODE", "LEAFNODE_WS", "MQTT", "MQTT_WS", "IN_PROCESS"}

func (c *Config) userOptions() []field {
	return []field{
		{"authorization", func(v value) { c.Authorization.take(v) }},
		{"accounts", func(v value) { c.takeAccounts(v) }},
		{"no_auth_user", func(v value) { v.text(&c.NoAuthUser) }},
		{"system_account system", func(v value) { v.text(&c.SystemAccount) }},
		{"no_system_account no_system no_sys_acc", func(v value) {
			none := false
			v.truth(&none)
			if none {
				c.SystemAccount = ""
			}
		}},
	}
}

func (a *Authorization) take(v value) {
	v.block([]field{
		{"user username", func(v value) { v.text(&a.User) }},
		{"password pass", func(v value) { v.text(&a.Password) }},
		{"token", func(v value) { v.text(&a.Token) }},
		{"timeout", func(v value) { v.seconds(&a.TimeoutNanos) }},
		{"users", func(v value) { a.Users = takeUsers(v) }},
		{"default_permission default_permissions permissions", func(v value) { a.Permissions = takePermissions(v) }},
		unsupported("auth_callout proxy_required"),
	})
	if (a.User != "" || a.Password != "") && a.Token != "" {
		v.problem("Cannot have a user/pass and token")
	}
	if len(a.Users) > 0 && (a.User != "" || a.Token != "") {
		v.problem("Can not have a single user/pass or token and a users array")
	}
	for i := range a.Users {
		if a.Users[i].Permissions == nil {
			a.Users[i].Permissions = a.Permissions
		}
	}
}

func takeUsers(v value) []User {
	list, ok := v.items("a list of users")
	if !ok {
		return nil
	}
	users := make([]User, 0, len(list))
	for _, item := range list {
		var u User
		key := ""
		before := len(v.d.problems)
		item.block([]field{
			{"user username", func(v value) { v.text(&u.Name) }},
			{"password pass", func(v value) { v.text(&u.Password) }},
			{"permission permissions authorization", func(v value) { u.Permissions = takePermissions(v) }},
			{"allowed_connection_types connection_types clients", func(v value) { u.ConnectionTypes = takeTypes(v) }},
			{"nkey", func(v value) { v.text(&key) }},
			unsupported("proxy_required"),
		})
		switch {
		case len(v.d.problems) > before:
		case key != "" && (u.Name != "" || u.Password != ""):
			item.problem("Nkey users do not take usernames or passwords")
		case key != "" && !auth.IsUserKey(key):
			item.problem("Not a valid public nkey for a user")
		case key != "":
			u.Name, u.Nkey = key, true
		}
		switch {
		case len(v.d.problems) > before:
		case u.Name == "":
			item.problem("User entry requires a user")
		case slices.ContainsFunc(users, func(other User) bool { return other.Name == u.Name }):
			item.problem("Duplicate user %q detected", u.Name)
		}
		users = append(users, u)
	}
	return users
}

func takeTypes(v value) []string {
	var types []string
	for _, name := range v.texts() {
		upper := strings.ToUpper(name)
		if !slices.Contains(connectionTypes, upper) {
			v.problem("invalid connection type %q", name)
			continue
		}
		types = append(types, upper)
	}
	return types
}

func takePermissions(v value) *Permissions {
	p := &Permissions{}
	v.block([]field{
		{"publish pub import", func(v value) { p.Publish = takeRule(v, false) }},
		{"subscribe sub export", func(v value) { p.Subscribe = takeRule(v, true) }},
		{"allow_responses allow_response publish_allow_responses", func(v value) { p.Responses = takeResponses(v) }},
	})
	if p.Responses != nil && p.Publish.Allow == nil {
		p.Publish.Allow = []string{}
	}
	return p
}

// takeRule reads what is allowed, as text or a list, or a block of what is allowed and denied.
func takeRule(v value, queues bool) (r Rule) {
	if _, block := v.raw.(map[string]any); !block {
		r.Allow = takePatterns(v, queues)
		return r
	}
	v.block([]field{
		{"allow", func(v value) { r.Allow = takePatterns(v, queues) }},
		{"deny", func(v value) { r.Deny = takePatterns(v, queues) }},
	})
	return r
}

// takePatterns reads patterns of subjects; for subscriptions each may be followed by the pattern of a queue name.
func takePatterns(v value, queues bool) []string {
	patterns := v.texts()
	for _, pattern := range patterns {
		parts := strings.Fields(pattern)
		valid := len(parts) == 1 || queues && len(parts) == 2
		for _, part := range parts {
			valid = valid && subject.Valid(part)
		}
		if !valid {
			v.problem("subject %q is not a valid subject", pattern)
		}
	}
	return patterns
}

// The default bounds of reply permissions.
const (
	responsesMax          = 1
	responsesExpiresNanos = int64(120e9)
)

func takeResponses(v value) *Responses {
	r := &Responses{Max: responsesMax, ExpiresNanos: responsesExpiresNanos}
	if on, ok := v.raw.(bool); ok {
		if !on {
			return nil
		}
		return r
	}
	v.block([]field{
		{"max max_msgs max_messages max_responses", func(v value) {
			v.integer(&r.Max, -1, math.MaxInt32)
			if r.Max == 0 {
				r.Max = responsesMax
			}
		}},
		{"expires expiration ttl", func(v value) {
			v.duration(&r.ExpiresNanos)
			if r.ExpiresNanos == 0 {
				r.ExpiresNanos = responsesExpiresNanos
			}
		}},
	})
	return r
}

// takeAccounts reads a list of names, or a block of accounts.
func (c *Config) takeAccounts(v value) {
	defer func() {
		slices.SortFunc(c.Accounts, func(a, b Account) int { return strings.Compare(a.Name, b.Name) })
	}()
	if names, ok := v.raw.([]any); ok {
		for _, name := range names {
			item := v.d.value("accounts", name, v)
			var a Account
			item.text(&a.Name)
			c.addAccount(item, a)
		}
		return
	}
	pairs, _ := v.entries("a list of names or a block of accounts")
	for _, pair := range pairs {
		if pair.variable {
			if _, block := pair.raw.(map[string]any); !block {
				continue
			}
		}
		a := Account{Name: pair.key}
		var standard *Permissions
		pair.block([]field{
			{"users", func(v value) { a.Users = takeUsers(v) }},
			{"jetstream", func(v value) { a.takeJetStream(v) }},
			{"default_permissions", func(v value) { standard = takePermissions(v) }},
			{"limits", func(v value) { a.takeLimits(v) }},
			unsupported("nkey imports exports mappings maps msg_trace trace_dest"),
		})
		for i := range a.Users {
			if a.Users[i].Permissions == nil {
				a.Users[i].Permissions = standard
			}
		}
		c.addAccount(pair, a)
	}
}

func (a *Account) takeLimits(v value) {
	a.Limits = &AccountLimits{MaxConnections: -1, MaxSubscriptions: -1, MaxPayloadBytes: -1}
	leafs := int64(0) // of which there are none
	v.block([]field{
		{"max_connections max_conn", func(v value) { v.integer64(&a.Limits.MaxConnections, -1, math.MaxInt32) }},
		{"max_subscriptions max_subs", func(v value) { v.integer64(&a.Limits.MaxSubscriptions, -1, math.MaxInt32) }},
		{"max_payload max_pay", func(v value) { v.integer64(&a.Limits.MaxPayloadBytes, -1, math.MaxInt32) }},
		{"max_leafnodes max_leafs", func(v value) { v.integer64(&leafs, -1, math.MaxInt32) }},
	})
}

func (c *Config) addAccount(v value, a Account) {
	if a.Name == GlobalAccount {
		v.problem("%q is a Reserved Account", a.Name)
		return
	}
	if a.Name == "" || strings.ContainsAny(a.Name, " \t") {
		v.problem("%q is not a valid account name", a.Name)
		return
	}
	if slices.ContainsFunc(c.Accounts, func(b Account) bool { return b.Name == a.Name }) {
		v.problem("Duplicate Account Entry: %s", a.Name)
		return
	}
	for _, other := range c.Accounts {
		for _, u := range a.Users {
			if slices.ContainsFunc(other.Users, func(w User) bool { return w.Name == u.Name }) {
				v.problem("Duplicate user %q detected", u.Name)
			}
		}
	}
	c.Accounts = append(c.Accounts, a)
}
