package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"weir/node/auth"
	"weir/node/event"
	"weir/transport/wire"
)

// trusted is a configuration with one account, and a user of it in the words of CONNECT.
func trusted(t *testing.T, now int64, change func(*jwt.AccountClaims, *jwt.UserClaims)) (*Config, string) {
	t.Helper()
	var pairs []nkeys.KeyPair
	var keys []string
	for _, create := range []func() (nkeys.KeyPair, error){nkeys.CreateOperator, nkeys.CreateAccount, nkeys.CreateUser} {
		pair, err := create()
		if err != nil {
			t.Fatal(err)
		}
		key, err := pair.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		pairs, keys = append(pairs, pair), append(keys, key)
	}
	tenant, user := jwt.NewAccountClaims(keys[1]), jwt.NewUserClaims(keys[2])
	user.BearerToken = true
	change(tenant, user)
	account, err := tenant.Encode(pairs[0])
	if err != nil {
		t.Fatal(err)
	}
	token, err := user.Encode(pairs[1])
	if err != nil {
		t.Fatal(err)
	}
	known, err := auth.DecodeAccount(account)
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig()
	config.AuthTimeoutNanos = int64(time.Second)
	if config.Auth, err = auth.New(auth.Config{Trust: &auth.TrustConfig{Keys: keys[:1], Accounts: []*auth.Account{known}}}); err != nil {
		t.Fatal(err)
	}
	return config, fmt.Sprintf("CONNECT {\"verbose\":false,\"pedantic\":false,\"protocol\":1,\"jwt\":%q}\r\n", token)
}

// TestSessionsKeepToWhatWasSigned meets the limits of a user and of its account, one after the other.
func TestSessionsKeepToWhatWasSigned(t *testing.T) {
	b := newBroker()
	end := b.now.Wall/1e9 + 100
	config, connect := trusted(t, b.now.Wall, func(a *jwt.AccountClaims, u *jwt.UserClaims) {
		a.Limits.Conn, a.Limits.Payload, a.Expires, u.Subs = 2, 5, end, 1
	})
	var err error
	first := b.open(1, config)
	if text := string(first.received); !strings.Contains(text, `"auth_required":true`) || !strings.Contains(text, `"nonce":"n1"`) {
		t.Errorf("a client is told %s", text)
	}
	first.received = nil
	b.send(first, []byte(connect+"SUB a 1\r\nSUB b 2\r\nPING\r\nPUB a 5\r\n12345\r\n"))
	if text := string(first.received); !strings.Contains(text, "-ERR 'maximum subscriptions exceeded'\r\n") || !strings.Contains(text, `"max_payload":5`) ||
		!strings.Contains(text, "MSG a 1 5\r\n12345") {
		t.Errorf("a client is told %s", text)
	}
	b.send(first, []byte("PUB a 6\r\n123456\r\n"))
	if !first.closed || first.reason != wire.MaxPayloadExceeded {
		t.Errorf("a large message ends the session for %v", first.reason)
	}
	second, third, fourth := b.open(2, config), b.open(3, config), b.open(4, config)
	b.send(second, []byte(connect))
	b.send(third, []byte(connect+connect)) // it proves itself again, and is still one client
	b.send(fourth, []byte(connect))
	if second.closed || third.closed || fourth.reason != wire.MaxAccountConnectionsExceeded ||
		!strings.HasSuffix(string(fourth.received), "-ERR 'maximum account active connections exceeded'\r\n") {
		t.Errorf("the bound of connections: %v, %v, %v", second.reason, third.reason, fourth.reason)
	}
	tight := *config
	if tight.Auth, err = auth.New(auth.Config{NoAuthUser: "u", Users: []auth.User{{Name: "u", Account: "A", Limits: &auth.Limits{Connections: 1, PayloadBytes: -1, Subscriptions: -1}}}}); err != nil {
		t.Fatal(err)
	}
	one, two := b.open(5, &tight), b.open(6, &tight)
	for _, c := range []*client{two, one} {
		c.session.KeepBound()
	}
	b.drain()
	if one.closed || two.reason != wire.MaxAccountConnectionsExceeded {
		t.Errorf("of two clients where one may be: %v, %v", one.reason, two.reason)
	}
	left := int64(100e9)
	if at := second.session.Deadline(); at > b.now.Mono+left {
		t.Errorf("an account that ends at %d is looked at at %d", b.now.Mono+left, at)
	}
	for _, step := range []int64{left - 1, 1} {
		b.now.Mono += step
		b.now.Wall += step
		second.session.Tick()
		b.drain()
	}
	if second.reason != wire.AuthenticationExpired || !strings.HasSuffix(string(second.received), "-ERR 'Account Authentication Expired'\r\n") {
		t.Errorf("an account that ends: %v, %s", second.reason, second.received)
	}
}

// TestWebSocketsAreToldWhereTheyAre opens a connection that becomes a WebSocket, with credentials in a cookie, and one that is
// closed before it is one.
func TestWebSocketsAreToldWhereTheyAre(t *testing.T) {
	b := newBroker()
	config := testConfig()
	var err error
	if config.Auth, err = auth.New(auth.Config{Users: []auth.User{{Name: "u", Password: "p", Ways: []string{"WEBSOCKET"}}}}); err != nil {
		t.Fatal(err)
	}
	config.Info.ConnectURLs, config.WebURLs = []string{"a:4222"}, []string{"a:80", "b:80"}
	config.WebSockets = event.Door{Host: "a", Port: 80, Protected: true, AuthTimeoutNanos: 7e9}
	open := func(id event.ConnID) *client {
		c := &client{parser: wire.NewParser(config.Limits)}
		c.session = New(Params{ID: id, Address: "10.0.0.1", Start: event.Silent, Way: auth.WebSocket}, config, b)
		b.clients[id] = c
		b.drain()
		return c
	}
	c := open(1)
	if len(c.received) > 0 {
		t.Errorf("before there is a WebSocket its client is told %s", c.received)
	}
	c.session.Secured(nil, &auth.Cookies{User: "x", Password: "p"})
	b.drain()
	for _, want := range []string{`"host":"a","port":80`, `"tls_required":true`, `"connect_urls":["a:80","b:80"]`} {
		if !strings.Contains(string(c.received), want) {
			t.Errorf("INFO lacks %s: %s", want, c.received)
		}
	}
	if at := c.session.Deadline(); at != b.now.Mono+7e9 {
		t.Errorf("credentials are awaited until %d", at-b.now.Mono)
	}
	b.send(c, []byte("CONNECT {\"user\":\"u\"}\r\n"))
	if c.closed || c.session.Identity().User != "u" {
		t.Errorf("a password of a cookie does not count: %v", c.reason)
	}
	early := open(2)
	early.session.Close(wire.MaxConnectionsExceeded, "maximum connections exceeded")
	b.drain()
	if text := string(early.received); !strings.HasPrefix(text, "INFO ") || !strings.HasSuffix(text, "-ERR 'maximum connections exceeded'\r\n") {
		t.Errorf("a client that is closed early is told %s", text)
	}
}
