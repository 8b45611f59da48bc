package main

import (
	"encoding/json"
	"errors"
	"fmt"
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

// webURL is where a server listens for WebSockets.
func (s *server) webURL() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("%s_%d.ports", filepath.Base(os.Args[0]), s.cmd.Process.Pid)))
	if err != nil {
		s.t.Fatal(err)
	}
	var ports struct{ WebSocket []string }
	if err := json.Unmarshal(text, &ports); err != nil || len(ports.WebSocket) != 1 {
		s.t.Fatalf("ports file holds %s: %v", text, err)
	}
	return ports.WebSocket[0]
}

// TestWebSocketsAreClientsLikeOthers has a server with protected WebSockets, whose users prove themselves by CONNECT or by
// cookies, and one user who may connect in no other way.
func TestWebSocketsAreClientsLikeOthers(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t, dir)
	a.server("own")
	file := filepath.Join(dir, "a.conf")
	text := func(more string) string {
		return fmt.Sprintf(`websocket { listen: "127.0.0.1:-1", tls { cert_file: %q, key_file: %q }, compression: true, same_origin: true,
				user_cookie: u, pass_cookie: p, headers { X-Served-By: weir } }
			authorization { users: [ {user: any, password: x}, {user: web, password: y, allowed_connection_types: [WEBSOCKET]},
				{user: tcp, password: z, allowed_connection_types: [standard]} ] }
			%s`, a.file("own", "pem"), a.file("own", "key"), more)
	}
	if err := os.WriteFile(file, []byte(text("")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, dir, "-c", file, "-D")
	url := s.webURL()
	s.await("Listening for websocket clients on wss://127.0.0.1:")
	connect := func(url string, options ...nats.Option) (*nats.Conn, error) {
		nc, err := nats.Connect(url, append(options, nats.Secure(a.settings()))...)
		if err == nil {
			t.Cleanup(nc.Close)
		}
		return nc, err
	}
	plain := func(options ...nats.Option) (*nats.Conn, error) { return nats.Connect(s.url, options...) }
	for name, refused := range map[string]func() (*nats.Conn, error){
		"web":    func() (*nats.Conn, error) { return plain(nats.UserInfo("web", "y")) },
		"tcp":    func() (*nats.Conn, error) { return connect(url, nats.UserInfo("tcp", "z")) },
		"nobody": func() (*nats.Conn, error) { return connect(url) },
	} {
		if _, err := refused(); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	cookies := http.Header{"Cookie": []string{"p=y; u=web"}, "Origin": []string{strings.Replace(url, "wss", "https", 1)}}
	web, err := connect(url, nats.WebSocketConnectionHeaders(cookies), nats.Compression(true), nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	cookies = http.Header{"Cookie": cookies["Cookie"], "Origin": []string{"https://example.org"}}
	if _, err := connect(url, nats.WebSocketConnectionHeaders(cookies)); err == nil {
		t.Error("a page from elsewhere is let in")
	}
	s.await("websocket handshake error: origin not allowed: not same origin")
	other := s.connect(nats.UserInfo("any", "x"))
	js, err := web.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.AddStream(&nats.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	sub, err := other.SubscribeSync("s")
	if err != nil || other.Flush() != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 10, 5_000, 1 << 20} {
		body := strings.Repeat("x", size)
		if _, err := js.Publish("s", []byte(body)); err != nil {
			t.Fatal(err)
		}
		if m, err := sub.NextMsg(patience); err != nil || string(m.Data) != body {
			t.Fatal(err)
		}
		if m, err := js.GetLastMsg("S", "s"); err != nil || string(m.Data) != body {
			t.Fatal(err)
		}
	}
	shown := get(t, s.http+"/connz?auth=1") + get(t, s.http+"/varz")
	for _, want := range []string{`"type": "websocket"`, `"authorized_user": "web"`, `"same_origin": true`, `"handshake_timeout": 2000000000`} {
		if !strings.Contains(shown, want) {
			t.Errorf("monitoring does not show %s:\n%s", want, shown)
		}
	}
	s.await(" - wid:")

	s.reload(file, strings.Replace(text(""), "same_origin: true", "same_origin: false", 1), "config reload not supported for Websocket")
	a.server("own")
	s.reload(file, text("max_connections: 0\n"), "Reloaded: max_connections = 0")
	// Whether the client sees why depends on how far it has come when the connection is closed.
	if _, err := connect(url, nats.UserInfo("web", "y")); err == nil {
		t.Error("a client is let in beyond the bound of connections")
	}
	if closed := get(t, s.http+"/connz?state=closed&sort=stop&limit=1"); !strings.Contains(closed, `"reason": "Maximum Connections Exceeded"`) {
		t.Errorf("closed connections are\n%s", closed)
	}
	s.reload(file, text("lame_duck_duration: \"30s\"\n"), "config reload not supported for LameDuckDuration")
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestSocketsThatAskForNothingEnd connects without a request. The server waits no longer than it was told.
func TestSocketsThatAskForNothingEnd(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.conf")
	if err := os.WriteFile(file, []byte(`websocket { listen: "127.0.0.1:-1", no_tls: true, handshake_timeout: "20ms" }`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, dir, "-c", file)
	s.await("Websocket not configured with TLS. DO NOT USE IN PRODUCTION!")
	sock, err := net.Dial("tcp", strings.TrimPrefix(s.webURL(), "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	if n, err := sock.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the server says %d bytes", n)
	}
	s.await("websocket handshake error: ")
}
