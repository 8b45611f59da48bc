package auth

import (
	"testing"

	"weir/transport/wire"
)

func TestNamesAreReadWithTheirEscapes(t *testing.T) {
	for text, want := range map[string]Name{
		"CN=derek":                     {{{"CN", "derek"}}},
		"CN=a b, O = c ":               {{{"CN", "a b"}}, {{"O", "c"}}},
		`CN=a\, b\ ,O=\41\c3\a4\20`:    {{{"CN", "a, b "}}, {{"O", "Aä "}}},
		"CN=a+OU=b,DC=c":               {{{"CN", "a"}, {"OU", "b"}}, {{"DC", "c"}}},
		"CN=":                          {{{"CN", ""}}},
		"":                             nil,
		"derek":                        nil,
		"CN=a,":                        nil,
		"CN=a,b":                       nil,
		"=a":                           nil,
		"CN=#04":                       nil,
		`CN=\`:                         nil,
		`CN=\4`:                        nil,
		`CN=\zz`:                       nil,
		"CN=a=b":                       nil,
		"joe@example.org":              nil,
		"https://example.org/x?a=b&c=": nil,
	} {
		got, ok := ParseName(text)
		if ok != (want != nil) || !got.equal(want) {
			t.Errorf("%q is read as %q, %v; want %q", text, got, ok, want)
		}
	}
}

// TestCertificatesNameUsers has users that are named in different ways, and clients whose certificates fit one of them,
// several, or none. The first way that fits counts.
func TestCertificatesNameUsers(t *testing.T) {
	const full, turned, domain = "CN=derek,OU=Unit,O=Org", "O=Org,CN=jane,OU=Unit", "CN=web,O=Org,DC=org,DC=example"
	a, err := New(Config{MapCertificates: true, Users: []User{
		{Name: "joe@example.org", Account: "A"}, {Name: "host.example.org"}, {Name: full}, {Name: turned}, {Name: domain}, {Name: "CN=odd"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	subject := func(text string) Name {
		name, ok := ParseName(text)
		if !ok {
			t.Fatal(text)
		}
		return name
	}
	for name, c := range map[string]struct {
		held *Certificate
		user string
	}{
		"none":               {nil, ""},
		"empty":              {&Certificate{}, ""},
		"e-mail":             {&Certificate{Names: []string{"x@y", "joe@example.org", "host.example.org"}, Subject: subject(full)}, "joe@example.org"},
		"host":               {&Certificate{Names: []string{"host.example.org"}}, "host.example.org"},
		"name":               {&Certificate{Names: []string{"x"}, Subject: subject("cn=derek,OU=Unit,O=Org")}, full},
		"name, turned":       {&Certificate{Subject: subject("CN=jane,OU=Unit,O=Org")}, turned},
		"name, a part less":  {&Certificate{Subject: subject("CN=derek,O=Org")}, ""},
		"name, a part twice": {&Certificate{Subject: subject("CN=derek,CN=derek,O=Org")}, ""},
		"name, other case":   {&Certificate{Subject: subject("CN=Derek,OU=Unit,O=Org")}, ""},
		"text":               {&Certificate{Texts: []string{"CN=web,O=Org,DC=org,DC=example", "CN=web,O=Org"}}, domain},
		"text of the rest":   {&Certificate{Texts: []string{"x", "CN=odd"}}, "CN=odd"},
	} {
		// What the client says of itself means nothing.
		identity, ok := a.Authenticate(&wire.Connect{User: "host.example.org"}, &Proof{Certificate: c.held})
		if ok != (c.user != "") || identity.User != c.user {
			t.Errorf("%s: got %q, %v; want %q", name, identity.User, ok, c.user)
		}
		if c.user == "joe@example.org" && identity.Account != "A" {
			t.Errorf("%s: account %q", name, identity.Account)
		}
	}
	plain, err := New(Config{Users: []User{{Name: "joe@example.org", Password: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := plain.Authenticate(&wire.Connect{}, &Proof{Certificate: &Certificate{Names: []string{"joe@example.org"}}}); ok {
		t.Error("a certificate counts although certificates are not mapped")
	}
}

// FuzzParseName expects every text to be read or refused, and a name that is read to equal itself in any order.
func FuzzParseName(f *testing.F) {
	for _, text := range []string{"CN=a", `CN=a\,b+OU=c,O=\41`, "x", "CN=#", `\`, "a=b,,", " = ,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := ParseName(text)
		if !ok {
			return
		}
		turned := make(Name, 0, len(name))
		for i := range name {
			turned = append(turned, name[len(name)-1-i])
		}
		if !name.equal(name) || !name.sameParts(turned) {
			t.Errorf("%q is read as %q, which is not itself", text, name)
		}
	})
}
