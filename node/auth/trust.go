package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"weir/transport/wire"
)

// TrustConfig says whose word counts about accounts and their users.
type TrustConfig struct {
	// Keys are the public keys of operators. What they have signed about accounts counts.
	Keys []string
	// Accounts are the accounts that there are. Those that no key has signed let nobody in.
	Accounts []*Account
	// Pinned, when there are any, are the only accounts whose users may connect.
	Pinned []string
	// Zone finds a time zone by its name; "" is that of the server. nil knows none, and users who may connect only at some
	// times of a day may not.
	Zone func(name string) (*time.Location, error)
}

// trust decides about users by what operators and accounts have signed.
type trust struct {
	TrustConfig
	accounts map[string]*Account
}

func newTrust(config *TrustConfig) (*trust, error) {
	t := &trust{TrustConfig: *config, accounts: make(map[string]*Account, len(config.Accounts))}
	for _, key := range config.Keys {
		if !nkeys.IsValidPublicOperatorKey(key) {
			return nil, fmt.Errorf("trusted Keys %q are required to be a valid public operator nkey", key)
		}
	}
	for _, a := range config.Accounts {
		t.accounts[a.Claims.Subject] = a
	}
	return t, nil
}

// Why users are not let in, as the operator is told. None of it says anything that is secret.
var (
	errNoJWT      = errors.New("authentication requires a user JWT")
	errJWT        = errors.New("user JWT not valid")
	errUserTime   = errors.New("user JWT no longer, or not yet, valid")
	errPinned     = errors.New("account is not listed as a pinned account")
	errAccount    = errors.New("account of the user JWT is not known")
	errOperator   = errors.New("account JWT not signed by trusted operator")
	errAccountEnd = errors.New("account JWT has expired")
	errIssuer     = errors.New("issuer of the user JWT is not known")
	errBearer     = errors.New("account does not allow bearer tokens")
	errWay        = errors.New("connection type not allowed")
	errSignature  = errors.New("signature not verified")
	errRevoked    = errors.New("user authentication revoked")
	errSource     = errors.New("address of the client is not allowed")
	errDayTime    = errors.New("outside of the times to connect")
	errProxy      = errors.New("user has to connect through a proxy, which this version does not know")
)

// secondNanos converts the times of JWTs.
const secondNanos = int64(time.Second)

// authenticate decides by the user JWT who the client is.
func (t *trust) authenticate(c *wire.Connect, p *Proof) (Identity, error) {
	if c.JWT == "" {
		return Identity{}, errNoJWT
	}
	user, err := jwt.DecodeUserClaims(c.JWT)
	if err != nil {
		return Identity{}, errJWT // not why: that may quote what the client sent
	}
	results := jwt.CreateValidationResults()
	user.User.Validate(results)
	if results.IsBlocking(false) {
		return Identity{}, errJWT
	}
	if !counts(user.Claims(), p.Wall) {
		return Identity{}, errUserTime
	}
	a, err := t.accountOf(user, p.Wall)
	if err != nil {
		return Identity{}, err
	}
	if err := applyScope(user, a); err != nil {
		return Identity{}, err
	}
	end, err := t.check(user, a, c, p)
	if err != nil {
		return Identity{}, err
	}
	return identityOf(user, a, end)
}

// counts reports whether the time is within that of claims.
func counts(c *jwt.ClaimsData, wall int64) bool {
	now := wall / secondNanos
	return (c.Expires == 0 || now < c.Expires) && (c.NotBefore == 0 || now >= c.NotBefore)
}

// accountOf finds the account that a user is said to be of, and checks who signed what.
func (t *trust) accountOf(user *jwt.UserClaims, wall int64) (*Account, error) {
	name := user.IssuerAccount
	if name == "" {
		name = user.Issuer
	}
	a := t.accounts[name]
	switch {
	case len(t.Pinned) > 0 && !slices.Contains(t.Pinned, name):
		return nil, errPinned
	case a == nil:
		return nil, errAccount
	case !slices.Contains(t.Keys, a.Claims.Issuer):
		return nil, errOperator
	case user.Issuer != name && !a.Claims.SigningKeys.Contains(user.Issuer):
		return nil, errIssuer
	case !counts(a.Claims.Claims(), wall):
		return nil, errAccountEnd
	}
	return a, nil
}

// check asks everything else of a user. It returns until when the user may stay, in unix nanoseconds; 0 for ever.
func (t *trust) check(user *jwt.UserClaims, a *Account, c *wire.Connect, p *Proof) (end int64, err error) {
	switch {
	case user.ProxyRequired:
		return 0, errProxy
	case user.BearerToken && a.Claims.Limits.DisallowBearer:
		return 0, errBearer
	case len(user.AllowedConnectionTypes) > 0 && !slices.ContainsFunc(user.AllowedConnectionTypes, func(name string) bool {
		return strings.EqualFold(name, p.Way.String())
	}):
		return 0, errWay
	case !user.BearerToken && !signed(user.Subject, p.Nonce, c.Sig):
		return 0, errSignature
	case a.revoked(user.Subject, user.IssuedAt):
		return 0, errRevoked
	case !fromSource(user.Src, p.Address):
		return 0, errSource
	}
	end = user.Expires * secondNanos
	if len(user.Times) == 0 {
		return end, nil
	}
	until := t.dayTimeEnd(user, p.Wall)
	if until == 0 {
		return 0, errDayTime
	}
	if end == 0 || until < end {
		end = until
	}
	return end, nil
}

// fromSource reports whether one of the networks holds the address; no networks hold all.
func fromSource(networks jwt.CIDRList, address string) bool {
	if len(networks) == 0 {
		return true
	}
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(networks, func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Contains(ip.Unmap())
	})
}

// dayTimeEnd returns when the present one of the times at which a user may connect ends; 0 when there is none.
func (t *trust) dayTimeEnd(user *jwt.UserClaims, wall int64) int64 {
	if t.Zone == nil {
		return 0
	}
	zone, err := t.Zone(user.Locale)
	if err != nil {
		return 0
	}
	now := time.Unix(0, wall).In(zone)
	year, month, day := now.Date()
	on := func(clock string, days int) (time.Time, bool) {
		at, err := time.Parse(time.TimeOnly, clock)
		return time.Date(year, month, day+days, at.Hour(), at.Minute(), at.Second(), 0, zone), err == nil
	}
	for _, span := range user.Times {
		for _, first := range []int{-1, 0} { // a span may have begun the day before
			start, ok := on(span.Start, first)
			end, also := on(span.End, first)
			if !ok || !also {
				break
			}
			if !start.Before(end) {
				end, _ = on(span.End, first+1)
			}
			if !now.Before(start) && now.Before(end) {
				return end.UnixNano()
			}
		}
	}
	return 0
}

// identityOf is who a user is that has passed all checks.
func identityOf(user *jwt.UserClaims, a *Account, end int64) (Identity, error) {
	permissions, err := permissionsOf(&user.Permissions)
	if err != nil {
		return Identity{}, errJWT
	}
	if permissions == nil {
		permissions = a.permissions
	}
	limits := &a.Claims.Limits
	return Identity{
		User: user.Subject, Name: user.Name, Account: a.Claims.Subject, AccountTag: a.tag(), Permissions: permissions, Issuer: user.Issuer, Tags: user.Tags,
		EndNanos: end, AccountEndNanos: a.Claims.Expires * secondNanos,
		Limits: &Limits{
			Subscriptions: lower(user.Subs, limits.Subs), PayloadBytes: lower(user.Limits.Payload, limits.Payload),
			Connections: limits.Conn,
		},
	}, nil
}

// lower is the lower one of two limits; negative ones do not limit.
func lower(a, b int64) int64 {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}
