package tcp

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/transport/wire"
)

// RequestBytesMax bounds the request by which a client asks for a WebSocket.
const RequestBytesMax = 32 << 10

// WebSockets is how the connections of a listener become WebSockets. It does not change.
type WebSockets struct {
	// Timeout bounds the request and its answer.
	Timeout time.Duration
	// SameOrigin refuses browsers whose page comes from another host. Origins, when there are any, are the only ones from
	// which a page may come. Clients that are no browsers name no origin, and are not concerned.
	SameOrigin bool
	Origins    []Origin
	// Compression lets clients ask for compressed messages.
	Compression bool
	// Headers are sent with the answer, in the order of their names.
	Headers []Header
	// Cookies are the names of the cookies from which credentials are taken.
	Cookies Credentials
}

// Header is a header of the answer to a request.
type Header struct{ Name, Value string }

// Credentials are what cookies say of a client, or the names of these cookies.
type Credentials struct {
	JWT, User, Password, Token string
}

// Origin is where a page comes from, in lower case.
type Origin struct{ Scheme, Host, Port string }

// ParseOrigin reads the URL of an origin.
func ParseOrigin(text string) (Origin, error) {
	u, err := url.ParseRequestURI(text)
	switch {
	case err != nil:
		return Origin{}, err
	case u.Scheme != "http" && u.Scheme != "https":
		return Origin{}, fmt.Errorf("%q: allowed origins must be absolute URLs with http or https scheme", text)
	case u.Host == "":
		return Origin{}, fmt.Errorf("%q: host is required", text)
	}
	return originOf(u.Scheme, u.Host)
}

// originOf completes "host[:port]" with the port of the scheme.
func originOf(scheme, hostPort string) (Origin, error) {
	host, port, err := net.SplitHostPort(hostPort)
	var incomplete *net.AddrError
	if errors.As(err, &incomplete) && strings.Contains(incomplete.Err, "missing port") {
		host, port, err = hostPort, "80", nil
		if scheme == "https" {
			port = "443"
		}
	}
	return Origin{Scheme: strings.ToLower(scheme), Host: strings.ToLower(host), Port: port}, err
}

// refusal is why a request is refused, and the status of the answer that says so.
type refusal struct {
	status int
	text   string
}

// Error returns why.
func (r *refusal) Error() string { return r.text }

// UpgradeError is why a connection did not become a WebSocket.
type UpgradeError struct{ Reason error }

// Error returns why.
func (e *UpgradeError) Error() string { return "websocket handshake error: " + e.Reason.Error() }

// Unwrap returns why as an error.
func (e *UpgradeError) Unwrap() error { return e.Reason }

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

// upgrade makes the connection a WebSocket: it reads the request and answers it. What is queued until then goes out as
// messages.
func (c *Conn) upgrade(w *WebSockets) (Credentials, error) {
	sock := c.sock
	limit := time.Now().Add(w.Timeout)
	if err := sock.SetDeadline(limit); err != nil {
		return Credentials{}, err
	}
	in := bufio.NewReaderSize(&io.LimitedReader{R: sock, N: RequestBytesMax}, ReadBufferMin)
	request, err := http.ReadRequest(in)
	if err != nil {
		return Credentials{}, err
	}
	reason := w.judge(request, c.protected)
	if reason == nil && in.Buffered() > 0 {
		reason = refuse(http.StatusBadRequest, "client sent data before handshake is complete")
	}
	if reason != nil {
		_, err := sock.Write(reason.answer())
		return Credentials{}, errors.Join(reason, err)
	}
	compresses := w.Compression && offersDeflate(request.Header["Sec-Websocket-Extensions"])
	unmasked := request.Header.Get(noMaskingHeader) == "true"
	if _, err := sock.Write(w.accept(request, compresses, unmasked)); err != nil {
		return Credentials{}, err
	}
	if err := sock.SetDeadline(time.Time{}); err != nil {
		return Credentials{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return Credentials{}, net.ErrClosed
	}
	if c.closing {
		// A failure shows at the writer, which closes as well.
		_ = sock.SetWriteDeadline(limit)
	}
	c.sock, c.protected, c.held = newFramed(sock, compresses, !unmasked), true, false
	return w.credentials(request), nil
}

// noMaskingHeader is by which a client that is no browser asks to send unmasked frames.
const noMaskingHeader = "Nats-No-Masking"

// judge reports why a request is refused, nil when it is not.
func (w *WebSockets) judge(r *http.Request, secure bool) *refusal {
	key := r.Header.Get("Sec-Websocket-Key")
	nonce, err := base64.StdEncoding.DecodeString(key)
	path := r.URL.EscapedPath()
	switch {
	case strings.HasSuffix(path, "/mqtt"):
		return refuse(http.StatusNotFound, "mqtt websocket endpoint not enabled")
	case strings.HasSuffix(path, "/leafnode"):
		return refuse(http.StatusNotFound, "leafnode websocket endpoint not enabled")
	case r.Method != http.MethodGet:
		return refuse(http.StatusMethodNotAllowed, "request method must be GET")
	case r.Host == "":
		return refuse(http.StatusBadRequest, "'Host' missing in request")
	case !holds(r.Header["Upgrade"], "websocket"):
		return refuse(http.StatusBadRequest, "invalid value for header 'Upgrade'")
	case !holds(r.Header["Connection"], "Upgrade"):
		return refuse(http.StatusBadRequest, "invalid value for header 'Connection'")
	case key == "":
		return refuse(http.StatusBadRequest, "key missing")
	case err != nil || len(nonce) != 16:
		return refuse(http.StatusBadRequest, "invalid websocket key")
	case !holds(r.Header["Sec-Websocket-Version"], "13"):
		return refuse(http.StatusBadRequest, "invalid version")
	}
	if err := w.checkOrigin(r, secure); err != nil {
		return refuse(http.StatusForbidden, "origin not allowed: %v", err)
	}
	return nil
}

// holds reports whether one of the values, each a list, has the token.
func holds(values []string, token string) bool {
	for _, list := range values {
		for one := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.Trim(one, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// checkOrigin reports why a page may not connect.
func (w *WebSockets) checkOrigin(r *http.Request, secure bool) error {
	text := r.Header.Get("Origin")
	if text == "" {
		text = r.Header.Get("Sec-Websocket-Origin")
	}
	if text == "" || !w.SameOrigin && len(w.Origins) == 0 {
		return nil
	}
	u, err := url.ParseRequestURI(text)
	if err != nil {
		return err
	}
	origin, err := originOf(u.Scheme, u.Host)
	if err != nil {
		return err
	}
	if w.SameOrigin {
		scheme := "http"
		if secure {
			scheme = "https"
		}
		if own, err := originOf(scheme, r.Host); err != nil || own != origin {
			return errors.Join(errors.New("not same origin"), err)
		}
	}
	if len(w.Origins) > 0 && !slices.Contains(w.Origins, origin) {
		return errors.New("not in the allowed list")
	}
	return nil
}

// offersDeflate reports whether one of the offers of a client is compression by messages on their own. One that wants a
// smaller window of this side is not taken.
func offersDeflate(values []string) bool {
	for _, list := range values {
		for offer := range strings.SplitSeq(list, ",") {
			name, parameters, _ := strings.Cut(offer, ";")
			if strings.EqualFold(strings.TrimSpace(name), "permessage-deflate") && !strings.Contains(strings.ToLower(parameters), "server_max_window_bits") {
				return true
			}
		}
	}
	return false
}

// credentials are those in the cookies of a request.
func (w *WebSockets) credentials(r *http.Request) (c Credentials) {
	for _, cookie := range r.Cookies() {
		switch cookie.Name {
		case "":
		case w.Cookies.JWT:
			c.JWT = cookie.Value
		case w.Cookies.User:
			c.User = cookie.Value
		case w.Cookies.Password:
			c.Password = cookie.Value
		case w.Cookies.Token:
			c.Token = cookie.Value
		}
	}
	return c
}

// acceptGUID is what the protocol adds to the key of a request.
const acceptGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// accept is the answer to a request that is granted.
func (w *WebSockets) accept(r *http.Request, compresses, unmasked bool) []byte {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + acceptGUID))
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
	fmt.Fprintf(&b, "Sec-WebSocket-Accept: %s\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	if compresses {
		b.WriteString("Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n")
	}
	if unmasked {
		b.WriteString(noMaskingHeader + ": true\r\n")
	}
	for _, h := range w.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h.Name, h.Value)
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// answer is the answer to a request that is refused. Why is for the operator.
func (r *refusal) answer() []byte {
	text := http.StatusText(r.status) + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 %d %sSec-Websocket-Version: 13\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		r.status, strings.TrimSuffix(text, "\n")+"\r\n", len(text), text)
}

// become upgrades the connection when it is to be a WebSocket, and tells the handler how it is settled. It reports whether the
// connection goes on.
func (c *Conn) become(h Handshake) bool {
	if c.web == nil {
		c.handler.Secured(c.id, h)
		return true
	}
	var err error
	if h.Web, err = c.upgrade(c.web); err != nil {
		c.handler.Secured(c.id, Handshake{Err: &UpgradeError{err}})
		c.end(wire.ProtocolViolation)
		return false
	}
	c.handler.Secured(c.id, h)
	c.Flush()
	return true
}
