package auth

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// Certificate is what a client's certificate, which has been verified, says about its holder. Users are looked up by it
// in the order of the fields.
type Certificate struct {
	// Names are the alternative names: e-mail addresses, names of hosts, then URIs.
	Names []string
	// Subject is the distinguished name, its most specific part first; nil when it has attributes without a known name.
	Subject Name
	// Texts are ways to write the distinguished name that operators know.
	Texts []string
	// Peers describe the certificates that the client sent, its own first.
	Peers []PeerCertificate
}

// PeerCertificate is one certificate in the words of monitoring.
type PeerCertificate struct {
	// Subject is the distinguished name as text.
	Subject string
	// KeySum and Sum are SHA-256 of the public key and of the whole certificate, in hexadecimal.
	KeySum, Sum string
}

// Name is a distinguished name: parts, each of which is a set of attributes.
type Name [][]Attribute

// Attribute is one attribute of a distinguished name.
type Attribute struct {
	// Type is the short name of the type, such as CN, in any case; Value is the value without escapes.
	Type, Value string
}

// distinguished is a user whose name is a distinguished name.
type distinguished struct {
	name Name
	user *account
}

// distinguish finds the users whose names are distinguished names.
func distinguish(users map[string]*account) (found []distinguished) {
	for _, text := range slices.Sorted(maps.Keys(users)) {
		if name, ok := ParseName(text); ok {
			found = append(found, distinguished{name, users[text]})
		}
	}
	return found
}

// holder is the user that a certificate belongs to; nil when it belongs to none.
func (a *Authenticator) holder(c *Certificate) *account {
	if c == nil {
		return nil
	}
	for _, name := range c.Names {
		if user := a.users[name]; user != nil {
			return user
		}
	}
	if c.Subject != nil {
		for _, d := range a.byCert {
			if d.name.equal(c.Subject) {
				return d.user
			}
		}
		for _, d := range a.byCert {
			if d.name.sameParts(c.Subject) {
				return d.user
			}
		}
	}
	for _, text := range c.Texts {
		if user := a.users[text]; user != nil {
			return user
		}
	}
	return nil
}

// ParseName reads a distinguished name: "CN=a+UID=b,O=c". Special characters follow a backslash, or are two hexadecimal
// digits behind one. A value in the BER form, which begins with #, is not understood.
func ParseName(text string) (Name, bool) {
	if text == "" {
		return nil, false
	}
	var name Name
	var part []Attribute
	for rest, more := text, true; more; {
		var a Attribute
		var end byte
		var ok bool
		if a.Type, rest, end, ok = nextPiece(rest); !ok || end != '=' || a.Type == "" || strings.HasPrefix(rest, "#") {
			return nil, false
		}
		if a.Value, rest, end, ok = nextPiece(rest); !ok || end == '=' {
			return nil, false
		}
		part = append(part, a)
		if end != '+' {
			name, part = append(name, part), nil
		}
		more = end != 0
	}
	return name, true
}

// specials may follow a backslash as they are.
const specials = " \"#+,;<=>\\"

// nextPiece reads up to the next =, + or comma, which is end, or up to the end of the text: 0. Spaces around the piece
// that are not escaped do not belong to it.
func nextPiece(text string) (piece, rest string, end byte, ok bool) {
	var b []byte
	kept := 0 // length of b without trailing spaces that are not escaped
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '=' || c == '+' || c == ',':
			return string(b[:kept]), text[i+1:], c, true
		case c == '\\' && i+1 < len(text) && strings.IndexByte(specials, text[i+1]) >= 0:
			i++
			b = append(b, text[i])
			kept = len(b)
		case c == '\\':
			octet, err := hex.DecodeString(text[min(i+1, len(text)):min(i+3, len(text))])
			if err != nil || len(octet) != 1 {
				return "", "", 0, false
			}
			i += 2
			b = append(b, octet[0])
			kept = len(b)
		case c == ' ':
			if len(b) > 0 {
				b = append(b, c)
			}
		default:
			b = append(b, c)
			kept = len(b)
		}
	}
	return string(b[:kept]), "", 0, true
}

// equal reports whether both names have the same parts in the same order.
func (n Name) equal(other Name) bool { return slices.EqualFunc(n, other, sameAttributes) }

// sameParts reports whether both names have the same parts, in any order.
func (n Name) sameParts(other Name) bool {
	if len(n) != len(other) {
		return false
	}
	rest := slices.Clone(other)
	for _, part := range n {
		at := slices.IndexFunc(rest, func(p []Attribute) bool { return sameAttributes(part, p) })
		if at < 0 {
			return false
		}
		rest = slices.Delete(rest, at, at+1)
	}
	return true
}

func sameAttributes(a, b []Attribute) bool {
	holds := func(set []Attribute, want Attribute) bool {
		return slices.ContainsFunc(set, func(has Attribute) bool {
			return strings.EqualFold(has.Type, want.Type) && has.Value == want.Value
		})
	}
	within := func(x, y []Attribute) bool {
		return !slices.ContainsFunc(x, func(one Attribute) bool { return !holds(y, one) })
	}
	return len(a) == len(b) && within(a, b) && within(b, a)
}
