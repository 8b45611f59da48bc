package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// identity is a pair of keys of a test.
type identity struct {
	nkeys.KeyPair
	public, seed string
}

func newIdentity(t *testing.T, create func() (nkeys.KeyPair, error)) identity {
	t.Helper()
	pair, err := create()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	return identity{pair, public, string(seed)}
}

func (i identity) signs(t *testing.T, claims jwt.Claims) string {
	t.Helper()
	text, err := claims.Encode(i)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// user is a new user of the account, as the account says that it is.
func (i identity) user(t *testing.T, change func(*jwt.UserClaims)) (nats.Option, string, *jwt.UserClaims) {
	t.Helper()
	own := newIdentity(t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(own.public)
	change(claims)
	text := i.signs(t, claims)
	return nats.UserJWTAndSeed(text, own.seed), text, claims
}

func nobody(*jwt.UserClaims) {}

// TestOperatorsDecideWhoConnects has an operator with a system account and one more, whose limits clients meet; then one of
// its users is revoked, and another one's time ends.
func TestOperatorsDecideWhoConnects(t *testing.T) {
	dir := t.TempDir()
	operator, system, acme := newIdentity(t, nkeys.CreateOperator), newIdentity(t, nkeys.CreateAccount), newIdentity(t, nkeys.CreateAccount)
	boss := jwt.NewOperatorClaims(operator.public)
	boss.SystemAccount = system.public
	if err := os.WriteFile(filepath.Join(dir, "op.jwt"), []byte(operator.signs(t, boss)), 0o600); err != nil {
		t.Fatal(err)
	}
	sys, tenant := jwt.NewAccountClaims(system.public), jwt.NewAccountClaims(acme.public)
	sys.Exports.Add(&jwt.Export{Subject: "$SYS.REQ.ACCOUNT.*.*", Type: jwt.Service})
	tenant.Name = "acme"
	tenant.Limits.Conn, tenant.Limits.Payload, tenant.Limits.DiskStorage, tenant.Limits.Streams, tenant.Limits.Consumer = 3, 1000, 1<<20, 1, -1
	file := filepath.Join(dir, "a.conf")
	text := func() string {
		return fmt.Sprintf(`operator: %q, resolver: MEMORY
			resolver_preload { %s: %q, %s: %q }
			websocket { listen: "127.0.0.1:-1", no_tls: true, jwt_cookie: j }
			`, filepath.Join(dir, "op.jwt"), system.public, operator.signs(t, sys), acme.public, operator.signs(t, tenant))
	}
	if err := os.WriteFile(file, []byte(text()), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, dir, "-c", file, "-D")
	joe, _, _ := acme.user(t, nobody)
	first := s.connect(joe, nats.Name("first"))
	if err := first.Flush(); err != nil || first.MaxPayload() != 1000 {
		t.Errorf("payload is %d", first.MaxPayload())
	}
	js, err := first.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.AddStream(&nats.StreamConfig{Name: "A", Subjects: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.AddStream(&nats.StreamConfig{Name: "B", Subjects: []string{"b"}}); err == nil || !strings.Contains(err.Error(), "maximum number of streams reached") {
		t.Errorf("a second stream: %v", err)
	}
	ann, _, claims := acme.user(t, func(u *jwt.UserClaims) { u.Pub.Allow.Add("a"); u.Sub.Allow.Add("_INBOX.>"); u.Name = "ann" })
	lost := make(chan error, 8)
	second := s.connect(ann, nats.NoReconnect(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { lost <- err }))
	other, err := second.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Publish("a", []byte("x")); err != nil {
		t.Error(err)
	}
	_, bearer, _ := acme.user(t, func(u *jwt.UserClaims) {
		u.BearerToken = true
		u.AllowedConnectionTypes.Add(jwt.ConnectionTypeWebsocket)
	})
	page := nats.WebSocketConnectionHeaders(http.Header{"Cookie": []string{"j=" + bearer}})
	web, err := nats.Connect(s.webURL(), page)
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	if _, err := nats.Connect(s.url, joe); !errors.Is(err, nats.ErrMaxAccountConnectionsExceeded) {
		t.Errorf("a fourth client: %v", err)
	}
	stranger, _, _ := newIdentity(t, nkeys.CreateAccount).user(t, nobody)
	for name, option := range map[string]nats.Option{"stranger": stranger, "nobody": nats.Name(""), "password": nats.UserInfo("a", "b")} {
		if _, err := nats.Connect(s.url, option); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.await("authentication error - JWT User: account of the user JWT is not known")
	admin, _, _ := system.user(t, nobody)
	if m, err := s.connect(admin).Request("$SYS.REQ.SERVER.PING", nil, patience); err != nil || !strings.Contains(string(m.Data), `"server":{"name":"N`) {
		t.Errorf("the system account is told %v, %v", m, err)
	}
	shown := get(t, s.http+"/connz?auth=1")
	for _, want := range []string{`"issuer_key": "` + acme.public, `"name_tag": "acme"`, `"authorized_user": "` + claims.Subject, `"type": "websocket"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("connz does not show %s:\n%s", want, shown)
		}
	}
	if strings.Contains(shown+s.log.String(), bearer) {
		t.Error("a bearer token is shown")
	}

	tenant.RevokeAt(claims.Subject, time.Now())
	s.reload(file, text(), "Reloaded: operators and accounts")
	if err := <-lost; !errors.Is(err, nats.ErrAuthRevoked) {
		t.Errorf("a user who is revoked loses the connection by %v", err)
	}
	if _, err := nats.Connect(s.url, ann); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a user who is revoked: %v", err)
	}
	soon, _, _ := acme.user(t, func(u *jwt.UserClaims) { u.Expires = time.Now().Add(2 * time.Second).Unix() })
	s.connect(soon, nats.NoReconnect(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { lost <- err }))
	if err := <-lost; !errors.Is(err, nats.ErrAuthExpired) {
		t.Errorf("a user whose time has come loses the connection by %v", err)
	}
	tenant.Limits.Streams = 2
	s.reload(file, text(), "config reload not supported for Accounts")
	if err := first.Flush(); err != nil {
		t.Error(err)
	}
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestOperatorsThatDoNotFitAreRefused checks configurations whose JWTs are read with the files.
func TestOperatorsThatDoNotFitAreRefused(t *testing.T) {
	dir := t.TempDir()
	operator, account := newIdentity(t, nkeys.CreateOperator), newIdentity(t, nkeys.CreateAccount)
	good := func(change func(*jwt.OperatorClaims)) string {
		claims := jwt.NewOperatorClaims(operator.public)
		change(claims)
		return operator.signs(t, claims)
	}
	preload := func(by identity) string {
		return fmt.Sprintf("resolver_preload { %s: %s }", account.public, by.signs(t, jwt.NewAccountClaims(account.public)))
	}
	strict := newIdentity(t, nkeys.CreateOperator)
	for _, c := range []struct{ text, want string }{
		{"operator: " + good(func(*jwt.OperatorClaims) {}) + "\n" + preload(operator), ""},
		{"operator: /nonexistent.jwt", "error parsing operator JWT: stat /nonexistent.jwt: no such file"},
		{"operator: eyJhbGciOiJub25lIn0", "error parsing operator JWT: "},
		{"operator: " + good(func(o *jwt.OperatorClaims) { o.AssertServerVersion = "3.0.0" }), "expects version 3.0.0"},
		{"operator: " + good(func(o *jwt.OperatorClaims) { o.Expires = 1 }), "claim is expired"},
		{"operator: " + good(func(o *jwt.OperatorClaims) { o.SystemAccount = account.public }), "error resolving system account " + account.public},
		{"operator: " + good(func(o *jwt.OperatorClaims) { o.SystemAccount = account.public }) + "\nsystem_account: X", "must be identical"},
		{"operator: " + good(func(*jwt.OperatorClaims) {}) + "\n" + preload(account), "is not signed by a trusted operator"},
		{"operator: " + good(func(o *jwt.OperatorClaims) { o.SigningKeys.Add(strict.public); o.StrictSigningKeyUsage = true }) + "\n" + preload(strict), ""},
		{"operator: " + good(func(o *jwt.OperatorClaims) { o.SigningKeys.Add(strict.public); o.StrictSigningKeyUsage = true }) + "\n" + preload(operator),
			"is not signed by a trusted operator"},
	} {
		file := filepath.Join(dir, "a.conf")
		if err := os.WriteFile(file, []byte(c.text+"\nresolver: MEMORY\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, code := command(t, "-t", "-c", file)
		if (code != 0) != (c.want != "") || !strings.Contains(out, c.want) {
			t.Errorf("%.40s: exit code %d, %s; want %s", c.text, code, out, c.want)
		}
	}
}
