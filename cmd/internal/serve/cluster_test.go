package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/node/config"
)

// TestRouteToTheServerItselfIsNotExpected counts the servers that found a catalog together.
func TestRouteToTheServerItselfIsNotExpected(t *testing.T) {
	for routes, want := range map[string]int{
		"": 1, "nats://127.0.0.1:6222": 1, "nats://localhost:6222,nats://127.0.0.1:6223,nats://127.0.0.1:6224": 3,
		"nats://198.51.100.1:6222,nats://198.51.100.2:6222": 3,
	} {
		list, err := config.ParseRoutes(routes)
		if err != nil {
			t.Fatal(err)
		}
		c := config.Default()
		c.Cluster.Port, c.Cluster.Routes = 6222, list
		if got := clusterConfig(&c); got.Expected != want || got.Name != unnamedCluster {
			t.Errorf("%q expects %d servers in %q, want %d", routes, got.Expected, got.Name, want)
		}
	}
}

func TestWithoutClusterThereIsNone(t *testing.T) {
	c := config.Default()
	if k := clusterConfig(&c); k.Name != "" || k.Expected != 0 {
		t.Errorf("the engine gets %+v", k)
	}
	if h, err := hostCluster(&c); h != nil || err != nil {
		t.Errorf("the host gets %+v, %v", h, err)
	}
}

func TestClusterOfTheConfigurationReachesTheHost(t *testing.T) {
	c := config.Default()
	c.ClientAdvertise = "clients.example.org"
	c.Cluster = config.Cluster{
		Name: "C", Port: -1, Advertise: "servers.example.org", Routes: []config.Route{{Address: "h:1", User: "u", Password: "p"}},
		User: "a", Password: "b", TimeoutNanos: 3e9, WriteDeadlineNanos: 5e9, ConnectRetries: 7,
	}
	h, err := hostCluster(&c)
	if err != nil {
		t.Fatal(err)
	}
	if h.Listen != "0.0.0.0:0" || h.Advertise != "servers.example.org:-1" || h.Routes[0].Password != "p" || h.User != "a" || h.Password != "b" ||
		h.Timeout != 3*time.Second || h.WriteDeadline != 5*time.Second || h.Retries != 7 || h.ServerTLS != nil {
		t.Errorf("the host gets %+v", h)
	}
	k := clusterConfig(&c)
	if k.Name != "C" || k.User != "a" || len(k.ClientURLs) != 1 || k.ClientURLs[0] != "clients.example.org:4222" {
		t.Errorf("the engine gets %+v", k)
	}
	c.Cluster.NoAdvertise = true
	if k := clusterConfig(&c); len(k.ClientURLs) != 0 {
		t.Errorf("addresses for clients are told although they are not to be: %v", k.ClientURLs)
	}
}

func TestFilesOfTLSAreChecked(t *testing.T) {
	dir := t.TempDir()
	good := writePair(t, dir)
	for name, change := range map[string]func(*config.TLS){
		"":                                 func(*config.TLS) {},
		"error parsing X509 certificate":   func(c *config.TLS) { c.CertFile = filepath.Join(dir, "none.pem") },
		"error parsing X509":               func(c *config.TLS) { c.KeyFile = c.CertFile },
		"authorities of certificates":      func(c *config.TLS) { c.CAFile = filepath.Join(dir, "none.pem") },
		"failed to parse root certificate": func(c *config.TLS) { c.CAFile = c.KeyFile },
	} {
		k := *good
		change(&k)
		server, client, err := clusterTLS(&k)
		if name == "" {
			if err != nil || server.ClientAuth != tls.RequireAndVerifyClientCert || client.InsecureSkipVerify || client.MinVersion != tls.VersionTLS13 {
				t.Errorf("good files give %+v, %+v, %v", server, client, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

func writePair(t *testing.T, dir string) *config.TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := &config.TLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"), MinVersion: "1.3"}
	c.CAFile = c.CertFile
	for name, block := range map[string]*pem.Block{
		c.CertFile: {Type: "CERTIFICATE", Bytes: certificate}, c.KeyFile: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}
