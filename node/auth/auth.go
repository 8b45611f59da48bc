// Package auth knows who a client is and what it may do.
//
// It promises that secrets are compared in constant time, that an unknown name and a wrong password look alike, and
// that permissions depend on the configuration and the subject alone. It does not talk to clients: what a violation
// looks like on the wire belongs to the session.
package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/bcrypt"

	"weir/transport/wire"
)

// GlobalAccount is the account of clients when no accounts are configured.
const GlobalAccount = "$G"

// redacted stands for a token wherever names of users are shown.
const redacted = "[REDACTED]"

// Identity is who a client is.
type Identity struct {
	// User is the name to be shown, empty for an anonymous client; a token is never shown.
	User string
	// Account is the name of the account that the client is bound to.
	Account string
	// Permissions are what the client may do; nil means everything.
	Permissions *Permissions

	// Limits are nil without any.
	Limits *Limits

	// The rest is of users of operators.

	// Name is that of the user for people, AccountTag that of the account, "" when Account is.
	Name, AccountTag string
	// Issuer is the key that signed the user, Tags are what the signer said of it.
	Issuer string
	Tags   []string
	// EndNanos and AccountEndNanos are when the user, and its account, are no more, in unix nanoseconds; 0: never.
	EndNanos, AccountEndNanos int64
}

// User is one configured user.
type User struct {
	// Name is the user name, unique.
	Name string
	// Password is the password, or its bcrypt hash.
	Password string
	// Account is the account's name; empty means GlobalAccount.
	Account string
	// Permissions are the user's own; nil means the defaults.
	Permissions *Permissions
	// Ways are the names of the ways in which the user may connect; empty means all.
	Ways []string
	// Limits bound the user's clients; nil does not.
	Limits *Limits
	// Nkey says that Name is a public key, and that the client has to sign what it is asked to.
	Nkey bool
}

// Override is who may connect in one way, in place of what Config says of tokens and of clients without credentials.
type Override struct {
	// User and Password are the one pair that may connect, Token is the one token; empty: there is none.
	User, Password, Token string
	// NoAuthUser is the name of the user that clients without credentials become; empty refuses them.
	NoAuthUser string
}

// Config is the authorization of a server. The zero value lets everybody do everything.
type Config struct {
	// Users are users with a password.
	Users []User
	// Token is the token or its bcrypt hash; empty without one.
	Token string
	// NoAuthUser is the name of the user that clients without credentials become; empty refuses them.
	NoAuthUser string
	// DefaultPermissions apply to users without their own; nil means everything.
	DefaultPermissions *Permissions
	// MapCertificates finds users by their certificates alone.
	MapCertificates bool
	// Trust, when it is not nil, decides about all clients; there are no users, tokens and overrides then.
	Trust *TrustConfig
	// WebSockets, when it is not nil, is about clients that connect by WebSocket. MapWebSockets is MapCertificates for them.
	WebSockets    *Override
	MapWebSockets bool
}

// Authenticator decides who clients are. It is not safe for concurrent use.
type Authenticator struct {
	users  map[string]*account
	byCert []distinguished // users whose names are distinguished names, sorted; nil unless certificates are mapped
	doors  [WebSocket + 1]door
	trust  *trust // nil: the rest counts
	nkeys  bool   // there are users with keys
	maps   bool   // certificates are mapped by some way
}

// door is what differs from way to way.
type door struct {
	token     *account
	only      *account // the one user of an override; nil: all users
	onlyName  string
	anonymous *account // who a client without credentials becomes; nil refuses it
	required  bool
	maps      bool
}

// account is a secret and the identity that it proves.
type account struct {
	secret   secret
	identity Identity
	ways     []string // empty: all
	nkey     bool     // the name is a key
	empty    bool     // there is no password
}

// mayUse reports whether it may connect in a way.
func (a *account) mayUse(w Way) bool { return len(a.ways) == 0 || slices.Contains(a.ways, w.String()) }

// New checks the configuration and returns its authenticator.
func New(config Config) (*Authenticator, error) {
	a := &Authenticator{users: make(map[string]*account, len(config.Users))}
	if config.Trust != nil {
		if len(config.Users) > 0 || config.Token != "" || config.NoAuthUser != "" || config.WebSockets != nil {
			return nil, errors.New("operators do not allow users to be configured directly")
		}
		var err error
		a.trust, err = newTrust(config.Trust)
		return a, err
	}
	for _, user := range config.Users {
		if user.Name == "" {
			return nil, errors.New("user without a name")
		}
		if a.users[user.Name] != nil {
			//lint:ignore ST1005 The text is known to operators.
			return nil, fmt.Errorf("Duplicate user %q detected", user.Name)
		}
		identity := Identity{User: user.Name, Account: user.Account, Permissions: user.Permissions, Limits: user.Limits}
		if identity.Account == "" {
			identity.Account = GlobalAccount
		}
		if identity.Permissions == nil {
			identity.Permissions = config.DefaultPermissions
		}
		a.users[user.Name] = &account{
			secret: newSecret(user.Password), identity: identity, ways: user.Ways, nkey: user.Nkey, empty: user.Password == "",
		}
		a.nkeys = a.nkeys || user.Nkey
	}
	standard := &a.doors[Standard]
	if config.Token != "" {
		if len(config.Users) > 0 {
			//lint:ignore ST1005 The text is known to operators.
			return nil, errors.New("Cannot have a user/pass and token")
		}
		standard.token = tokenAccount(config.Token, config.DefaultPermissions)
	}
	standard.required = len(config.Users) > 0 || standard.token != nil
	if config.MapCertificates || config.MapWebSockets {
		a.byCert = distinguish(a.users)
	}
	if !standard.required {
		standard.anonymous = &account{identity: Identity{Account: GlobalAccount, Permissions: config.DefaultPermissions}}
	}
	if err := a.setAnonymous(standard, config.NoAuthUser); err != nil {
		return nil, err
	}
	web := &a.doors[WebSocket]
	*web = *standard
	standard.maps, web.maps = config.MapCertificates, config.MapWebSockets
	a.maps = standard.maps || web.maps
	if o := config.WebSockets; o != nil {
		if err := a.override(web, o, config.DefaultPermissions); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func tokenAccount(token string, permissions *Permissions) *account {
	return &account{secret: newSecret(token), identity: Identity{User: redacted, Account: GlobalAccount, Permissions: permissions}}
}

// setAnonymous has clients without credentials become a user; without a name it changes nothing.
func (a *Authenticator) setAnonymous(d *door, name string) error {
	if name == "" {
		return nil
	}
	user := a.users[name]
	if user == nil {
		return fmt.Errorf("no_auth_user: %q not present as user in authorization block", name)
	}
	d.anonymous = user
	return nil
}

// override changes who may come by one way.
func (a *Authenticator) override(d *door, o *Override, permissions *Permissions) error {
	d.token, d.anonymous, d.required = nil, nil, true
	switch {
	case o.Token != "":
		d.token = tokenAccount(o.Token, permissions)
	case o.User != "":
		identity := Identity{User: o.User, Account: GlobalAccount, Permissions: permissions}
		d.only, d.onlyName = &account{secret: newSecret(o.Password), identity: identity}, o.User
	}
	return a.setAnonymous(d, o.NoAuthUser)
}

// Secured reports whether users or a token are configured for a way, so that clients are expected to say who they are.
func (a *Authenticator) Secured(w Way) bool { return a.trust != nil || a.doors[w].required }

// Signs reports whether clients may be asked to sign a nonce.
func (a *Authenticator) Signs() bool { return a.trust != nil || a.nkeys }

// Revoked reports whether a client that was let in once is refused because what it was given was taken back.
func (p *Proof) Revoked() bool { return errors.Is(p.Refusal, errRevoked) }

// Required reports whether a client has to send credentials before anything else.
func (a *Authenticator) Required(w Way) bool {
	_, anonymous := a.Anonymous(w)
	return !anonymous
}

// Anonymous returns who a client is that has sent no credentials; false when it has to.
func (a *Authenticator) Anonymous(w Way) (Identity, bool) {
	user := a.doors[w].anonymous
	if user == nil || !user.mayUse(w) {
		return Identity{}, false
	}
	return user.identity, true
}

// Authenticate decides by the credentials in CONNECT, or by what the client proved, who the client is; false refuses it.
// Credentials that no configuration asks for are ignored.
func (a *Authenticator) Authenticate(c *wire.Connect, p *Proof) (Identity, bool) {
	if a.trust != nil {
		var identity Identity
		identity, p.Refusal = a.trust.authenticate(c, p)
		return identity, p.Refusal == nil
	}
	d := &a.doors[p.Way]
	bare := c.User == "" && c.Password == "" && c.Token == "" && c.Nkey == ""
	if !d.required || (bare && d.anonymous != nil) {
		return a.Anonymous(p.Way)
	}
	user := a.user(d, c, p)
	if user == nil || !user.mayUse(p.Way) {
		return Identity{}, false
	}
	return user.identity, true
}

// user finds the user that a client proves to be; nil for none.
func (a *Authenticator) user(d *door, c *wire.Connect, p *Proof) *account {
	if a.nkeys && d.token == nil && d.only == nil && c.Nkey != "" {
		user := a.users[c.Nkey]
		if user == nil || !user.nkey || !signed(c.Nkey, p.Nonce, c.Sig) {
			return nil
		}
		return user
	}
	if d.maps && d.token == nil {
		if user := a.holder(p.Certificate); user != nil && !user.nkey {
			return user
		}
		return nil
	}
	proof, given := d.token, c.Token
	switch {
	case proof != nil:
	case d.only != nil && c.User == d.onlyName:
		proof, given = d.only, c.Password
	case d.only == nil:
		proof, given = a.users[c.User], c.Password
	}
	// Keys have no password, and users without one are known by their certificates where these are mapped.
	if proof == nil || proof.nkey || proof.empty && a.maps || !proof.secret.matches(given) {
		return nil
	}
	return proof
}

// secret is a password or token, or its bcrypt hash.
type secret struct {
	// hash is the bcrypt hash, nil for a plain secret.
	hash []byte
	// sum is the SHA-256 of a plain secret; of the password that last matched hash otherwise, so that a client that
	// comes back costs no bcrypt.
	sum [sha256.Size]byte
	// summed says that sum means something.
	summed bool
}

func newSecret(configured string) secret {
	if IsBcrypt(configured) {
		return secret{hash: []byte(configured)}
	}
	return secret{sum: sha256.Sum256([]byte(configured)), summed: true}
}

// matches reports whether the client gave the right secret. Sums of equal length are compared, so that not even the
// length of a secret shows in the time that this takes.
func (s *secret) matches(given string) bool {
	sum := sha256.Sum256([]byte(given))
	if s.summed && subtle.ConstantTimeCompare(sum[:], s.sum[:]) == 1 {
		return true
	}
	if s.hash == nil || bcrypt.CompareHashAndPassword(s.hash, []byte(given)) != nil {
		return false
	}
	s.sum, s.summed = sum, true
	return true
}

// IsBcrypt reports whether a configured secret is a bcrypt hash: "$2", one of a, b, x, y, "$", two digits, "$".
func IsBcrypt(s string) bool {
	if len(s) < 7 || s[:2] != "$2" || s[3] != '$' || s[6] != '$' {
		return false
	}
	switch s[2] {
	case 'a', 'b', 'x', 'y':
	default:
		return false
	}
	return s[4] >= '0' && s[4] <= '9' && s[5] >= '0' && s[5] <= '9'
}
