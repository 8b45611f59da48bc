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
}

// Authenticator decides who clients are. It is not safe for concurrent use.
type Authenticator struct {
	users     map[string]*account
	token     *account
	anonymous *Identity
	required  bool
	byCert    []distinguished // users whose names are distinguished names, sorted; nil unless certificates are mapped
	maps      bool
}

// account is a secret and the identity that it proves.
type account struct {
	secret   secret
	identity Identity
}

// New checks the configuration and returns its authenticator.
func New(config Config) (*Authenticator, error) {
	a := &Authenticator{users: make(map[string]*account, len(config.Users))}
	for _, user := range config.Users {
		if user.Name == "" {
			return nil, errors.New("user without a name")
		}
		if a.users[user.Name] != nil {
			//lint:ignore ST1005 The text is known to operators.
			return nil, fmt.Errorf("Duplicate user %q detected", user.Name)
		}
		identity := Identity{User: user.Name, Account: user.Account, Permissions: user.Permissions}
		if identity.Account == "" {
			identity.Account = GlobalAccount
		}
		if identity.Permissions == nil {
			identity.Permissions = config.DefaultPermissions
		}
		a.users[user.Name] = &account{secret: newSecret(user.Password), identity: identity}
	}
	if config.Token != "" {
		if len(config.Users) > 0 {
			//lint:ignore ST1005 The text is known to operators.
			return nil, errors.New("Cannot have a user/pass and token")
		}
		identity := Identity{User: redacted, Account: GlobalAccount, Permissions: config.DefaultPermissions}
		a.token = &account{secret: newSecret(config.Token), identity: identity}
	}
	a.required = len(config.Users) > 0 || a.token != nil
	if a.maps = config.MapCertificates; a.maps {
		a.byCert = distinguish(a.users)
	}
	if !a.required {
		a.anonymous = &Identity{Account: GlobalAccount, Permissions: config.DefaultPermissions}
	}
	if config.NoAuthUser != "" {
		user := a.users[config.NoAuthUser]
		if user == nil {
			return nil, fmt.Errorf("no_auth_user: %q not present as user in authorization block", config.NoAuthUser)
		}
		a.anonymous = &user.identity
	}
	return a, nil
}

// Secured reports whether users or a token are configured, so that clients are expected to say who they are.
func (a *Authenticator) Secured() bool { return a.required }

// Required reports whether a client has to send credentials before anything else.
func (a *Authenticator) Required() bool { return a.anonymous == nil }

// Anonymous returns who a client is that has sent no credentials; false when it has to.
func (a *Authenticator) Anonymous() (Identity, bool) {
	if a.anonymous == nil {
		return Identity{}, false
	}
	return *a.anonymous, true
}

// Authenticate decides by the credentials in CONNECT, or by the certificate that the client proved to hold, nil without
// one, who the client is; false refuses it. Credentials that no configuration asks for are ignored.
func (a *Authenticator) Authenticate(c *wire.Connect, held *Certificate) (Identity, bool) {
	bare := c.User == "" && c.Password == "" && c.Token == "" && c.Nkey == ""
	if !a.required || (bare && a.anonymous != nil) {
		return a.Anonymous()
	}
	if a.maps && a.token == nil {
		user := a.holder(held)
		if user == nil {
			return Identity{}, false
		}
		return user.identity, true
	}
	proof, given := a.token, c.Token
	if proof == nil {
		proof, given = a.users[c.User], c.Password
	}
	if proof == nil || !proof.secret.matches(given) {
		return Identity{}, false
	}
	return proof.identity, true
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
