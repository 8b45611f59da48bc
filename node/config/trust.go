package config

import (
	"strings"

	"github.com/nats-io/nkeys"

	"weir/node/auth"
)

// Trust says which operators sign accounts, and which accounts there are.
type Trust struct {
	// Operators are JWTs of operators, or names of files that hold them.
	Operators []string
	// Keys are public keys of operators.
	Keys []string
	// Resolver says that accounts are those of Preload.
	Resolver bool
	// Preload are the JWTs of accounts in the order of the file.
	Preload []string
	// Pinned, when there are any, are the only accounts whose users may connect.
	Pinned []string
}

// Enabled reports whether operators decide who may connect.
func (t *Trust) Enabled() bool { return len(t.Operators) > 0 || len(t.Keys) > 0 }

func (t *Trust) takeKeys(v value) {
	t.Keys = v.texts()
	for _, key := range t.Keys {
		if !nkeys.IsValidPublicOperatorKey(key) {
			v.problem("trusted Keys %q are required to be a valid public operator nkey", key)
		}
	}
}

// takeResolver takes the one resolver that there is.
func (t *Trust) takeResolver(v value) {
	text, ok := v.raw.(string)
	switch {
	case !ok:
		v.problem("resolver of this type is not supported by this version of weir: only MEMORY is")
	case strings.EqualFold(text, "MEMORY"), strings.EqualFold(text, "MEM"):
		t.Resolver = true
	default:
		v.problem("resolver %q is not supported by this version of weir: only MEMORY is", text)
	}
}

func (t *Trust) takePreload(v value) {
	pairs, _ := v.entries("a block of account JWTs by public keys")
	t.Preload = nil
	for _, pair := range pairs {
		text := ""
		pair.text(&text)
		if text == "" {
			continue
		}
		a, err := auth.DecodeAccount(text)
		switch {
		case err != nil:
			pair.problem("%v", err)
		case a.Claims.Subject != pair.key:
			pair.problem("account JWT is that of %s", a.Claims.Subject)
		default:
			t.Preload = append(t.Preload, text)
		}
	}
}

// checkTrust reports what does not fit together about operators.
func (c *Config) checkTrust(add func(string, ...any)) {
	t := &c.Trust
	for _, key := range t.Pinned {
		if !nkeys.IsValidPublicAccountKey(key) {
			add("pinned account key %q is not a valid public account nkey", key)
		}
	}
	if !t.Enabled() {
		switch {
		case t.Resolver || len(t.Preload) > 0 || len(t.Pinned) > 0:
			add("resolver requires operators or trusted_keys")
		case c.WebSocket.JWTCookie != "" && c.WebSocket.Port != 0:
			add("trusted operators or trusted keys configuration is required for JWT authentication via cookie %q", c.WebSocket.JWTCookie)
		}
		return
	}
	a := &c.Authorization
	switch {
	case !t.Resolver:
		add("operators require an account resolver to be configured")
	case len(c.Accounts) > 0:
		add("operators do not allow Accounts to be configured directly")
	case len(a.Users) > 0 || a.User != "" || a.Token != "":
		add("operators do not allow users to be configured directly")
	case len(t.Operators) > 0 && len(t.Keys) > 0:
		add("conflicting options for 'TrustedKeys' and 'TrustedOperators'")
	case c.NoAuthUser != "" || c.WebSocket.Overrides():
		add("no_auth_user, and authorization of websocket, are not compatible with Trusted Operator")
	case c.TLS != nil && c.TLS.VerifyAndMap || c.WebSocket.TLS != nil && c.WebSocket.TLS.VerifyAndMap:
		add("verify_and_map is not compatible with Trusted Operator")
	}
}
