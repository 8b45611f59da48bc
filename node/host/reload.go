package host

import (
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
	// WriteDeadline bounds writes to new clients.
	WriteDeadline time.Duration
	// TraceBytes cuts the payloads in lines that show the protocol. What the log shows is looked at anew.
	TraceBytes int
}

// Reload changes what can be changed while the host runs. It returns when clients that may not stay have been told so.
func (h *Host) Reload(change Change) {
	h.mu.Lock()
	h.options.Guard, h.options.WriteDeadline, h.options.TraceBytes = change.Guard, change.WriteDeadline, change.TraceBytes
	t := newTracer(h.options.Log, change.TraceBytes)
	if t != nil {
		for id, c := range h.conns {
			t.add(id, c.Address().String())
		}
	}
	h.tracer.Store(t)
	if h.ended {
		h.mu.Unlock()
		return
	}
	h.stepLocked(0, event.Input{Kind: event.Reloaded, Reload: &change.Clients})
}
