package auth

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"weir/transport/wire"
)

func mustNew(t *testing.T, config Config) *Authenticator {
	t.Helper()
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func hash(t *testing.T, text string) string {
	t.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(text), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func TestCredentialsDecideWhoAClientIs(t *testing.T) {
	users := Config{Users: []User{{Name: "a", Password: "pa"}, {Name: "b", Password: hash(t, "pb"), Account: "B"}}}
	withAnonymous := users
	withAnonymous.NoAuthUser = "a"
	cases := []struct {
		name    string
		config  Config
		connect wire.Connect
		user    string
		account string
		refused bool
	}{
		{"open", Config{}, wire.Connect{}, "", "$G", false},
		{"open, credentials are ignored", Config{}, wire.Connect{User: "x", Password: "y"}, "", "$G", false},
		{"plain password", users, wire.Connect{User: "a", Password: "pa"}, "a", "$G", false},
		{"wrong password", users, wire.Connect{User: "a", Password: "pb"}, "", "", true},
		{"no password", users, wire.Connect{User: "a"}, "", "", true},
		{"unknown user", users, wire.Connect{User: "c", Password: "pa"}, "", "", true},
		{"nobody", users, wire.Connect{}, "", "", true},
		{"token instead of a password", users, wire.Connect{Token: "pa"}, "", "", true},
		{"hashed password", users, wire.Connect{User: "b", Password: "pb"}, "b", "B", false},
		{"the hash itself", users, wire.Connect{User: "b", Password: users.Users[1].Password}, "", "", true},
		{"nobody becomes somebody", withAnonymous, wire.Connect{}, "a", "$G", false},
		{"a wrong password stays wrong", withAnonymous, wire.Connect{User: "a", Password: "x"}, "", "", true},
		{"token", Config{Token: "t"}, wire.Connect{Token: "t"}, "[REDACTED]", "$G", false},
		{"wrong token", Config{Token: "t"}, wire.Connect{Token: "u"}, "", "", true},
		{"no token", Config{Token: "t"}, wire.Connect{User: "t"}, "", "", true},
		{"hashed token", Config{Token: hash(t, "t")}, wire.Connect{Token: "t"}, "[REDACTED]", "$G", false},
	}
	for _, c := range cases {
		a := mustNew(t, c.config)
		for range 2 { // The second time may be answered from the sum of the first.
			identity, ok := a.Authenticate(&c.connect, &Proof{})
			if ok == c.refused || identity.User != c.user || identity.Account != c.account {
				t.Errorf("%s: %+v, accepted %v", c.name, identity, ok)
			}
		}
	}
}

func TestRememberedPasswordDoesNotOpenToAnother(t *testing.T) {
	a := mustNew(t, Config{Users: []User{{Name: "b", Password: hash(t, "pb")}}})
	for _, password := range []string{"pb", "x", "pb", ""} {
		if _, ok := a.Authenticate(&wire.Connect{User: "b", Password: password}, &Proof{}); ok != (password == "pb") {
			t.Errorf("password %q: accepted %v", password, ok)
		}
	}
}

func TestRequiredUnlessAnonymousClientsAreSomebody(t *testing.T) {
	users := []User{{Name: "a", Password: "pa"}}
	for want, configs := range map[bool][]Config{
		true:  {{Users: users}, {Token: "t"}},
		false: {{}, {Users: users, NoAuthUser: "a"}},
	} {
		for _, config := range configs {
			a := mustNew(t, config)
			if _, anonymous := a.Anonymous(Standard); a.Required(Standard) != want || anonymous == want {
				t.Errorf("%+v: required %v, anonymous %v", config, a.Required(Standard), anonymous)
			}
		}
	}
}

func TestContradictionsAreRefused(t *testing.T) {
	for want, config := range map[string]Config{
		`Duplicate user "a" detected`:                                  {Users: []User{{Name: "a"}, {Name: "a"}}},
		"Cannot have a user/pass and token":                            {Users: []User{{Name: "a"}}, Token: "t"},
		"user without a name":                                          {Users: []User{{Password: "x"}}},
		`no_auth_user: "x" not present as user in authorization block`: {Users: []User{{Name: "a"}}, NoAuthUser: "x"},
	} {
		if _, err := New(config); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestDefaultPermissionsApplyToUsersWithoutTheirOwn(t *testing.T) {
	own, defaults := &Permissions{}, &Permissions{}
	a := mustNew(t, Config{Users: []User{{Name: "a", Permissions: own}, {Name: "b"}}, DefaultPermissions: defaults})
	first, _ := a.Authenticate(&wire.Connect{User: "a"}, &Proof{})
	second, _ := a.Authenticate(&wire.Connect{User: "b"}, &Proof{})
	if first.Permissions != own || second.Permissions != defaults {
		t.Error("permissions are mixed up")
	}
}

func permissions(t *testing.T, config PermissionsConfig) *Permissions {
	t.Helper()
	p, err := NewPermissions(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPublishRules(t *testing.T) {
	replies := DefaultResponses
	cases := []struct {
		config  PermissionsConfig
		subject string
		may     bool
	}{
		{PermissionsConfig{}, "a", true},
		{PermissionsConfig{Publish: Rules{Allow: []string{"a.*"}}}, "a.b", true},
		{PermissionsConfig{Publish: Rules{Allow: []string{"a.*"}}}, "a", false},
		{PermissionsConfig{Publish: Rules{Allow: []string{"a.>"}, Deny: []string{"a.b"}}}, "a.b", false},
		{PermissionsConfig{Publish: Rules{Allow: []string{"a.>"}, Deny: []string{"a.b"}}}, "a.c", true},
		{PermissionsConfig{Publish: Rules{Deny: []string{"a.b"}}}, "c", true},
		{PermissionsConfig{Responses: &replies}, "a", false},
		{PermissionsConfig{Publish: Rules{Allow: []string{"a"}}, Responses: &replies}, "a", true},
	}
	for _, c := range cases {
		if may := permissions(t, c.config).MayPublish([]byte(c.subject)); may != c.may {
			t.Errorf("%+v %s: %v", c.config, c.subject, may)
		}
	}
}

func TestSubscribeRules(t *testing.T) {
	cases := []struct {
		allow, deny    []string
		pattern, queue string
		may            bool
	}{
		{nil, nil, "a", "", true},
		{[]string{"foo"}, nil, "foo", "", true},
		{[]string{"foo"}, nil, "foo", "v1", true},
		{[]string{"foo v1"}, nil, "foo", "", false},
		{[]string{"foo v1"}, nil, "foo", "v1", true},
		{[]string{"foo v1"}, nil, "foo", "v2", false},
		{[]string{"foo", "foo v1"}, nil, "foo", "", true},
		{[]string{"foo", "foo v1"}, nil, "foo", "v2", false},
		{[]string{"foo v1.*"}, nil, "foo", "v1.x", true},
		{[]string{"foo v1.*"}, nil, "foo", "v2.x", false},
		{[]string{"a.*"}, nil, "a.b", "", true},
		{[]string{"a.*"}, nil, "a.*", "", true},
		{[]string{"a.*"}, nil, "a.>", "", false}, // Covers more than was allowed.
		{[]string{"a.>"}, nil, "a.*", "", true},
		{nil, []string{"a.b"}, "a.b", "", false},
		{nil, []string{"a.b"}, "a.*", "", true}, // Denied messages are filtered at delivery.
		{nil, []string{"a.>"}, "a.*", "", false},
		{nil, []string{"foo v1"}, "foo", "v1", false},
		{nil, []string{"foo v1"}, "foo", "v2", true},
		{nil, []string{"foo v1"}, "foo", "", true},
	}
	for _, c := range cases {
		p := permissions(t, PermissionsConfig{Subscribe: Rules{Allow: c.allow, Deny: c.deny}})
		if may := p.MaySubscribe([]byte(c.pattern), []byte(c.queue)); may != c.may {
			t.Errorf("%+v: %v", c, may)
		}
	}
}

func TestDeniedMessagesAreFilteredFromWiderSubscriptions(t *testing.T) {
	p := permissions(t, PermissionsConfig{Subscribe: Rules{Deny: []string{"a.secret", "b q"}}})
	if !p.Filters([]byte("a.*")) || !p.Filters([]byte(">")) || p.Filters([]byte("c.*")) {
		t.Error("wrong subscriptions are filtered")
	}
	for _, c := range []struct {
		subject, queue string
		may            bool
	}{{"a.open", "", true}, {"a.secret", "", false}, {"b", "", true}, {"b", "q", false}, {"b", "r", true}} {
		if may := p.MayDeliver([]byte(c.subject), c.queue); may != c.may {
			t.Errorf("%+v: %v", c, may)
		}
	}
}

func TestInvalidEntriesAreRefused(t *testing.T) {
	for _, config := range []PermissionsConfig{
		{Publish: Rules{Allow: []string{"a..b"}}}, {Publish: Rules{Deny: []string{"a q"}}},
		{Subscribe: Rules{Allow: []string{""}}}, {Subscribe: Rules{Deny: []string{"a q r"}}},
	} {
		if _, err := NewPermissions(config); err == nil {
			t.Errorf("%+v is accepted", config)
		}
	}
}

func TestReplyMayBeSpentAsOftenAndAsLongAsGranted(t *testing.T) {
	r := NewReplies(Responses{Max: 2, ExpiresNanos: 100})
	r.Grant([]byte("x"), 0)
	r.Grant([]byte("y"), 0)
	for i, want := range []bool{true, true, false, false} {
		if got := r.Spend([]byte("x"), 10); got != want {
			t.Errorf("spending %d: %v", i+1, got)
		}
	}
	if r.Spend([]byte("y"), 101) || r.Spend([]byte("z"), 0) {
		t.Error("spent without a grant")
	}
	r.Grant([]byte("x"), 200)
	if !r.Spend([]byte("x"), 300) {
		t.Error("a second grant begins anew")
	}
}

func TestGrantsAreBounded(t *testing.T) {
	r := NewReplies(Responses{Max: -1, ExpiresNanos: -1})
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 3 * RepliesMax {
		r.Grant(fmt.Appendf(nil, "r%d", i), int64(i))
		r.Grant(fmt.Appendf(nil, "again%d", random.IntN(10)), int64(i))
		if r.Len() > RepliesMax || len(r.order) > 2*RepliesMax+2 {
			t.Fatalf("%d grants, order of %d", r.Len(), len(r.order))
		}
	}
	if !r.Spend(fmt.Appendf(nil, "r%d", 3*RepliesMax-1), 0) || r.Spend([]byte("r0"), 0) {
		t.Error("the oldest goes first")
	}
}

func TestExpiredGrantsLeaveByThemselves(t *testing.T) {
	r := NewReplies(Responses{Max: 1, ExpiresNanos: 10})
	for i := range int64(1000) {
		r.Grant(fmt.Appendf(nil, "r%d", i), i)
		if r.Len() > 12 {
			t.Fatalf("%d grants", r.Len())
		}
	}
}
