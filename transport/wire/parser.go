package wire

import (
	"bytes"

	"weir/spec/assert"
)

// BatchMax bounds how many operations one call of Feed yields, and with them the memory of a batch.
const BatchMax = 512

// DefaultControlLineBytes is the usual limit on the arguments of a control line.
const DefaultControlLineBytes = 4096

// DefaultPayloadBytes is the usual limit on header plus body of a message.
const DefaultPayloadBytes = 1 << 20

// carryKeptBytes is the capacity up to which the buffer of split operations is kept when it is not in use.
const carryKeptBytes = 64 << 10

// Limits bound what a parser accepts.
type Limits struct {
	// ControlLineBytes bounds the arguments of one control line: what follows the verb and blanks, without line end.
	ControlLineBytes int
	// PayloadBytes bounds header plus body of one message; negative means no limit but the nine digits of a size.
	PayloadBytes int
}

// phase is how far the operation at the end of the last chunk had come.
type phase uint8

const (
	// phaseIdle: the last chunk ended with an operation; carry is empty.
	phaseIdle phase = iota
	// phaseVerb: carry is a proper prefix of a verb.
	phaseVerb
	// phaseAfterVerb: carry is a verb that may need a blank next.
	phaseAfterVerb
	// phaseBlanks: carry is a verb and one space; more blanks before the arguments are being skipped.
	phaseBlanks
	// phaseArgs: carry is the verb, one space and the arguments so far.
	phaseArgs
	// phaseIgnore: carry is a verb without arguments; the rest of the line is being skipped.
	phaseIgnore
	// phasePayload: carry is a control line without its end, then the payload so far.
	phasePayload
)

// Parser cuts a byte stream into operations. It keeps an operation that is split over chunks in a buffer of its own,
// which grows with the bytes received, never with the bytes announced. The zero value is not usable; see NewParser.
type Parser struct {
	limits Limits
	// fromServer selects the verbs: those a server sends instead of those a client sends.
	fromServer bool
	// gated is set while nothing but CONNECT is acceptable.
	gated   bool
	phase   phase
	failure Failure
	// carry holds the split operation. Invariant: empty exactly when phase is phaseIdle.
	carry []byte
	// given is the buffer that the operation completed by the last Feed aliases; it becomes the next carry.
	given []byte
	// lineBytes is the length of the control line at the start of carry, in phasePayload; that of the verb and its space
	// in phaseBlanks and phaseArgs.
	lineBytes int
	// missingBytes counts payload and line end still to come, in phasePayload.
	missingBytes int
}

// NewParser returns a parser for what a client sends to a server.
func NewParser(limits Limits) *Parser {
	assert.True(limits.ControlLineBytes > 0, "control line limit > 0")
	return &Parser{limits: limits}
}

// NewClientParser returns a parser for what a server sends to a client.
func NewClientParser(limits Limits) *Parser {
	p := NewParser(limits)
	p.fromServer = true
	return p
}

// SetLimits changes the limits; they hold for control lines that are completed from now on.
func (p *Parser) SetLimits(limits Limits) {
	assert.True(limits.ControlLineBytes > 0, "control line limit > 0")
	p.limits = limits
}

// Gate makes CONNECT the only acceptable operation until Admit is called: anything else is FailureAuthorization at its
// first byte, and Feed stops after a CONNECT. Thus a client that has not been admitted holds no more memory than one
// control line.
func (p *Parser) Gate() { p.gated = true }

// Admit ends the effect of Gate.
func (p *Parser) Admit() { p.gated = false }

// HeldBytes returns how much memory the parser holds for operations that are not complete or were just completed.
func (p *Parser) HeldBytes() int { return cap(p.carry) + cap(p.given) }

// Feed parses the next bytes of the stream and appends the operations that are complete to ops. It returns the longer
// slice and the number of bytes consumed.
//
// Fewer than len(chunk) bytes are consumed in three cases: the batch has BatchMax operations, or the parser is gated and
// the last operation is CONNECT (the caller decides about it, then calls Admit or drops the connection): handle the
// operations and feed the rest again; or err is a Failure: handle the operations, then close as the Failure says. A
// failed parser consumes nothing more and repeats its failure.
//
// The slices of the operations alias chunk or the parser's memory and are valid until the next call.
func (p *Parser) Feed(chunk []byte, ops []Op) (out []Op, n int, err error) {
	p.reclaim()
	batchEnd := len(ops) + BatchMax
	for n < len(chunk) && len(ops) < batchEnd && p.failure == 0 {
		before := len(ops)
		var used int
		if p.phase == phaseIdle {
			ops, used = p.parse(chunk[n:], ops)
		} else {
			ops, used = p.resume(chunk[n:], ops)
		}
		n += used
		if p.gated && len(ops) > before {
			break
		}
	}
	assert.True((len(p.carry) == 0) == (p.phase == phaseIdle), "carry is empty exactly when idle", uint64(p.phase))
	if p.failure != 0 {
		return ops, n, p.failure
	}
	return ops, n, nil
}

// reclaim takes back the buffer whose operation the caller is done with. A large one goes on to serve the operation in
// progress, so that a stream of large messages needs one large buffer and no allocation; when nothing is in progress,
// large buffers are let go.
func (p *Parser) reclaim() {
	if p.phase == phaseIdle {
		if cap(p.carry) > carryKeptBytes {
			p.carry = nil
		}
	} else if cap(p.given) > max(cap(p.carry), carryKeptBytes) {
		p.carry, p.given = append(p.given[:0], p.carry...), p.carry[:0]
	}
	if cap(p.given) > carryKeptBytes {
		p.given = nil
	}
}

// parse takes one operation from the start of data, or begins to carry it when data ends before it does.
func (p *Parser) parse(data []byte, ops []Op) ([]Op, int) {
	if p.gated && data[0]|0x20 != 'c' {
		p.failure = FailureAuthorization
		return ops, 0
	}
	lineEnd := bytes.IndexByte(data, '\n')
	if lineEnd < 0 {
		p.phase = phaseVerb
		p.hold(data)
		return ops, len(data)
	}
	line := data[:lineEnd]
	ops, sizes := p.control(line, ops)
	start := lineEnd + 1
	if p.failure != 0 || sizes.total < 0 {
		return ops, start
	}
	if len(data)-start >= sizes.total+2 {
		if !p.setPayload(&ops[len(ops)-1], data[start:start+sizes.total+2], sizes) {
			ops = ops[:len(ops)-1]
		}
		return ops, start + sizes.total + 2
	}
	ops = ops[:len(ops)-1]
	p.carry = append(p.carry[:0], line...)
	p.awaitPayload(sizes)
	return ops, start + p.takePayload(data[start:])
}

// resume continues the operation that the parser carries.
func (p *Parser) resume(data []byte, ops []Op) ([]Op, int) {
	if p.phase == phasePayload {
		used := p.takePayload(data)
		if p.missingBytes > 0 {
			return ops, used
		}
		return p.completePayload(ops), used
	}
	lineEnd := bytes.IndexByte(data, '\n')
	if lineEnd < 0 {
		p.hold(data)
		return ops, len(data)
	}
	p.hold(data[:lineEnd])
	if p.failure != 0 {
		return ops, lineEnd + 1
	}
	ops, sizes := p.control(p.carry, ops)
	switch {
	case p.failure != 0:
	case sizes.total >= 0:
		ops = ops[:len(ops)-1]
		p.awaitPayload(sizes)
	default:
		p.handOver()
	}
	return ops, lineEnd + 1
}

// awaitPayload enters phasePayload; carry is the control line.
func (p *Parser) awaitPayload(sizes sizes) {
	p.phase = phasePayload
	p.lineBytes = len(p.carry)
	p.missingBytes = sizes.total + 2
}

// takePayload moves payload bytes from data to the carry and returns how many it took. The carry doubles as bytes come
// in, so a payload in many pieces costs linear time, and ends at exactly the size of the operation.
func (p *Parser) takePayload(data []byte) int {
	n := min(p.missingBytes, len(data))
	if need := len(p.carry) + n; need > cap(p.carry) {
		whole := len(p.carry) + p.missingBytes
		grown := make([]byte, len(p.carry), min(whole, max(2*cap(p.carry), need)))
		copy(grown, p.carry)
		p.carry = grown
	}
	p.carry = append(p.carry, data[:n]...)
	p.missingBytes -= n
	if p.missingBytes == 1 && p.carry[len(p.carry)-1] != '\r' {
		// Whoever ends lines by LF alone would wait for an answer, and the parser for the byte behind it.
		p.failure = FailureVerb
	}
	return n
}

// completePayload yields the carried message; its control line is parsed a second time, now for its arguments.
func (p *Parser) completePayload(ops []Op) []Op {
	assert.True(p.missingBytes == 0, "no payload byte is missing", uint64(p.missingBytes))
	limits := p.limits
	p.limits.PayloadBytes = -1 // The limit was applied when the control line came in.
	p.limits.ControlLineBytes = p.lineBytes
	ops, sizes := p.control(p.carry[:p.lineBytes], ops)
	p.limits = limits
	assert.True(p.failure == 0, "a carried control line parses again", uint64(p.failure))
	if p.setPayload(&ops[len(ops)-1], p.carry[p.lineBytes:], sizes) {
		p.handOver()
		return ops
	}
	return ops[:len(ops)-1]
}

// setPayload points op at its header and body. It reports false, and fails the parser, when CR LF does not follow.
func (p *Parser) setPayload(op *Op, data []byte, sizes sizes) bool {
	assert.True(len(data) == sizes.total+2, "payload and line end are complete", uint64(len(data)), uint64(sizes.total))
	if data[sizes.total] != '\r' || data[sizes.total+1] != '\n' {
		p.failure = FailureVerb
		return false
	}
	if sizes.header >= 0 {
		op.Header = data[:sizes.header:sizes.header]
		op.Payload = data[sizes.header:sizes.total:sizes.total]
		return true
	}
	op.Payload = data[:sizes.total:sizes.total]
	return true
}

// handOver ends a carried operation: its buffer belongs to the operation until the next Feed.
func (p *Parser) handOver() {
	p.carry, p.given = p.given[:0], p.carry
	p.phase = phaseIdle
}
