package auth

import (
	"errors"
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// Account is an account as its operator signed it.
type Account struct {
	// Claims are what was signed. They are only read.
	Claims *jwt.AccountClaims

	permissions *Permissions // of users without their own
}

// DecodeAccount reads the JWT of an account and checks everything but who signed it, and when. What this version does not
// have is refused, so that no account is less than it says. Exports are accepted: without imports they are to nobody.
func DecodeAccount(text string) (*Account, error) {
	claims, err := jwt.DecodeAccountClaims(text)
	if err != nil {
		return nil, errors.New("invalid account JWT") // the text may be anything, and is not to be shown
	}
	refused := func(what string) (*Account, error) {
		return nil, fmt.Errorf("account %s has %s, which are not supported by this version of weir", claims.Subject, what)
	}
	switch {
	case !nkeys.IsValidPublicAccountKey(claims.Subject):
		return nil, errors.New("invalid account JWT: its subject is not the public key of an account")
	case len(claims.Imports) > 0:
		return refused("imports")
	case len(claims.Mappings) > 0:
		return refused("mappings")
	case len(claims.Limits.JetStreamTieredLimits) > 0:
		return refused("tiered limits of JetStream")
	case len(claims.Authorization.AuthUsers) > 0 || len(claims.Authorization.AllowedAccounts) > 0:
		return refused("users of an authorization callout")
	case claims.Trace != nil:
		return refused("traces of messages")
	}
	results := jwt.CreateValidationResults()
	claims.Account.Validate(claims, results)
	if results.IsBlocking(false) {
		return nil, fmt.Errorf("account %s: %w", claims.Subject, errors.Join(results.Errors()...))
	}
	a := &Account{Claims: claims}
	if a.permissions, err = permissionsOf(&claims.DefaultPermissions); err != nil {
		return nil, fmt.Errorf("account %s: %w", claims.Subject, err)
	}
	return a, nil
}

// tag is the name for people.
func (a *Account) tag() string {
	if a.Claims.Name != "" {
		return a.Claims.Name
	}
	return a.Claims.Subject
}

// revoked reports whether what a user was given at a time, in seconds, no longer counts.
func (a *Account) revoked(user string, issued int64) bool {
	for _, name := range []string{jwt.All, user} {
		if at, found := a.Claims.Revocations[name]; found && at >= issued {
			return true
		}
	}
	return false
}

// permissionsOf makes permissions of what was signed; nil when that says nothing.
func permissionsOf(p *jwt.Permissions) (*Permissions, error) {
	if len(p.Pub.Allow)+len(p.Pub.Deny)+len(p.Sub.Allow)+len(p.Sub.Deny) == 0 && p.Resp == nil {
		return nil, nil
	}
	config := PermissionsConfig{Publish: Rules{Allow: p.Pub.Allow, Deny: p.Pub.Deny}, Subscribe: Rules{Allow: p.Sub.Allow, Deny: p.Sub.Deny}}
	if p.Resp != nil {
		responses := Responses{Max: p.Resp.MaxMsgs, ExpiresNanos: int64(p.Resp.Expires)}
		if responses.Max == 0 {
			responses.Max = DefaultResponses.Max
		}
		if responses.ExpiresNanos == 0 {
			responses.ExpiresNanos = DefaultResponses.ExpiresNanos
		}
		config.Responses = &responses
	}
	return NewPermissions(config)
}
