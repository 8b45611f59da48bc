package config

import (
	"strings"
	"time"
)

// TLS is a tls block.
type TLS struct {
	// CertFile and KeyFile hold what this server shows, CAFile the authorities of the others; "" takes those of the
	// machine.
	CertFile, KeyFile, CAFile string
	// Insecure does not check the servers that are dialed.
	Insecure bool
	// MinVersion is the oldest version that is spoken: "1.2" or "1.3".
	MinVersion string
	// TimeoutNanos is how long a handshake may take.
	TimeoutNanos int64

	// The rest is about clients only. Between servers both sides always have to show a certificate that the authority
	// signed.

	// Verify has clients show a certificate that an authority signed; VerifyAndMap finds the user by it as well.
	Verify, VerifyAndMap bool
	// CipherSuites and CurvePreferences are names as package crypto/tls has them; empty takes all that are safe.
	CipherSuites, CurvePreferences []string
	// InsecureCiphers permits CipherSuites that are not safe any more.
	InsecureCiphers bool
	// HandshakeFirst begins with the handshake, before the server says anything. Clients that wait for the server to
	// speak get their way after FallbackNanos; 0 leaves them waiting.
	HandshakeFirst bool
	FallbackNanos  int64
	// RateLimit bounds the handshakes within a second; 0 does not.
	RateLimit int64
}

// FallbackNanosDefault is how long a server of handshake_first "auto" waits for a client to begin.
const FallbackNanosDefault = int64(50 * time.Millisecond)

// common are the options that every tls block has.
func (t *TLS) common() []field {
	return []field{
		{"cert_file", func(v value) { v.text(&t.CertFile) }},
		{"key_file", func(v value) { v.text(&t.KeyFile) }},
		{"ca_file", func(v value) { v.text(&t.CAFile) }},
		{"timeout", func(v value) { v.seconds(&t.TimeoutNanos) }},
		{"min_version", func(v value) {
			v.text(&t.MinVersion)
			if t.MinVersion != "1.2" && t.MinVersion != "1.3" {
				v.problem("min_version is %q, not \"1.2\" or \"1.3\"", t.MinVersion)
			}
		}},
		unsupported("verify_cert_and_check_known_urls pinned_certs certs certificates ocsp_peer"),
		unsupported("cert_store cert_match cert_match_by cert_match_skip_invalid ca_certs_match"),
	}
}

// NewTLS is a block in which nothing is set.
func NewTLS() *TLS { return &TLS{TimeoutNanos: DefaultTLSTimeoutNanos, MinVersion: "1.2"} }

// takePeerTLS reads the tls block of a cluster.
func takePeerTLS(v value) *TLS {
	t := NewTLS()
	v.block(append(t.common(),
		field{"verify", func(v value) {
			verify := true
			v.truth(&verify)
			if !verify {
				v.warn("certificates of other servers are verified always")
			}
		}},
		field{"insecure", func(v value) { v.truth(&t.Insecure) }},
		unsupported("verify_and_map cipher_suites curve_preferences allow_insecure_cipher_suites"),
		unsupported("handshake_first first immediate connection_rate_limit"),
	))
	if t.CertFile == "" || t.KeyFile == "" {
		v.problem("missing 'cert_file' or 'key_file' in TLS configuration")
	}
	return t
}

// takeClientTLS reads the tls block of the top level.
func takeClientTLS(v value) *TLS {
	t := NewTLS()
	t.takeAccepting(v,
		field{"handshake_first first immediate", func(v value) { t.takeFirst(v) }},
		field{"connection_rate_limit", func(v value) { v.integer64(&t.RateLimit, 0, sizeMax) }})
	return t
}

// takeWebTLS reads the tls block of WebSockets, which begin with the handshake always.
func takeWebTLS(v value) *TLS {
	t := NewTLS()
	t.takeAccepting(v, unsupported("handshake_first first immediate connection_rate_limit"))
	return t
}

// takeAccepting reads the block of a side that accepts clients, with more options than all of these have.
func (t *TLS) takeAccepting(v value, more ...field) {
	v.block(append(append(t.common(), more...),
		field{"verify", func(v value) { v.truth(&t.Verify) }},
		field{"verify_and_map", func(v value) { v.truth(&t.VerifyAndMap) }},
		field{"cipher_suites", func(v value) { t.CipherSuites = v.names() }},
		field{"curve_preferences", func(v value) { t.CurvePreferences = v.names() }},
		field{"allow_insecure_cipher_suites", func(v value) { v.truth(&t.InsecureCiphers) }},
		// It is about servers that are dialed, and a server dials no clients.
		field{"insecure", func(v value) { v.truth(&t.Insecure) }},
	))
	t.Verify = t.Verify || t.VerifyAndMap
	switch {
	case t.CertFile == "" && t.KeyFile == "":
		v.problem("missing 'cert_file' and 'key_file' in TLS configuration")
	case t.CertFile == "":
		v.problem("missing 'cert_file' in TLS configuration")
	case t.KeyFile == "":
		v.problem("missing 'key_file' in TLS configuration")
	}
}

// names reads a list of names, of which there has to be one.
func (v value) names() []string {
	list := v.texts()
	if len(list) == 0 {
		v.problem("error parsing tls config, '%s' cannot be empty", v.key)
	}
	return list
}

// takeFirst reads true, false, "auto", or how long to wait for a client to begin.
func (t *TLS) takeFirst(v value) {
	t.FallbackNanos = 0
	text, ok := v.raw.(string)
	if !ok {
		v.truth(&t.HandshakeFirst)
		return
	}
	switch strings.ToLower(text) {
	case "true", "on":
		t.HandshakeFirst = true
	case "false", "off":
		t.HandshakeFirst = false
	case "auto", "auto_fallback":
		t.HandshakeFirst, t.FallbackNanos = true, FallbackNanosDefault
	default:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			v.problem("field %q's value %q is invalid", v.key, text)
			return
		}
		t.HandshakeFirst, t.FallbackNanos = true, int64(d)
	}
}

// authTimeoutSpareNanos is what a client has for its credentials, at least, once its handshake is over.
const authTimeoutSpareNanos = int64(time.Second)

// Complete fills in what follows from several options together. It is called once files and flags have been applied,
// before Check.
func (c *Config) Complete() {
	if c.Authorization.TimeoutNanos != 0 {
		return
	}
	c.Authorization.TimeoutNanos = DefaultAuthTimeoutNanos
	if c.TLS != nil {
		c.Authorization.TimeoutNanos = c.TLS.TimeoutNanos + authTimeoutSpareNanos
	}
}

// checkTLS reports what does not fit together about the protection of clients.
func (c *Config) checkTLS(add func(string, ...any)) {
	switch {
	case c.TLS == nil:
		return
	case c.TLS.CertFile == "":
		add("TLS Server certificate must be present and valid")
	case c.TLS.KeyFile == "":
		add("TLS Server private key must be present and valid")
	}
}
