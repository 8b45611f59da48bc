package auth

import (
	"fmt"
	"strings"

	"github.com/nats-io/jwt/v2"

	"weir/model/subject"
)

// expansionsMax bounds the subjects that one list of a template stands for.
const expansionsMax = 4096

// applyScope gives a user whose issuer is a signing key with a role what the template of the role says, which is all that
// such a user may have.
func applyScope(user *jwt.UserClaims, a *Account) error {
	scope, known := a.Claims.SigningKeys.GetScope(user.Issuer)
	if !known || scope == nil {
		return nil
	}
	role, ok := scope.(*jwt.UserScope)
	if !ok || role.ValidateScopedSigner(user) != nil {
		return fmt.Errorf("%w: it holds permissions besides those of its role", errJWT)
	}
	given := role.Template
	t := template{user: user, account: a}
	for _, list := range []struct {
		allow, deny *jwt.StringList
	}{
		{&given.Pub.Allow, &given.Pub.Deny}, {&given.Sub.Allow, &given.Sub.Deny},
	} {
		allow, err := t.expand(*list.allow, false)
		if err != nil {
			return err
		}
		deny, err := t.expand(*list.deny, true)
		if err != nil {
			return err
		}
		if len(*list.allow) > 0 && len(allow) == 0 {
			deny = append(deny, ">") // an empty list would allow everything
		}
		*list.allow, *list.deny = allow, deny
	}
	user.UserPermissionLimits = given
	return nil
}

// template fills in the functions of a role for one user.
type template struct {
	user    *jwt.UserClaims
	account *Account
}

// expand fills in the entries of a list. An entry for which there is no value is left out; strictly, it is an error.
func (t *template) expand(list jwt.StringList, strict bool) (jwt.StringList, error) {
	var out jwt.StringList
	for _, entry := range list {
		if !strings.Contains(entry, "{{") {
			out = append(out, entry)
			continue
		}
		filled, err := t.fill(entry)
		if err != nil {
			return nil, err
		}
		if len(filled) == 0 && strict {
			return nil, fmt.Errorf("%w: no value for %q", errJWT, entry)
		}
		for _, one := range filled {
			_, err := parseRule(one, true)
			switch {
			case err == nil:
				out = append(out, one)
			case strict:
				return nil, fmt.Errorf("%w: invalid subject for %q", errJWT, entry)
			}
		}
		if len(out) > expansionsMax {
			return nil, fmt.Errorf("%w: more than %d subjects", errJWT, expansionsMax)
		}
	}
	return out, nil
}

// fill returns an entry once for each combination of values of its functions.
func (t *template) fill(entry string) ([]string, error) {
	before, rest, found := strings.Cut(entry, "{{")
	if !found {
		return []string{entry}, nil
	}
	call, rest, closed := strings.Cut(rest, "}}")
	if !closed {
		return []string{entry}, nil
	}
	values, err := t.values(strings.TrimSpace(call))
	if err != nil {
		return nil, err
	}
	tails, err := t.fill(rest)
	if err != nil {
		return nil, err
	}
	if len(values)*len(tails) > expansionsMax {
		return nil, fmt.Errorf("%w: more than %d subjects", errJWT, expansionsMax)
	}
	var out []string
	for _, value := range values {
		if !plain(value) {
			continue
		}
		for _, tail := range tails {
			out = append(out, before+value+tail)
		}
	}
	return out, nil
}

// plain reports whether a value can not make more of a subject than the template says: it is one literal or several.
func plain(value string) bool { return subject.ValidLiteral(value) }

// values are those of one function.
func (t *template) values(call string) ([]string, error) {
	name, argument, _ := strings.Cut(strings.TrimSuffix(call, ")"), "(")
	switch strings.ToLower(name) {
	case "name":
		return []string{t.user.Name}, nil
	case "subject":
		return []string{t.user.Subject}, nil
	case "account-name":
		return []string{t.account.tag()}, nil
	case "account-subject":
		return []string{t.account.Claims.Subject}, nil
	case "tag":
		return tagged(t.user.Tags, argument), nil
	case "account-tag":
		return tagged(t.account.Claims.Tags, argument), nil
	}
	return nil, fmt.Errorf("%w: function %q of a role is not defined", errJWT, call)
}

// tagged are the values of the tags "name:value".
func tagged(tags jwt.TagList, name string) (values []string) {
	for _, tag := range tags {
		if value, found := strings.CutPrefix(tag, strings.ToLower(name)+":"); found {
			values = append(values, value)
		}
	}
	return values
}
