package host

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"weir/node/auth"
	"weir/node/event"
	"weir/transport/wire"
)

// LevelTrace is the level of lines that show the protocol.
const LevelTrace = slog.LevelDebug - 4

// redacted stands in trace lines for what a client proves itself with.
const redacted = "[REDACTED]"

// tracer shows operators what goes over connections. It is nil unless somebody wants to see that.
type tracer struct {
	log     *slog.Logger
	traces  bool // the protocol too, not only that connections come and go
	textMax int  // bytes of a payload that are shown; 0: all

	mu    sync.Mutex
	conns map[event.ConnID]*traced
}

// traced is what the tracer knows of a connection. Its parser is used by whoever holds the lock of the host, who alone
// sends.
type traced struct {
	name   string
	parser *wire.Parser // of what the server sends
	ops    []wire.Op
}

// newTracer returns nil when the log shows neither debugging nor tracing.
func newTracer(log *slog.Logger, textMax int) *tracer {
	t := &tracer{log: log, textMax: textMax, conns: map[event.ConnID]*traced{}}
	t.traces = log.Enabled(context.Background(), LevelTrace)
	if !t.traces && !log.Enabled(context.Background(), slog.LevelDebug) {
		return nil
	}
	return t
}

func (t *tracer) opened(name string, id event.ConnID) {
	if t == nil {
		return
	}
	c := t.add(name, id)
	t.log.Debug(c.name + " - Client connection created")
}

// add begins to show a connection. What the server sends next on it is the beginning of an operation.
func (t *tracer) add(name string, id event.ConnID) *traced {
	c := &traced{name: name}
	c.parser = wire.NewClientParser(wire.Limits{ControlLineBytes: traceLineMax, PayloadBytes: tracePayloadMax})
	t.mu.Lock()
	t.conns[id] = c
	t.mu.Unlock()
	return c
}

// clientName is how log lines begin that are about a connection.
func clientName(id event.ConnID, address string, way auth.Way) string {
	if way == auth.WebSocket {
		return fmt.Sprintf("%s - wid:%d", address, id)
	}
	return fmt.Sprintf("%s - cid:%d", address, id)
}

// The bounds of what the server may send and is still shown.
const (
	traceLineMax    = 1 << 20
	tracePayloadMax = 128 << 20
)

func (t *tracer) closed(id event.ConnID, reason wire.Reason) {
	if c := t.find(id); c != nil {
		t.mu.Lock()
		delete(t.conns, id)
		t.mu.Unlock()
		t.log.Debug(fmt.Sprintf("%s - Client connection closed: %v", c.name, reason))
	}
}

func (t *tracer) find(id event.ConnID) *traced {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conns[id]
}

// received shows what a client sent.
func (t *tracer) received(id event.ConnID, ops []wire.Op) {
	c := t.find(id)
	if c == nil || !t.traces {
		return
	}
	for i := range ops {
		t.show(c, "<<-", &ops[i])
	}
}

// sent shows what goes to a client.
func (t *tracer) sent(id event.ConnID, bytes []byte) {
	c := t.find(id)
	if c == nil || !t.traces {
		return
	}
	for len(bytes) > 0 {
		var n int
		var err error
		c.ops, n, err = c.parser.Feed(bytes, c.ops[:0])
		for i := range c.ops {
			t.show(c, "->>", &c.ops[i])
		}
		if err != nil || n == 0 {
			return
		}
		bytes = bytes[n:]
	}
}

func (t *tracer) show(c *traced, arrow string, op *wire.Op) {
	ctx := context.Background()
	t.log.Log(ctx, LevelTrace, fmt.Sprintf("%s - %s [%s]", c.name, arrow, describe(op)))
	if op.Kind != wire.KindPub && op.Kind != wire.KindMsg {
		return
	}
	text := append(append([]byte(nil), op.Header...), op.Payload...)
	more := ""
	if t.textMax > 0 && len(text) > t.textMax {
		text, more = text[:t.textMax], "..."
	}
	t.log.Log(ctx, LevelTrace, fmt.Sprintf("%s - %s MSG_PAYLOAD: [%q%s]", c.name, arrow, text, more))
}

// describe writes an operation as its control line.
func describe(op *wire.Op) string {
	switch op.Kind {
	case wire.KindConnect:
		return "CONNECT " + withoutSecrets(op.Args)
	case wire.KindPub:
		return withSizes(op, op.Subject, op.Reply)
	case wire.KindMsg:
		return withSizes(op, op.Subject, op.Sid, op.Reply)
	case wire.KindSub:
		return controlLine("SUB", op.Subject, op.Queue, op.Sid)
	case wire.KindUnsub:
		if op.Max > 0 {
			return controlLine("UNSUB", op.Sid, strconv.AppendInt(nil, int64(op.Max), 10))
		}
		return controlLine("UNSUB", op.Sid)
	case wire.KindPing:
		return "PING"
	case wire.KindPong:
		return "PONG"
	case wire.KindInfo:
		return fmt.Sprintf("INFO %s", op.Args)
	case wire.KindOK:
		return "+OK"
	case wire.KindErr:
		return fmt.Sprintf("-ERR %s", op.Args)
	}
	return fmt.Sprintf("operation %d", op.Kind)
}

// withSizes writes the control line of an operation with a message: with a header it has another name and two sizes.
func withSizes(op *wire.Op, args ...[]byte) string {
	name := "PUB"
	if op.Kind == wire.KindMsg {
		name = "MSG"
	}
	if op.Header != nil {
		name = "H" + name
		args = append(args, strconv.AppendInt(nil, int64(len(op.Header)), 10))
	}
	return controlLine(name, append(args, strconv.AppendInt(nil, int64(len(op.Header)+len(op.Payload)), 10))...)
}

// controlLine joins a name and the arguments that are there.
func controlLine(name string, args ...[]byte) string {
	for _, arg := range args {
		if len(arg) > 0 {
			name += " " + string(arg)
		}
	}
	return name
}

// withoutSecrets writes the arguments of CONNECT with nothing that proves who the client is. Arguments that cannot be
// read are not shown at all.
func withoutSecrets(args []byte) string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(args, &fields); err != nil {
		return redacted
	}
	for name := range fields {
		switch name {
		case "verbose", "pedantic", "tls_required", "name", "lang", "version", "protocol", "echo", "headers", "no_responders",
			"user", "nkey", "account", "new_account":
		default:
			fields[name] = json.RawMessage(`"` + redacted + `"`)
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return redacted
	}
	return string(text)
}
