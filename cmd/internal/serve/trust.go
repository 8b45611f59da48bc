package serve

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"weir/model/jsapi"
	"weir/node/auth"
	"weir/node/config"
	"weir/node/engine"
)

// operatorFileMax bounds a file with the JWT of an operator.
const operatorFileMax = 1 << 20

// loadTrust reads what operators say; nil without any. The first of them may name the system account.
func loadTrust(c *config.Config) (*auth.TrustConfig, error) {
	if !c.Trust.Enabled() {
		return nil, nil
	}
	t := &auth.TrustConfig{Keys: slices.Clone(c.Trust.Keys), Pinned: c.Trust.Pinned, Zone: zone}
	for i, text := range c.Trust.Operators {
		o, err := operator(text)
		if err != nil {
			return nil, fmt.Errorf("error parsing operator JWT: %w", err)
		}
		if !o.StrictSigningKeyUsage {
			t.Keys = append(t.Keys, o.Subject)
		}
		t.Keys = append(t.Keys, o.SigningKeys...)
		switch {
		case o.SystemAccount == "" || o.SystemAccount == c.SystemAccount:
		case c.SystemAccount != config.DefaultSystemAccount:
			return nil, fmt.Errorf("system_account in config and operator JWT must be identical")
		case i == 0:
			c.SystemAccount = o.SystemAccount
		}
	}
	named := c.SystemAccount == config.DefaultSystemAccount || c.SystemAccount == ""
	for _, text := range c.Trust.Preload {
		a, err := auth.DecodeAccount(text)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(t.Keys, a.Claims.Issuer) {
			return nil, fmt.Errorf("account %s is not signed by a trusted operator", a.Claims.Subject)
		}
		named = named || a.Claims.Subject == c.SystemAccount
		t.Accounts = append(t.Accounts, a)
	}
	if !named {
		return nil, fmt.Errorf("error resolving system account %s: it is not in resolver_preload", c.SystemAccount)
	}
	return t, nil
}

// operator reads the JWT of an operator, or a file that holds one.
func operator(text string) (*jwt.OperatorClaims, error) {
	if !strings.HasPrefix(text, "eyJ") {
		info, err := os.Stat(text)
		if err != nil {
			return nil, err
		}
		if info.Size() > operatorFileMax {
			return nil, fmt.Errorf("%s is too large", text)
		}
		content, err := os.ReadFile(text)
		if err != nil {
			return nil, err
		}
		if text, err = jwt.ParseDecoratedJWT(content); err != nil {
			return nil, err
		}
	}
	claims, err := jwt.DecodeOperatorClaims(strings.TrimSpace(text))
	if err != nil {
		return nil, err
	}
	results := jwt.CreateValidationResults()
	claims.Validate(results)
	for _, issue := range results.Issues {
		if issue.Blocking || issue.TimeCheck {
			return nil, fmt.Errorf("operator %s: %s", claims.Subject, issue.Description)
		}
	}
	return claims, checkVersion(claims)
}

// checkVersion reports that an operator wants a newer server.
func checkVersion(o *jwt.OperatorClaims) error {
	var wanted, own [3]int
	var err error
	if wanted[0], wanted[1], wanted[2], err = jwt.ParseServerVersion(o.AssertServerVersion); err != nil {
		return fmt.Errorf("operator %s expects version %s: %w", o.Subject, o.AssertServerVersion, err)
	}
	if own[0], own[1], own[2], err = jwt.ParseServerVersion(jsapi.Version); err != nil {
		return err
	}
	if slices.Compare(wanted[:], own[:]) > 0 {
		return fmt.Errorf("operator %s expects version %s of the server, which is compatible with %s", o.Subject, o.AssertServerVersion, jsapi.Version)
	}
	return nil
}

// zone finds a time zone; "" is that of the machine.
func zone(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	return time.LoadLocation(name)
}

// trustedAccounts are the accounts of operators, and what each may store.
func trustedAccounts(t *auth.TrustConfig) []engine.Account {
	var all []engine.Account
	for _, a := range t.Accounts {
		made := engine.Account{Name: a.Claims.Subject}
		if l := &a.Claims.Limits; l.IsJSEnabled() {
			made.JetStream = &jsapi.AccountLimits{
				MaxMemory: l.MemoryStorage, MaxStore: l.DiskStorage, MaxStreams: int(l.Streams), MaxConsumers: int(l.Consumer),
				MaxAckPending: int(unlimited(l.MaxAckPending)), MaxBytesRequired: l.MaxBytesRequired,
				MemoryMaxStreamBytes: unlimited(l.MemoryMaxStreamBytes), StoreMaxStreamBytes: unlimited(l.DiskMaxStreamBytes),
			}
		}
		all = append(all, made)
	}
	return all
}

// unlimited is a limit of which 0 means that there is none.
func unlimited(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}
