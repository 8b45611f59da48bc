package host

import (
	"errors"
	"slices"
	"time"

	"weir/node/event"
	"weir/transport/tcp"
)

// Change is what an operator can change while a host runs. All of it counts for what happens from now on.
type Change struct {
	// Clients is what the node is told.
	Clients event.Reload
	// Guard is how the connections of new clients are protected; nil leaves them plain.
	Guard *tcp.Guard
	// WebGuard is how those of new WebSockets are.
	WebGuard *tcp.Guard
	// WriteDeadline bounds writes to new clients.
	WriteDeadline time.Duration
	// Cluster is about other servers; nil without any. Only its routes and its certificates can change.
	Cluster *Cluster
	// TraceBytes cuts the payloads in lines that show the protocol. What the log shows is looked at anew.
	TraceBytes int
}

// Reload changes what can be changed while the host runs. It returns when clients that may not stay have been told so.
func (h *Host) Reload(change Change) {
	h.mu.Lock()
	h.options.Guard, h.options.WriteDeadline, h.options.TraceBytes = change.Guard, change.WriteDeadline, change.TraceBytes
	if web := h.options.Web; web != nil {
		next := *web
		next.Guard = change.WebGuard
		h.options.Web = &next
	}
	t := newTracer(h.options.Log, change.TraceBytes)
	if t != nil {
		for id, c := range h.conns {
			t.add(connName(c), id)
		}
	}
	h.tracer.Store(t)
	ended := h.links.reload(change.Cluster)
	if h.ended {
		h.mu.Unlock()
		return
	}
	defer func() {
		for _, s := range ended {
			h.options.Log.Info("Removed route " + s.route.Address)
			s.conn.Close(errRouteRemoved)
		}
	}()
	h.stepLocked(0, event.Input{Kind: event.Reloaded, Reload: &change.Clients})
}

// errRouteRemoved has the text that operators know.
var errRouteRemoved = errors.New("Route Removed")

// reload begins to dial routes that are new, and dials those no more that are gone: the sessions that these have made are
// to be ended by the caller. Host.mu is held.
func (l *links) reload(next *Cluster) (ended []*session) {
	if l == nil || next == nil {
		return nil
	}
	was := l.options.Swap(next.completed(l.options.Load().WriteDeadline))
	for _, r := range was.Routes {
		kept := l.routes[r.Address]
		if slices.Contains(next.Routes, r) || kept == nil {
			continue
		}
		l.drop(kept)
		for _, s := range l.sessions {
			if s.route == kept {
				ended = append(ended, s)
			}
		}
	}
	for _, r := range next.Routes {
		if slices.Contains(was.Routes, r) {
			continue
		}
		if learned := l.routes[r.Address]; learned != nil {
			l.drop(learned)
		}
		l.addRoute(&route{Route: r, configured: true})
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return ended
}

// drop has a route dialed no more. Host.mu is held.
func (l *links) drop(r *route) {
	r.removed = true
	delete(l.routes, r.Address)
}
