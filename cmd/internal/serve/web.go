package serve

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"weir/model/jsapi"
	"weir/node/config"
	"weir/node/event"
	"weir/node/host"
	"weir/node/monitor"
	"weir/transport/tcp"
)

// webHost is where WebSockets are accepted.
func webHost(c *config.Config) string {
	if c.WebSocket.Host == "" {
		return config.DefaultHost
	}
	return c.WebSocket.Host
}

// door is what clients that connect by WebSocket are told.
func door(c *config.Config) event.Door {
	w := &c.WebSocket
	d := event.Door{
		Host: webHost(c), Port: max(w.Port, 0), AuthTimeoutNanos: w.AuthTimeoutNanos, PingIntervalNanos: w.PingIntervalNanos,
		Protected: w.TLS != nil,
	}
	d.Verify = w.TLS != nil && w.TLS.Verify
	return d
}

// hostWeb is what the host needs to accept WebSockets; nil without any.
func hostWeb(s *settings) (*host.Web, error) {
	w := &s.WebSocket
	if w.Port == 0 {
		return nil, nil
	}
	sockets := &tcp.WebSockets{
		Timeout: time.Duration(w.HandshakeTimeoutNanos), SameOrigin: w.SameOrigin, Compression: w.Compression,
		Cookies: tcp.Credentials{JWT: w.JWTCookie, User: w.UserCookie, Password: w.PasswordCookie, Token: w.TokenCookie},
	}
	for _, text := range w.AllowedOrigins {
		origin, err := tcp.ParseOrigin(text)
		if err != nil {
			return nil, err
		}
		sockets.Origins = append(sockets.Origins, origin)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		sockets.Headers = append(sockets.Headers, tcp.Header{Name: name, Value: w.Headers[name]})
	}
	return &host.Web{
		Listen: net.JoinHostPort(webHost(&s.Config), strconv.Itoa(max(w.Port, 0))), Guard: s.web, Sockets: sockets,
		NoAdvertise: s.Cluster.NoAdvertise,
	}, nil
}

// announceWeb writes where WebSockets are accepted.
func (p *process) announceWeb() {
	addr := p.host.WebAddr()
	if addr == nil {
		return
	}
	p.log.Info("Listening for websocket clients on " + webScheme(p.web != nil) + "://" + listening(webHost(&p.Config), addr))
	if p.web == nil {
		p.log.Warn("Websocket not configured with TLS. DO NOT USE IN PRODUCTION!")
	}
}

// shownWeb is what monitoring shows of WebSockets.
func shownWeb(s *settings, h *host.Host) monitor.WebSocket {
	w := &s.WebSocket
	if w.Port == 0 {
		return monitor.WebSocket{}
	}
	shown := monitor.WebSocket{
		Host: webHost(&s.Config), Port: w.Port, Advertise: w.Advertise, NoAuthUser: w.NoAuthUser, JWTCookie: w.JWTCookie,
		HandshakeTimeout: w.HandshakeTimeoutNanos, NoTLS: w.NoTLS, TLSMap: w.TLS != nil && w.TLS.VerifyAndMap,
		SameOrigin: w.SameOrigin, AllowedOrigins: w.AllowedOrigins, Compression: w.Compression,
	}
	if w.AuthTimeoutNanos != 0 {
		shown.AuthTimeout = monitor.Seconds(w.AuthTimeoutNanos)
	}
	if h != nil {
		shown.Port = h.WebAddr().(*net.TCPAddr).Port
	}
	if end := certificateEnd(s.web); end != 0 {
		at := jsapi.Time(end)
		shown.CertificateEnd = &at
	}
	return shown
}
