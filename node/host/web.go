package host

import (
	"errors"
	"fmt"
	"net"

	"weir/node/auth"
	"weir/transport/tcp"
)

// Web is where clients connect by WebSocket.
type Web struct {
	// Listen is the address, "host:port"; port 0 takes any free one.
	Listen string
	// Guard, when it is not nil, is how connections are protected; it is First.
	Guard *tcp.Guard
	// Sockets is how connections become WebSockets.
	Sockets *tcp.WebSockets
	// NoAdvertise keeps the address from other servers.
	NoAdvertise bool
}

// openWeb listens for WebSockets, if the options say so.
func (h *Host) openWeb() error {
	w := h.options.Web
	if w == nil {
		return nil
	}
	var err error
	if h.web, err = net.Listen("tcp", w.Listen); err != nil {
		return fmt.Errorf("listen for websocket clients on %s: %w", w.Listen, err)
	}
	c := &h.options.Node.Engine
	c.WebSockets.Port = h.web.Addr().(*net.TCPAddr).Port
	if len(c.Cluster.WebURLs) == 0 && !w.NoAdvertise {
		c.Cluster.WebURLs = clientURLs(w.Listen, c.WebSockets.Port)
	}
	return nil
}

// closeWeb ends listening for WebSockets.
func (h *Host) closeWeb() error {
	if h.web == nil {
		return nil
	}
	return h.web.Close()
}

// WebAddr is the address on which WebSockets are accepted; nil without any.
func (h *Host) WebAddr() net.Addr {
	if h.web == nil {
		return nil
	}
	return h.web.Addr()
}

// runAll accepts clients on all listeners until one fails, or the server ends.
func (h *Host) runAll() error {
	if h.web == nil {
		return h.accepts(h.listener, auth.Standard)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.accepts(h.web, auth.WebSocket) }()
	if err := h.accepts(h.listener, auth.Standard); err != nil {
		return errors.Join(err, h.closeWeb())
	}
	return <-ended
}

// cookies are what a request for a WebSocket brought; nil for nothing.
func cookies(c tcp.Credentials) *auth.Cookies {
	if c == (tcp.Credentials{}) {
		return nil
	}
	return &auth.Cookies{JWT: c.JWT, User: c.User, Password: c.Password, Token: c.Token}
}
