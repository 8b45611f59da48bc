package engine

import (
	"slices"

	"weir/node/event"
	"weir/transport/wire"
)

// greet says INFO on a connection that began silently.
func (e *Engine) greet(in *event.Input) {
	if c := e.sessions[in.Conn]; c != nil {
		c.session.Greet()
	}
}

// secured takes how a connection is protected.
func (e *Engine) secured(in *event.Input) {
	if c := e.sessions[in.Conn]; c != nil {
		c.session.Secured(in.TLS, in.Cookies)
		e.armClient(in.Conn, c)
	}
}

// reload takes what the operator changed about clients.
func (e *Engine) reload(r *event.Reload) {
	limits := &e.config.Limits
	limits.ControlLineBytes, limits.PayloadBytes, limits.PendingBytes = r.ControlLineBytes, r.PayloadBytes, r.PendingBytes
	limits.Connections, limits.PingsOut = r.Connections, r.PingsOut
	limits.PingIntervalNanos, limits.AuthTimeoutNanos = r.PingIntervalNanos, r.AuthTimeoutNanos
	e.config.AdvertiseHost, e.config.AdvertisePort, e.config.Protection = r.AdvertiseHost, r.AdvertisePort, r.Protection
	host, port := e.config.WebSockets.Host, e.config.WebSockets.Port
	e.config.WebSockets = r.WebSockets
	e.config.WebSockets.Host, e.config.WebSockets.Port = host, port
	if r.Users != nil {
		e.config.Auth = r.Users
	}
	if e.api != nil {
		e.api.SetPendingBytes(r.PendingBytes)
	}
	before, payload := e.clientConfig.Info, e.clientConfig.Limits.PayloadBytes
	e.clientConfig = e.config.clients()
	e.clientConfig.Info.LameDuck = before.LameDuck
	e.tellURLs()
	after := &e.clientConfig.Info
	tells := payload != r.PayloadBytes || before.Host != after.Host || before.Port != after.Port
	for i, id := range e.clientIDs() {
		c := e.sessions[id]
		c.session.SetConfig(&e.clientConfig)
		if r.Users != nil {
			for _, line := range c.session.Reauthenticate() {
				e.logf(event.Info, line)
			}
		}
		if i >= r.Connections {
			c.session.Close(wire.MaxConnectionsExceeded, "maximum connections exceeded")
		}
		if tells {
			c.session.SendInfo()
		}
		e.armClient(id, c)
	}
	if r.Users == nil {
		return
	}
	for _, id := range slices.Backward(e.clientIDs()) { // the newest have to go
		e.sessions[id].session.KeepBound()
	}
}
