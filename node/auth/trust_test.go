package auth

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"weir/transport/wire"
)

// signer is a pair of keys of a test.
type signer struct {
	nkeys.KeyPair
	public string
}

func newSigner(t testing.TB, create func() (nkeys.KeyPair, error)) signer {
	t.Helper()
	pair, err := create()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return signer{pair, public}
}

func (s signer) sign(t testing.TB, nonce string) string {
	t.Helper()
	sig, err := s.Sign([]byte(nonce))
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(sig)
}

const nonce = "abcdefghijklmno"

func TestKeysProveThemselvesBySignatures(t *testing.T) {
	key, other := newSigner(t, nkeys.CreateUser), newSigner(t, nkeys.CreateUser)
	users := []User{{Name: key.public, Account: "A", Nkey: true}, {Name: "u", Password: "p"}}
	a := mustNew(t, Config{Users: users})
	sig := key.sign(t, nonce)
	raw, _ := base64.RawURLEncoding.DecodeString(sig)
	for name, c := range map[string]struct {
		connect wire.Connect
		nonce   string
		ok      bool
	}{
		"signed":              {wire.Connect{Nkey: key.public, Sig: sig}, nonce, true},
		"signed, other form":  {wire.Connect{Nkey: key.public, Sig: base64.StdEncoding.EncodeToString(raw)}, nonce, true},
		"another nonce":       {wire.Connect{Nkey: key.public, Sig: sig}, "x" + nonce[1:], false},
		"no nonce":            {wire.Connect{Nkey: key.public, Sig: key.sign(t, "")}, "", false},
		"no signature":        {wire.Connect{Nkey: key.public}, nonce, false},
		"no base64":           {wire.Connect{Nkey: key.public, Sig: "?"}, nonce, false},
		"unknown key":         {wire.Connect{Nkey: other.public, Sig: other.sign(t, nonce)}, nonce, false},
		"signed by another":   {wire.Connect{Nkey: key.public, Sig: other.sign(t, nonce)}, nonce, false},
		"key as name":         {wire.Connect{User: key.public}, nonce, false},
		"name as key":         {wire.Connect{Nkey: "u", Sig: sig}, nonce, false},
		"password as before":  {wire.Connect{User: "u", Password: "p"}, nonce, true},
		"key before password": {wire.Connect{User: "u", Password: "p", Nkey: other.public}, nonce, false},
	} {
		if _, ok := a.Authenticate(&c.connect, &Proof{Nonce: c.nonce}); ok != c.ok {
			t.Errorf("%s: %v", name, ok)
		}
	}
	if !a.Signs() || mustNew(t, Config{Users: users[1:]}).Signs() {
		t.Error("clients are asked to sign though nobody has a key, or not though somebody has")
	}
}

// TestUsersWithoutPasswordsNeedCertificatesEverywhere maps certificates for WebSockets only.
func TestUsersWithoutPasswordsNeedCertificatesEverywhere(t *testing.T) {
	a := mustNew(t, Config{MapWebSockets: true, Users: []User{{Name: "a@b"}}})
	if _, ok := a.Authenticate(&wire.Connect{User: "a@b"}, &Proof{}); ok {
		t.Error("a user who is known by a certificate is let in without any")
	}
	if _, ok := a.Authenticate(&wire.Connect{}, &Proof{Way: WebSocket, Certificate: &Certificate{Names: []string{"a@b"}}}); !ok {
		t.Error("a certificate is not known")
	}
}

// realm is an operator with an account, and a user whose claims a case changes.
type realm struct {
	t                                      testing.TB
	operator, account, signing, role, user signer
	claims                                 *jwt.UserClaims
	tenant                                 *jwt.AccountClaims
	issuer, approver                       signer
	proof                                  Proof
	config                                 TrustConfig
	connect                                wire.Connect
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func newRealm(t testing.TB) *realm {
	r := &realm{
		t: t, operator: newSigner(t, nkeys.CreateOperator), account: newSigner(t, nkeys.CreateAccount), signing: newSigner(t, nkeys.CreateAccount),
		role: newSigner(t, nkeys.CreateAccount), user: newSigner(t, nkeys.CreateUser),
	}
	r.issuer, r.approver = r.account, r.operator
	r.tenant, r.claims = jwt.NewAccountClaims(r.account.public), jwt.NewUserClaims(r.user.public)
	r.tenant.Name, r.claims.Name = "acme", "joe"
	r.tenant.SigningKeys.Add(r.signing.public)
	r.proof = Proof{Nonce: nonce, Address: "10.1.2.3", Wall: noon.UnixNano()}
	r.config = TrustConfig{Keys: []string{r.operator.public}, Zone: time.LoadLocation}
	r.connect.Sig = r.user.sign(t, nonce)
	return r
}

// by has the user signed by another key of the account.
func (r *realm) by(s signer) {
	r.issuer, r.claims.IssuerAccount = s, r.account.public
}

// scoped has the user signed in a role.
func (r *realm) scoped(change func(*jwt.UserScope)) {
	scope := jwt.NewUserScope()
	scope.Key = r.role.public
	change(scope)
	r.tenant.SigningKeys.AddScopedSigner(scope)
	r.by(r.role)
	r.claims.SetScoped(true)
}

func (r *realm) connects() (Identity, error) {
	r.t.Helper()
	text, err := r.tenant.Encode(r.approver)
	if err != nil {
		r.t.Fatal(err)
	}
	account, err := DecodeAccount(text)
	if err != nil {
		return Identity{}, err
	}
	r.config.Accounts = append(r.config.Accounts, account)
	if r.connect.JWT == "" {
		if r.connect.JWT, err = r.claims.Encode(r.issuer); err != nil {
			r.t.Fatal(err)
		}
	}
	a := mustNew(r.t.(*testing.T), Config{Trust: &r.config})
	identity, ok := a.Authenticate(&r.connect, &r.proof)
	if ok != (r.proof.Refusal == nil) {
		r.t.Errorf("let in %v, although %v", ok, r.proof.Refusal)
	}
	return identity, r.proof.Refusal
}

// TestWhatWasSignedDecides changes one thing at a time.
func TestWhatWasSignedDecides(t *testing.T) {
	at := func(d time.Duration) int64 { return noon.Add(d).Unix() }
	hours := func(r *realm, start, end string) { r.claims.Times = []jwt.TimeRange{{Start: start, End: end}} }
	for name, c := range map[string]struct {
		change func(r *realm)
		want   error
		end    int64 // seconds
	}{
		"as it is":              {change: func(*realm) {}},
		"nothing":               {change: func(r *realm) { r.connect.JWT = " " }, want: errJWT},
		"no JWT":                {change: func(r *realm) { r.connect.JWT = r.user.public }, want: errJWT},
		"account as user":       {change: func(r *realm) { r.connect.JWT, _ = r.tenant.Encode(r.operator) }, want: errJWT},
		"other signature":       {change: func(r *realm) { r.connect.Sig = r.account.sign(r.t, nonce) }, want: errSignature},
		"no signature":          {change: func(r *realm) { r.connect.Sig = "" }, want: errSignature},
		"bearer":                {change: func(r *realm) { r.connect.Sig, r.claims.BearerToken = "", true }},
		"bearer, not here":      {change: func(r *realm) { r.claims.BearerToken, r.tenant.Limits.DisallowBearer = true, true }, want: errBearer},
		"no more":               {change: func(r *realm) { r.claims.Expires = at(0) }, want: errUserTime},
		"for a second":          {change: func(r *realm) { r.claims.Expires = at(time.Second) }, end: at(time.Second)},
		"not yet":               {change: func(r *realm) { r.claims.NotBefore = at(time.Second) }, want: errUserTime},
		"account no more":       {change: func(r *realm) { r.tenant.Expires = at(0) }, want: errAccountEnd},
		"signing key":           {change: func(r *realm) { r.by(r.signing) }},
		"signing key of nobody": {change: func(r *realm) { r.by(newSigner(r.t, nkeys.CreateAccount)) }, want: errIssuer},
		"other account":         {change: func(r *realm) { r.issuer = newSigner(r.t, nkeys.CreateAccount) }, want: errAccount},
		"other operator":        {change: func(r *realm) { r.approver = newSigner(r.t, nkeys.CreateOperator) }, want: errOperator},
		"self-made account":     {change: func(r *realm) { r.approver = r.account }, want: errOperator},
		"pinned":                {change: func(r *realm) { r.config.Pinned = []string{r.account.public} }},
		"not pinned":            {change: func(r *realm) { r.config.Pinned = []string{r.signing.public} }, want: errPinned},
		"revoked":               {change: func(r *realm) { r.tenant.RevokeAt(r.user.public, time.Now().Add(time.Hour)) }, want: errRevoked},
		"revoked before":        {change: func(r *realm) { r.tenant.RevokeAt(r.user.public, noon.Add(-1e6*time.Hour)) }},
		"all revoked":           {change: func(r *realm) { r.tenant.RevokeAt(jwt.All, time.Now().Add(time.Hour)) }, want: errRevoked},
		"other revoked":         {change: func(r *realm) { r.tenant.RevokeAt(r.signing.public, time.Now().Add(time.Hour)) }},
		"by WebSocket only":     {change: func(r *realm) { r.claims.AllowedConnectionTypes.Add(jwt.ConnectionTypeWebsocket) }, want: errWay},
		"by WebSocket": {change: func(r *realm) {
			r.claims.AllowedConnectionTypes.Add(jwt.ConnectionTypeMqtt, jwt.ConnectionTypeWebsocket)
			r.proof.Way = WebSocket
		}},
		"by MQTT only":          {change: func(r *realm) { r.claims.AllowedConnectionTypes.Add(jwt.ConnectionTypeMqtt) }, want: errWay},
		"by proxy":              {change: func(r *realm) { r.claims.ProxyRequired = true }, want: errProxy},
		"from there":            {change: func(r *realm) { r.claims.Src = jwt.CIDRList{"192.168.0.0/16", "10.1.0.0/16"} }},
		"from elsewhere":        {change: func(r *realm) { r.claims.Src = jwt.CIDRList{"10.2.0.0/16"} }, want: errSource},
		"from nowhere":          {change: func(r *realm) { r.claims.Src, r.proof.Address = jwt.CIDRList{"0.0.0.0/0"}, "pipe" }, want: errSource},
		"at noon":               {change: func(r *realm) { hours(r, "11:00:00", "13:00:00") }, end: at(time.Hour)},
		"at noon, not for long": {change: func(r *realm) { hours(r, "11:00:00", "13:00:00"); r.claims.Expires = at(time.Minute) }, end: at(time.Minute)},
		"over midnight":         {change: func(r *realm) { hours(r, "11:00:00", "01:00:00") }, end: at(13 * time.Hour)},
		"since yesterday":       {change: func(r *realm) { hours(r, "12:30:00", "12:10:00") }, end: at(10 * time.Minute)},
		"in the morning":        {change: func(r *realm) { hours(r, "08:00:00", "12:00:00") }, want: errDayTime},
		"at noon elsewhere":     {change: func(r *realm) { hours(r, "14:00:00", "14:30:00"); r.claims.Locale = "Europe/Berlin" }, end: at(30 * time.Minute)},
		"at noon nowhere":       {change: func(r *realm) { hours(r, "00:00:00", "23:00:00"); r.claims.Locale = "Nowhere" }, want: errJWT},
		"without clocks":        {change: func(r *realm) { hours(r, "00:00:00", "23:00:00"); r.config.Zone = nil }, want: errDayTime},
		"role":                  {change: func(r *realm) { r.scoped(func(*jwt.UserScope) {}) }},
		"role and more":         {change: func(r *realm) { r.scoped(func(*jwt.UserScope) {}); r.claims.Pub.Allow.Add("x") }, want: errJWT},
		"role by WebSocket": {change: func(r *realm) {
			r.scoped(func(s *jwt.UserScope) { s.Template.AllowedConnectionTypes.Add(jwt.ConnectionTypeWebsocket) })
		}, want: errWay},
		"role with unknown function": {change: func(r *realm) {
			r.scoped(func(s *jwt.UserScope) { s.Template.Sub.Allow.Add("{{what()}}") })
		}, want: errJWT},
		"role that denies nothing": {change: func(r *realm) {
			r.scoped(func(s *jwt.UserScope) { s.Template.Pub.Deny.Add("{{tag(x)}}") })
		}, want: errJWT},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t)
			c.change(r)
			identity, err := r.connects()
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if r.proof.Revoked() != (c.want == errRevoked) {
				t.Errorf("revoked %v", r.proof.Revoked())
			}
			if err != nil {
				if identity.Account != "" || strings.Contains(err.Error(), "eyJ") {
					t.Errorf("refused as %+v: %v", identity, err)
				}
				return
			}
			if identity.User != r.user.public || identity.Account != r.account.public || identity.AccountTag != "acme" || identity.EndNanos != c.end*secondNanos {
				t.Errorf("got %+v", identity)
			}
		})
	}
}

// TestRolesAreFilledIn has a template with every function, and users who have a value for them, several, none, or one that
// would make more of the subject than the role says.
func TestRolesAreFilledIn(t *testing.T) {
	r := newRealm(t)
	for _, c := range []struct{ entry, tags, name, want string }{
		{"a.b", "", "joe", "a.b"},
		{"{{name()}}.{{ account-name() }}.>", "", "joe", "joe.acme.>"},
		{"u.{{subject()}}.{{account-subject()}}", "", "joe", "u." + r.user.public + "." + r.account.public},
		{"{{tag(team)}}.x.{{tag(team)}}", "team:red,team:blue,other:x", "joe", "red.x.red red.x.blue blue.x.red blue.x.blue"},
		{"{{Tag(Team)}}.{{name()}}", "team:a.b", "joe", "a.b.joe"},
		{"{{account-tag(dc)}}", "", "joe", "east"},
		{"x.{{tag(team)}}", "", "joe", ""},
		{"x.{{name()}}", "", ">", ""},
		{"x.{{name()}}", "", "*", ""},
		{"x.{{name()}}", "", "a b", ""},
		{"x.{{name()}}", "", "", ""},
		{"x.{{name", "", "joe", "x.{{name"},
	} {
		r.claims.Name, r.claims.Tags = c.name, nil
		if c.tags != "" {
			r.claims.Tags = strings.Split(c.tags, ",")
		}
		r.tenant.Tags = jwt.TagList{"dc:east"}
		list := template{user: r.claims, account: &Account{Claims: r.tenant}}
		got, err := list.expand(jwt.StringList{c.entry}, false)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s for %q, %q: %q, %v", c.entry, c.name, c.tags, got, err)
		}
	}
	for i := range 100 {
		r.claims.Tags = append(r.claims.Tags, "t:"+strings.Repeat("x", i+1))
	}
	list := template{user: r.claims, account: &Account{Claims: r.tenant}}
	if _, err := list.expand(jwt.StringList{"{{tag(t)}}.{{tag(t)}}.{{tag(t)}}"}, false); !errors.Is(err, errJWT) {
		t.Errorf("a million subjects: %v", err)
	}
	r = newRealm(t)
	r.scoped(func(s *jwt.UserScope) {
		s.Template.Pub.Allow.Add("{{tag(none)}}")
		s.Template.Sub.Allow.Add("in.{{name()}}")
	})
	identity, err := r.connects()
	if err != nil || identity.Permissions.MayPublish([]byte("a")) || !identity.Permissions.MaySubscribe([]byte("in.joe"), nil) || identity.Permissions.MaySubscribe([]byte("in.x"), nil) {
		t.Errorf("an empty list allows everything: %v", err)
	}
}

func TestLimitsAreTheLowerOnes(t *testing.T) {
	r := newRealm(t)
	r.claims.Subs, r.claims.Limits.Payload = 5, -1
	r.tenant.Limits.Subs, r.tenant.Limits.Payload, r.tenant.Limits.Conn, r.tenant.Expires = 7, 100, 3, noon.Unix()+9
	identity, err := r.connects()
	if want := (Limits{Subscriptions: 5, PayloadBytes: 100, Connections: 3}); err != nil || *identity.Limits != want || identity.AccountEndNanos != r.tenant.Expires*secondNanos {
		t.Errorf("got %+v, %v", identity.Limits, err)
	}
}

func TestAccountsThatAskForMoreAreRefused(t *testing.T) {
	for want, change := range map[string]func(*jwt.AccountClaims){
		"imports": func(a *jwt.AccountClaims) {
			a.Imports.Add(&jwt.Import{Subject: "x", Account: a.Subject, Type: jwt.Stream})
		},
		"mappings":      func(a *jwt.AccountClaims) { a.AddMapping("a", jwt.WeightedMapping{Subject: "b"}) },
		"tiered limits": func(a *jwt.AccountClaims) { a.Limits.JetStreamTieredLimits["R1"] = jwt.JetStreamLimits{DiskStorage: 1} },
		"authorization callout": func(a *jwt.AccountClaims) {
			a.Authorization.AuthUsers.Add("x")
		},
		"traces": func(a *jwt.AccountClaims) { a.Trace = &jwt.MsgTrace{Destination: "x"} },
	} {
		r := newRealm(t)
		change(r.tenant)
		text, err := r.tenant.Encode(r.operator)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeAccount(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	r := newRealm(t)
	r.tenant.Exports.Add(&jwt.Export{Subject: "x.>", Type: jwt.Stream})
	if _, err := r.connects(); err != nil {
		t.Error(err)
	}
	if _, err := DecodeAccount("secret"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// FuzzUserJWT has clients that send arbitrary text as their JWT and their signature. Nobody is let in by anything but what was
// signed.
func FuzzUserJWT(f *testing.F) {
	r := newRealm(f)
	good, err := r.claims.Encode(r.account)
	if err != nil {
		f.Fatal(err)
	}
	text, err := r.tenant.Encode(r.operator)
	if err != nil {
		f.Fatal(err)
	}
	account, err := DecodeAccount(text)
	if err != nil {
		f.Fatal(err)
	}
	a, err := New(Config{Trust: &TrustConfig{Keys: []string{r.operator.public}, Accounts: []*Account{account}}})
	if err != nil {
		f.Fatal(err)
	}
	parts := strings.Split(good, ".")
	f.Add(good, r.connect.Sig)
	f.Add(good[:len(good)-1], "")
	f.Add(parts[0]+".e30."+parts[2], "AAAA")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"none"}`))+"."+parts[1]+".", r.connect.Sig)
	f.Fuzz(func(t *testing.T, token, sig string) {
		proof := r.proof
		if identity, ok := a.Authenticate(&wire.Connect{JWT: token, Sig: sig}, &proof); ok && !slices.Equal(strings.Split(token, ".")[:2], parts[:2]) {
			t.Errorf("%q is let in as %+v", token, identity)
		}
	})
}
