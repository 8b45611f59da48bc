package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"time"

	"weir/node/config"
	"weir/node/event"
	"weir/transport/tcp"
)

// clientGuard is how the connections of clients are protected; nil when they are not.
func clientGuard(t *config.TLS) (*tcp.Guard, error) {
	if t == nil {
		return nil, nil
	}
	settings, err := serverTLS(t)
	if err != nil {
		return nil, err
	}
	settings.ClientAuth = tls.NoClientCert
	if t.Verify {
		settings.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if settings.CipherSuites, err = cipherSuites(t.CipherSuites, t.InsecureCiphers); err != nil {
		return nil, err
	}
	if settings.CurvePreferences, err = curves(t.CurvePreferences); err != nil {
		return nil, err
	}
	return &tcp.Guard{
		Config: settings, Timeout: time.Duration(t.TimeoutNanos), First: t.HandshakeFirst, Fallback: time.Duration(t.FallbackNanos),
		PerSecond: t.RateLimit,
	}, nil
}

// protection is what INFO says about it.
func protection(c *config.Config) event.Protection {
	if c.TLS == nil {
		return event.Protection{}
	}
	return event.Protection{Required: !c.AllowNonTLS, Available: c.AllowNonTLS, Verify: c.TLS.Verify}
}

// serverTLS reads the files of a tls block for the side that accepts.
func serverTLS(t *config.TLS) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("error parsing X509 certificate/key pair: %w", err)
	}
	made := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	if t.MinVersion == "1.3" {
		made.MinVersion = tls.VersionTLS13
	}
	if t.CAFile == "" {
		return made, nil // the authorities of the machine
	}
	text, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("authorities of certificates: %w", err)
	}
	made.ClientCAs = x509.NewCertPool()
	if !made.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("failed to parse root certificate from %q", t.CAFile)
	}
	return made, nil
}

// cipherSuites finds cipher suites by their names; nil, all that are safe, without any.
func cipherSuites(names []string, insecure bool) (ids []uint16, err error) {
	for _, name := range names {
		named := func(s *tls.CipherSuite) bool { return s.Name == name }
		if i := slices.IndexFunc(tls.CipherSuites(), named); i >= 0 {
			ids = append(ids, tls.CipherSuites()[i].ID)
			continue
		}
		i := slices.IndexFunc(tls.InsecureCipherSuites(), named)
		switch {
		case i < 0:
			return nil, fmt.Errorf("unrecognized cipher %s", name)
		case !insecure:
			return nil, fmt.Errorf("insecure cipher suites configured without 'allow_insecure_cipher_suites' option set: %s", name)
		}
		ids = append(ids, tls.InsecureCipherSuites()[i].ID)
	}
	return ids, nil
}

// curves finds key exchanges by their names; nil, those that package tls prefers, without any.
func curves(names []string) (ids []tls.CurveID, err error) {
	known := []tls.CurveID{tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024, tls.X25519, tls.CurveP256, tls.CurveP384,
		tls.CurveP521}
	for _, name := range names {
		i := slices.IndexFunc(known, func(id tls.CurveID) bool { return id.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("unrecognized curve preference %s", name)
		}
		ids = append(ids, known[i])
	}
	return ids, nil
}

// announceTLS tells the operator which clients are let in.
func (p *process) announceTLS() {
	t := p.TLS
	if t == nil {
		return
	}
	only := t.HandshakeFirst && t.FallbackNanos == 0
	if p.AllowNonTLS && !only {
		p.log.Info("TLS available for client connections")
	} else {
		p.log.Info("TLS required for client connections")
	}
	if only {
		p.log.Warn("Clients that are not using \"TLS Handshake First\" option will fail to connect")
	}
}

// certificateEnd is when the certificate of a guard expires, in unix nanoseconds; 0 without one.
func certificateEnd(g *tcp.Guard) int64 {
	if g == nil {
		return 0
	}
	leaf, err := x509.ParseCertificate(g.Config.Certificates[0].Certificate[0])
	if err != nil {
		return 0 // it was parsed when it was loaded
	}
	return leaf.NotAfter.UnixNano()
}
