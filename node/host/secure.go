package host

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"weir/node/auth"
	"weir/node/event"
	"weir/transport/tcp"
)

// Greet has the node say INFO to a client that waits for it.
func (c *clients) Greet(id uint64) {
	(*Host)(c).step(event.Input{Kind: event.Greet, Conn: event.ConnID(id)})
}

// Secured tells the node how a connection is protected, or the operator why it is not.
func (c *clients) Secured(id uint64, h tcp.Handshake) {
	host, conn := (*Host)(c), event.ConnID(id)
	if h.Err != nil {
		host.unsecured(conn, h.Err)
		return
	}
	in := event.Input{Kind: event.Secured, Conn: conn, Cookies: cookies(h.Web)}
	if h.State != nil {
		in.TLS = &event.TLS{Version: versionName(h.State.Version), Cipher: tls.CipherSuiteName(h.State.CipherSuite), First: h.First}
		if len(h.State.VerifiedChains) > 0 {
			in.TLS.Certificate = certificate(h.State.PeerCertificates)
		}
		host.options.Log.Debug(fmt.Sprintf("%s - TLS handshake complete: version %s, cipher suite %s", host.clientName(conn),
			in.TLS.Version, in.TLS.Cipher))
	}
	host.step(in)
}

// versionName is the number of a version of TLS.
func versionName(version uint16) string { return strings.TrimPrefix(tls.VersionName(version), "TLS ") }

func (h *Host) clientName(id event.ConnID) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.conns[id]; c != nil {
		return connName(c)
	}
	return fmt.Sprintf("cid:%d", id)
}

func connName(c *tcp.Conn) string {
	way := auth.Standard
	if c.Web() {
		way = auth.WebSocket
	}
	return clientName(event.ConnID(c.ID()), c.Address().String(), way)
}

// unsecured tells the operator of a handshake that failed. Probes that look whether somebody listens are nothing to worry
// about.
func (h *Host) unsecured(id event.ConnID, err error) {
	var early *tcp.UpgradeError
	if errors.As(err, &early) {
		h.options.Log.Error(fmt.Sprintf("%s - websocket handshake error: %v", h.clientName(id), early.Reason))
		return
	}
	line := fmt.Sprintf("%s - TLS handshake error: %v%s", h.clientName(id), err, unverified(err))
	var late net.Error
	var garbled tls.RecordHeaderError
	if errors.As(err, &late) && late.Timeout() || errors.As(err, &garbled) && garbled.Conn != nil {
		h.options.Log.Debug(line)
		return
	}
	h.options.Log.Error(line)
}

// unverified names the certificates that were not accepted.
func unverified(err error) string {
	var refused *tls.CertificateVerificationError
	if !errors.As(err, &refused) {
		return ""
	}
	var subjects []string
	for _, c := range refused.UnverifiedCertificates {
		subjects = append(subjects, fmt.Sprintf("%s SHA-256: %s", c.Subject, sum(c.Raw)))
	}
	return " (" + strings.Join(subjects, "; ") + ")"
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// certificate says who the client is that holds the first of the certificates.
func certificate(sent []*x509.Certificate) *auth.Certificate {
	own := sent[0]
	c := &auth.Certificate{Names: slices.Concat(own.EmailAddresses, own.DNSNames)}
	for _, u := range own.URIs {
		c.Names = append(c.Names, u.String())
	}
	text := own.Subject.ToRDNSequence().String()
	var parts pkix.RDNSequence
	if _, err := asn1.Unmarshal(own.RawSubject, &parts); err == nil {
		c.Subject = distinguishedName(parts)
		if domain := domainOf(parts); domain != "" {
			c.Texts = append(c.Texts, text+","+domain)
		}
	}
	c.Texts = append(c.Texts, text)
	for _, s := range sent {
		c.Peers = append(c.Peers, auth.PeerCertificate{Subject: s.Subject.String(), KeySum: sum(s.RawSubjectPublicKeyInfo), Sum: sum(s.Raw)})
	}
	return c
}

// domainComponent is the type of the parts of a distinguished name that spell a domain.
const domainComponent = "0.9.2342.19200300.100.1.25"

// attributeNames are the short names of the attributes that users can be named by.
var attributeNames = map[string]string{
	"2.5.4.3": "CN", "2.5.4.5": "SERIALNUMBER", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O",
	"2.5.4.11": "OU", "2.5.4.17": "POSTALCODE", domainComponent: "DC",
}

// distinguishedName turns the order of a certificate around; nil when it has attributes without a short name.
func distinguishedName(parts pkix.RDNSequence) (name auth.Name) {
	for _, part := range slices.Backward(parts) {
		var attributes []auth.Attribute
		for _, a := range part {
			value, ok := a.Value.(string)
			short := attributeNames[a.Type.String()]
			if !ok || short == "" {
				return nil
			}
			attributes = append(attributes, auth.Attribute{Type: short, Value: value})
		}
		if len(attributes) > 0 {
			name = append(name, attributes)
		}
	}
	return name
}

// domainOf writes the parts that spell a domain, in the order of the certificate.
func domainOf(parts pkix.RDNSequence) string {
	var list []string
	for _, part := range parts {
		for _, a := range part {
			if value, ok := a.Value.(string); ok && a.Type.String() == domainComponent {
				list = append(list, "DC="+value)
			}
		}
	}
	return strings.Join(list, ",")
}
