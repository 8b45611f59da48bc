package config

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// DefaultHandshakeTimeoutNanos is how long a client may take to ask for a WebSocket.
const DefaultHandshakeTimeoutNanos = int64(2 * time.Second)

// WebSocket is the websocket block: where clients connect that speak the protocol in the frames of WebSockets.
type WebSocket struct {
	// Host and Port are where they connect; port 0: nowhere, -1 takes any free one. An empty host listens on all addresses.
	Host string
	Port int
	// Advertise is the address, host or host:port, that clients are told instead.
	Advertise string
	// NoTLS says that connections are not protected when there is no TLS.
	NoTLS bool
	// TLS, when not nil, protects them.
	TLS *TLS
	// SameOrigin refuses pages that come from another host, AllowedOrigins, when there are any, all pages but those from there.
	SameOrigin     bool
	AllowedOrigins []string
	// Compression lets clients compress messages.
	Compression bool
	// HandshakeTimeoutNanos is how long a client may take to ask for the WebSocket.
	HandshakeTimeoutNanos int64
	// PingIntervalNanos is the time between pings; 0: as for other clients.
	PingIntervalNanos int64
	// User and Password, or Token, are what clients have to know here, and NoAuthUser is who those without credentials become.
	// One of them stands for everything of its kind elsewhere.
	User, Password, Token, NoAuthUser string
	// AuthTimeoutNanos is how long a client has to authenticate; 0: as long as others.
	AuthTimeoutNanos int64
	// JWTCookie, UserCookie, PasswordCookie and TokenCookie are the names of cookies that hold credentials.
	JWTCookie, UserCookie, PasswordCookie, TokenCookie string
	// Headers are sent with the answer to a client.
	Headers map[string]string
}

// Overrides reports whether the block says who may connect.
func (w *WebSocket) Overrides() bool { return w.User != "" || w.Token != "" || w.NoAuthUser != "" }

func (w *WebSocket) take(v value) {
	v.block([]field{
		{"listen", func(v value) { v.listen(&w.Host, &w.Port) }},
		{"host net", func(v value) { v.text(&w.Host) }},
		{"port", func(v value) { v.integer(&w.Port, -1, PortMax) }},
		{"advertise", func(v value) { v.text(&w.Advertise) }},
		{"no_tls", func(v value) { v.truth(&w.NoTLS) }},
		{"tls", func(v value) { w.TLS = takeWebTLS(v) }},
		{"same_origin", func(v value) { v.truth(&w.SameOrigin) }},
		{"allowed_origins allowed_origin allow_origins allow_origin origins origin", func(v value) { w.takeOrigins(v) }},
		{"compress compression", func(v value) { v.truth(&w.Compression) }},
		{"handshake_timeout", func(v value) { v.seconds(&w.HandshakeTimeoutNanos) }},
		{"ping_interval", func(v value) { v.duration(&w.PingIntervalNanos) }},
		{"authorization authentication", func(v value) { w.takeAuthorization(v) }},
		{"no_auth_user", func(v value) { v.text(&w.NoAuthUser) }},
		{"jwt_cookie", func(v value) { v.text(&w.JWTCookie) }},
		{"user_cookie", func(v value) { v.text(&w.UserCookie) }},
		{"pass_cookie", func(v value) { v.text(&w.PasswordCookie) }},
		{"token_cookie", func(v value) { v.text(&w.TokenCookie) }},
		{"headers", func(v value) { w.takeHeaders(v) }},
	})
}

func (w *WebSocket) takeAuthorization(v value) {
	v.block([]field{
		{"user username", func(v value) { v.text(&w.User) }},
		{"password pass", func(v value) { v.text(&w.Password) }},
		{"token", func(v value) { v.text(&w.Token) }},
		{"timeout", func(v value) { v.seconds(&w.AuthTimeoutNanos) }},
	})
	if w.User != "" && w.Token != "" {
		v.problem("Cannot have a user/pass and token")
	}
}

func (w *WebSocket) takeOrigins(v value) {
	w.AllowedOrigins = v.texts()
	for _, text := range w.AllowedOrigins {
		u, err := url.ParseRequestURI(text)
		switch {
		case err != nil:
			v.problem("unable to parse allowed origin: %v", err)
		case u.Scheme != "http" && u.Scheme != "https":
			v.problem("unable to parse allowed origin %q: allowed origins must be absolute URLs with http or https scheme", text)
		case u.Host == "":
			v.problem("unable to parse allowed origin %q: host is required", text)
		}
	}
}

// ownHeaders are the headers of an answer that are not the operator's to set.
var ownHeaders = []string{"host", "content-length", "connection", "upgrade", "nats-no-masking"}

func (w *WebSocket) takeHeaders(v value) {
	pairs, _ := v.entries("a block of texts")
	w.Headers = make(map[string]string, len(pairs))
	for _, pair := range pairs {
		var text string
		pair.text(&text)
		name := strings.ToLower(pair.key)
		switch {
		case slices.Contains(ownHeaders, name):
			pair.problem("websocket: invalid header %q not allowed", pair.key)
		case strings.HasPrefix(name, "sec-websocket-"):
			pair.problem("websocket: invalid header %q, \"Sec-WebSocket-\" prefix not allowed", pair.key)
		case name == "" || strings.ContainsAny(name, "\r\n\t :") || strings.ContainsAny(text, "\r\n"):
			pair.problem("websocket: invalid header %q", pair.key)
		}
		w.Headers[pair.key] = text
	}
}

// checkWebSocket reports what does not fit together about WebSockets.
func (c *Config) checkWebSocket(add func(string, ...any)) {
	w := &c.WebSocket
	if w.Port == 0 {
		return
	}
	if w.TLS == nil && !w.NoTLS {
		add("websocket requires TLS configuration, or no_tls: true")
	}
	if w.NoAuthUser != "" && c.AccountOf(w.NoAuthUser) == "" {
		add("websocket no_auth_user: %q not present as user or nkey in authorization block or account configuration", w.NoAuthUser)
	}
	users := len(c.Authorization.Users) > 0
	for _, a := range c.Accounts {
		users = users || len(a.Users) > 0
	}
	if users && w.User != "" {
		add("websocket authentication username not compatible with presence of users/nkeys")
	}
	if users && w.Token != "" {
		add("websocket authentication token not compatible with presence of users/nkeys")
	}
}
