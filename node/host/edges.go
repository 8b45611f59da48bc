package host

import (
	"time"

	"weir/node/event"
	"weir/transport/tcp"
	"weir/transport/wire"
)

// clock is the host as a node.Clock. Monotone time counts from the start of the process.
type clock Host

// Now reads the clock of the operating system once.
func (c *clock) Now() event.Time {
	now := time.Now()
	return event.Time{Mono: int64(now.Sub(c.started)) + 1, Wall: now.UnixNano()}
}

// Wake arms the one timer of the host.
func (c *clock) Wake(at int64) {
	if at == c.wakeAt {
		return
	}
	c.wakeAt = at
	if at == 0 {
		c.timer.Stop()
		return
	}
	c.timer.Reset(time.Duration(max(at-int64(time.Since(c.started)), 0)))
}

// network is the host as a node.Network.
type network Host

// Send queues bytes and orders for connections; they are flushed after the step.
func (n *network) Send(out []event.ConnOut) {
	for i := range out {
		o := &out[i]
		c := n.conns[o.Conn]
		if c == nil {
			continue
		}
		if o.Gate || o.Admit || o.Limits != (wire.Limits{}) {
			gate, admit, limits := o.Gate, o.Admit, o.Limits
			c.Control(func(p *wire.Parser) {
				if gate {
					p.Gate()
				}
				if admit {
					p.Admit()
				}
				if limits != (wire.Limits{}) {
					p.SetLimits(limits)
				}
			})
		}
		if o.StallNanos > 0 {
			c.Stall(time.Duration(o.StallNanos))
		}
		if len(o.Bytes) > 0 {
			n.tracer.Load().sent(o.Conn, o.Bytes)
			c.Queue(o.Bytes)
			n.touched = append(n.touched, c)
		}
		if o.Close {
			go c.Close(o.Reason, o.Abort)
		}
	}
}

// SpareMax and SpareBytesMax bound the buffers kept for the node, and the capacity of each.
const (
	SpareMax      = 256
	SpareBytesMax = 512 << 10
)

// Spare gives written buffers back to the node.
func (n *network) Spare(dst [][]byte) [][]byte {
	n.writtenMu.Lock()
	defer n.writtenMu.Unlock()
	dst = append(dst, n.spare...)
	clear(n.spare)
	n.spare = n.spare[:0]
	return dst
}

// clients is the host as a tcp.Handler.
type clients Host

// Ops brings operations of a connection to the node.
func (c *clients) Ops(id uint64, ops []wire.Op) {
	c.tracer.Load().received(event.ConnID(id), ops)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock() // what comes after the end of the server is not answered
		return
	}
	(*Host)(c).stepLocked(InlineBytesMax, event.Input{Kind: event.Ops, Conn: event.ConnID(id), Ops: ops})
}

// Refused brings the end of a connection's protocol to the node.
func (c *clients) Refused(id uint64, failure wire.Failure) {
	(*Host)(c).step(event.Input{Kind: event.Refused, Conn: event.ConnID(id), Failure: failure})
}

// Closed brings the end of a connection to the node.
func (c *clients) Closed(id uint64, reason wire.Reason) {
	c.tracer.Load().closed(event.ConnID(id), reason)
	c.mu.Lock()
	delete(c.conns, event.ConnID(id))
	(*Host)(c).stepLocked(0, event.Input{Kind: event.Closed, Conn: event.ConnID(id), Reason: reason})
}

// Written notes bytes for the next step.
func (c *clients) Written(id uint64, n int, buffer []byte) {
	c.writtenMu.Lock()
	defer c.writtenMu.Unlock()
	c.written[event.ConnID(id)] += n
	if cap(buffer) > 0 && cap(buffer) <= SpareBytesMax && len(c.spare) < SpareMax {
		c.spare = append(c.spare, buffer[:0])
	}
}

var _ tcp.Handler = (*clients)(nil)
