package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// authority signs certificates.
type authority struct {
	t      *testing.T
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	dir    string
	serial int64
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{t: t, dir: dir, serial: 1}
	a.cert = &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "authority"}}
	pair := a.sign("ca", a.cert)
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

func (a *authority) file(name, kind string) string { return filepath.Join(a.dir, name+"."+kind) }

// sign makes a certificate and its key, and puts both into files; the first one signs itself.
func (a *authority) sign(name string, template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for kind, block := range map[string]*pem.Block{"pem": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(a.file(name, kind), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) server(name string) tls.Certificate {
	return a.sign(name, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
}

// settings are those of a client that shows a certificate.
func (a *authority) settings(own ...tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, Certificates: own}
}

func (s *server) reload(file, text, line string) {
	s.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
	s.await(line)
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCertificatesNameClients has clients that are known by their certificates alone, one that may not do everything, and
// one that has none; then the certificate of the server is renewed while it runs.
func TestCertificatesNameClients(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t, dir)
	a.server("first")
	derek := a.sign("derek", &x509.Certificate{Subject: pkix.Name{CommonName: "derek", Organization: []string{"Org"}}})
	joe := a.sign("joe", &x509.Certificate{Subject: pkix.Name{CommonName: "joe"}, EmailAddresses: []string{"joe@example.org"}})
	file := filepath.Join(dir, "a.conf")
	text := func(name, more string) string {
		return fmt.Sprintf(`tls { cert_file: %q, key_file: %q, ca_file: %q, verify_and_map: true, timeout: 20 %s }
			authorization { users: [ {user: "CN=derek,O=Org", permissions: {publish: "a.>"}}, {user: "joe@example.org"} ] }
			`, a.file(name, "pem"), a.file(name, "key"), a.file("ca", "pem"), more)
	}
	if err := os.WriteFile(file, []byte(text("first", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, dir, "-c", file, "-D")
	s.await("TLS required for client connections")
	wrong := make(chan error, 1)
	first := s.connect(nats.Secure(a.settings(derek)), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { wrong <- err }))
	if err := errors.Join(first.Publish("a.b", nil), first.Publish("b", nil)); err != nil {
		t.Fatal(err)
	}
	if err := <-wrong; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("derek may: %v", err)
	}
	second := s.connect(nats.Secure(a.settings(joe)), nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond))
	if state, err := second.TLSConnectionState(); err != nil || state.PeerCertificates[0].Subject.CommonName != "first" {
		t.Errorf("the server shows %+v, %v", state.PeerCertificates, err)
	}
	if _, err := nats.Connect(s.url, nats.Secure(a.settings())); err == nil {
		t.Error("a client without a certificate is let in")
	}
	s.await("TLS handshake error: tls: client didn't provide a certificate")
	shown := get(t, s.http+"/connz?auth=1")
	for _, want := range []string{`"tls_version": "1.3"`, `"tls_cipher_suite": "TLS_`, `"authorized_user": "joe@example.org"`, `"subject": "CN=joe"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("connz does not show %s:\n%s", want, shown)
		}
	}
	if closed := get(t, s.http+"/connz?state=closed"); !strings.Contains(closed, `"reason": "TLS Handshake Failure"`) {
		t.Errorf("closed connections are\n%s", closed)
	}

	a.server("renewed")
	s.reload(file, text("renewed", ""), "Reloaded: tls = enabled")
	s.reload(file, text("missing", ""), "Failed to reload server configuration: error parsing X509 certificate/key pair")
	if first.Flush() != nil || second.Flush() != nil {
		t.Error("clients are closed by a reload that does not concern them")
	}
	third := s.connect(nats.Secure(a.settings(joe)))
	if state, err := third.TLSConnectionState(); err != nil || state.PeerCertificates[0].Subject.CommonName != "renewed" {
		t.Errorf("the server shows %+v, %v", state.PeerCertificates, err)
	}
	back := make(chan struct{}, 1)
	second.SetReconnectHandler(func(*nats.Conn) { back <- struct{}{} })
	s.reload(file, text("renewed", `, min_version: "1.3"`)+"max_connections: 1\n", "Reloaded: max_connections = 1")
	first.Close()
	third.Close()
	select {
	case <-back:
	case <-time.After(patience):
		t.Errorf("a client that was closed does not come back:\n%s", s.log)
	}
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestClientsBeginAsTheyLike has a server at which they may begin TLS before INFO, after it, or not at all, started with
// flags and a file together.
func TestClientsBeginAsTheyLike(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t, dir)
	a.server("own")
	file := filepath.Join(dir, "a.conf")
	if err := os.WriteFile(file, []byte("allow_non_tls: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, dir, "-c", file, "--tls", "--tlscert", a.file("own", "pem"), "--tlskey", a.file("own", "key"))
	s.await("TLS available for client connections")
	plain := s.connect()
	if _, err := plain.TLSConnectionState(); err == nil {
		t.Error("a plain client is protected")
	}
	secure := s.connect(nats.Secure(a.settings()))
	if _, err := secure.TLSConnectionState(); err != nil {
		t.Error(err)
	}
	whole := fmt.Sprintf("tls { cert_file: %q, key_file: %q, handshake_first: \"50ms\" }\n", a.file("own", "pem"), a.file("own", "key"))
	s.reload(file, "allow_non_tls: true\n"+whole, "Reloaded: tls = enabled")
	s.connect(nats.Secure(a.settings()), nats.TLSHandshakeFirst())
	s.connect(nats.Secure(a.settings()))
	s.connect()
	if shown := get(t, s.http+"/connz"); strings.Count(shown, `"tls_first": true`) != 1 || strings.Count(shown, `"tls_version"`) != 3 {
		t.Errorf("connections are\n%s", shown)
	}
	// What goes one way in the clear comes out of the other protected.
	sub, err := secure.SubscribeSync("x")
	if err != nil || secure.Flush() != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 1<<20)
	for range 20 {
		if err := plain.Publish("x", []byte(large)); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if m, err := sub.NextMsg(patience); err != nil || string(m.Data) != large {
			t.Fatal(err)
		}
	}
}
