// Package event is the seam of a node: everything that enters and leaves its engine. Read this first.
//
// The engine is a pure function of its state, the time and one input. Sockets, disks and clocks are on the other side
// of this package: in production node/host feeds inputs and carries out outputs, in simulation sim does, and nothing
// else differs between the two.
//
// Both sides are flat structs with a kind, reused from step to step, so that neither side allocates per event.
package event

import (
	"weir/node/auth"
	"weir/transport/peerwire"
	"weir/transport/wire"
)

// ServerID identifies a server of the cluster.
type ServerID = peerwire.ServerID

// ConnID identifies a client connection. It is never reused while a node runs; clients see it as client_id and cid.
type ConnID uint64

// Ticket pairs a storage operation with its completion. It is never reused while a node runs; 0 means that no
// completion is expected.
type Ticket uint64

// Time is the frozen time of one step, read once by the caller.
type Time struct {
	// Mono is nanoseconds of a clock that never steps; timers of connections and requests use it.
	Mono int64
	// Wall is unix nanoseconds; leaders stamp commands with it, clamped to be monotone. It may step either way.
	Wall int64
}

// InputKind tells inputs apart.
type InputKind uint8

// The closed set of inputs.
const (
	// Woke brings nothing but time: a deadline that the engine asked for may have passed.
	Woke InputKind = iota
	// Opened reports a new client connection: Conn, Text (remote address), Start, Way, Nonce.
	Opened
	// Greet asks for INFO on a connection that was opened Silent, because the client waits for it: Conn.
	Greet
	// Secured reports that it is settled whether a connection that was opened Guarded or Silent is protected: Conn, TLS (nil:
	// it is not), Cookies (nil: there are none). Its first Ops come later.
	Secured
	// Ops brings operations that the connection's parser read: Conn, Ops. The slices inside are the parser's and are
	// valid during the step only.
	Ops
	// Refused reports bytes that are not the protocol: Conn, Failure. Operations that preceded them have been brought
	// before.
	Refused
	// Closed reports that a connection is gone: Conn, Reason.
	Closed
	// Flushed reports bytes of a connection handed to the kernel: Conn, N.
	Flushed
	// Done reports the end of a storage operation: Done.
	Done
	// LameDuck asks to tell clients to leave for other servers.
	LameDuck
	// Shutdown asks to tell waiting clients that the server ends. Nothing but Flushed, Closed and Done may follow.
	Shutdown
	// PeerUp reports that a session with another server began: Peer, Hello.
	PeerUp
	// PeerDown reports that the session ended: Peer. Frames that it brought have been given before.
	PeerDown
	// Reloaded brings what the operator changed about clients: Reload. Those that may not stay are closed.
	Reloaded
	// FromPeer brings frames of a session: Peer, Frames. Those of a kind that is no datagram come in the order in which
	// they were sent, without gaps, until PeerDown.
	FromPeer
)

// Input is one event that enters the engine.
type Input struct {
	// Kind says which fields count.
	Kind InputKind
	// Conn is the connection that the input is about.
	Conn ConnID
	// Ops are the operations of an Ops input, in order.
	Ops []wire.Op
	// Start is how the connection begins.
	Start Start
	// Way is how the client connects.
	Way auth.Way
	// Nonce is what the client has to sign when it proves to hold a key: text that nobody can know before.
	Nonce string
	// TLS is how the connection is protected. The engine keeps it.
	TLS *TLS
	// Cookies are what the client sent before it spoke the protocol. The engine keeps them.
	Cookies *auth.Cookies
	// N is a number of bytes.
	N int
	// Reload is what the operator changed about clients.
	Reload *Reload
	// Text is a remote address, "host:port".
	Text string
	// Failure is why the parser refused the bytes.
	Failure wire.Failure
	// Reason is why the connection is gone.
	Reason wire.Reason
	// Done is the completion of a Done input.
	Done Completion
	// Peer is the server that the input is about.
	Peer ServerID
	// Hello is how that server introduced itself. The engine keeps it.
	Hello *peerwire.Hello
	// Frames are whole frames (package peerwire), one after the other. They are valid during the step only.
	Frames []byte
}

// ConnOut is what leaves for one connection.
type ConnOut struct {
	// Conn is the connection.
	Conn ConnID
	// Bytes are to be written in order after everything that left before. The receiver owns them; it may hand the
	// memory back through Outputs.Spare.
	Bytes []byte
	// Close asks to close the connection for Reason once Bytes are written, or at once when Abort is set as well.
	Close bool
	// Abort asks to drop whatever is still unwritten.
	Abort bool
	// Reason is why the connection is closed.
	Reason wire.Reason
	// Gate asks the parser to accept nothing but CONNECT; Admit ends that.
	Gate, Admit bool
	// Limits, when they are not zero, are new limits for the connection's parser.
	Limits wire.Limits
	// StallNanos is how long the connection's reader should wait before it reads on, because it publishes faster than
	// somebody takes; 0: not at all. Nothing but speed depends on it.
	StallNanos int64
}

// PeerOut is what leaves for another server.
type PeerOut struct {
	// To is the server. Without a session with it the frames are lost.
	To ServerID
	// Frames are whole frames, one after the other, in the order of their sending. The receiver owns them.
	Frames []byte
	// Close asks to end the session: what came in it is not to be trusted.
	Close bool
}

// Level is the severity of a log line.
type Level uint8

// The levels, as the reference server names them.
const (
	Info Level = iota
	Debug
	Warn
	Error
	Trace
)

// LogLine is one line for the operator.
type LogLine struct {
	// Level is the severity.
	Level Level
	// Text is the line, without time and level. It never holds secrets.
	Text string
}

// Outputs collects what leaves the engine in one or more steps. The owner resets and reuses it.
type Outputs struct {
	// Conns are bytes and orders for connections; at most one element per connection and step.
	Conns []ConnOut
	// Peers is what leaves for other servers; at most one element per server and step.
	Peers []PeerOut
	// Storage are operations for the storage of the node, to be carried out in this order.
	Storage []Op
	// Logs are lines for the operator.
	Logs []LogLine
	// WakeAt is the monotone time at which the engine wants to be stepped again at the latest; 0: it has no deadline.
	WakeAt int64
	// Spare are buffers whose bytes have been written and that the engine may use again. The owner adds to it between
	// steps; the engine takes from it.
	Spare [][]byte
}

// Reset empties everything but Spare and keeps the memory.
func (o *Outputs) Reset() {
	clear(o.Conns)
	clear(o.Storage)
	clear(o.Peers)
	o.Conns, o.Storage, o.Peers, o.Logs, o.WakeAt = o.Conns[:0], o.Storage[:0], o.Peers[:0], o.Logs[:0], 0
}
