package wire

import (
	"weir/spec/assert"
)

// verb is what a control line begins with.
type verb uint8

const (
	verbNone verb = iota
	// verbPartial: the bytes so far begin some verb and complete none.
	verbPartial
	verbConnect
	verbInfo
	verbPub
	verbHPub
	verbSub
	verbUnsub
	verbMsg
	verbHMsg
	verbErr
	verbPing
	verbPong
	verbOK
)

// argumentsMax is the largest number of arguments that any control line has.
const argumentsMax = 5

// sizes are the numbers at the end of a control line that announces a payload.
type sizes struct {
	// header is the length of the header block, -1 for an operation without one.
	header int
	// total is the length of header plus body, -1 when no payload follows.
	total int
}

var noPayload = sizes{header: -1, total: -1}

// verbSpelling is a verb in lower case. No spelling begins another one.
type verbSpelling struct {
	verb verb
	text string
}

var clientVerbs = []verbSpelling{
	{verbPub, "pub"}, {verbHPub, "hpub"}, {verbSub, "sub"}, {verbUnsub, "unsub"}, {verbPing, "ping"}, {verbPong, "pong"},
	{verbConnect, "connect"}, {verbInfo, "info"}, {verbOK, "+ok"}, {verbErr, "-err"},
}

var serverVerbs = []verbSpelling{
	{verbMsg, "msg"}, {verbHMsg, "hmsg"}, {verbPing, "ping"}, {verbPong, "pong"}, {verbInfo, "info"}, {verbOK, "+ok"},
	{verbErr, "-err"},
}

// verbOf returns the verb at the start of line and its length; verbPartial when line ends inside a verb, verbNone when
// it begins like no verb. Letters match in either case.
func (p *Parser) verbOf(line []byte) (verb, int) {
	if len(line) > 4 && line[0]|0x20 == 'p' && line[1]|0x20 == 'u' && line[2]|0x20 == 'b' && !p.fromServer {
		return verbPub, 3
	}
	spellings := clientVerbs
	if p.fromServer {
		spellings = serverVerbs
	}
	found := verbNone
	for _, s := range spellings {
		n := min(len(s.text), len(line))
		if !spelled(line[:n], s.text[:n]) {
			continue
		}
		if n == len(s.text) {
			return s.verb, n
		}
		found = verbPartial
	}
	return found, len(line)
}

// spelled reports whether got is want, which is in lower case, in any case.
func spelled(got []byte, want string) bool {
	for i, c := range got {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != want[i] {
			return false
		}
	}
	return true
}

// needsBlank reports whether a blank must separate the verb from what follows.
func (v verb) needsBlank() bool {
	switch v {
	case verbPub, verbHPub, verbSub, verbUnsub, verbMsg, verbHMsg, verbErr:
		return true
	default:
		return false
	}
}

// ignoresRest reports whether whatever stands between the verb and the line end means nothing.
func (v verb) ignoresRest() bool { return v == verbPing || v == verbPong || v == verbOK }

// control parses one complete control line, given without its LF, and appends its operation. Sizes.total is at least 0
// when a payload has to follow before the operation is complete. After a failure ops is unchanged.
func (p *Parser) control(line []byte, ops []Op) ([]Op, sizes) {
	v, n := p.verbOf(line)
	if v == verbNone || v == verbPartial {
		p.failure = FailureVerb
		return ops, noPayload
	}
	rest := line[n:]
	if v.ignoresRest() {
		return append(ops, Op{Kind: v.plainKind()}), noPayload
	}
	if v.needsBlank() && (len(rest) == 0 || !isBlank(rest[0])) {
		p.failure = FailureVerb
		return ops, noPayload
	}
	for len(rest) > 0 && isBlank(rest[0]) {
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[len(rest)-1] == '\r' {
		rest = rest[:len(rest)-1]
	}
	if len(rest) > p.limits.ControlLineBytes {
		p.failure = FailureControlLine
		return ops, noPayload
	}
	switch v {
	case verbConnect, verbInfo, verbErr:
		return append(ops, Op{Kind: v.plainKind(), Args: rest}), noPayload
	}
	ops = append(ops, Op{})
	s, failure := v.arguments(rest, &ops[len(ops)-1])
	if failure == 0 && p.limits.PayloadBytes >= 0 && s.total > p.limits.PayloadBytes {
		failure = FailurePayload
	}
	if failure != 0 {
		p.failure = failure
		return ops[:len(ops)-1], noPayload
	}
	return ops, s
}

// plainKind is the kind of an operation whose arguments, if any, are not split.
func (v verb) plainKind() Kind {
	switch v {
	case verbConnect:
		return KindConnect
	case verbInfo:
		return KindInfo
	case verbErr:
		return KindErr
	case verbPing:
		return KindPing
	case verbPong:
		return KindPong
	case verbOK:
		return KindOK
	default:
		assert.Unreachable("verb without a plain kind", uint64(v))
		return 0
	}
}

// arguments splits the arguments of v into op. All that v requires is checked but the limits.
func (v verb) arguments(arg []byte, op *Op) (sizes, Failure) {
	var fields [argumentsMax][]byte
	count := splitArguments(arg, &fields)
	least, most := v.argumentCounts()
	if count < least || count > most {
		return noPayload, FailureArguments
	}
	switch v {
	case verbPub, verbHPub:
		op.Kind, op.Subject = KindPub, fields[0]
		if count == most {
			op.Reply = fields[1]
		}
	case verbMsg, verbHMsg:
		op.Kind, op.Subject, op.Sid = KindMsg, fields[0], fields[1]
		if count == most {
			op.Reply = fields[2]
		}
	case verbSub:
		op.Kind, op.Subject, op.Sid = KindSub, fields[0], fields[count-1]
		if count == most {
			op.Queue = fields[1]
		}
		return noPayload, 0
	case verbUnsub:
		op.Kind, op.Sid = KindUnsub, fields[0]
		if count == most {
			op.Max = max(parseSize(fields[1]), 0)
		}
		return noPayload, 0
	}
	s := sizes{header: -1, total: parseSize(fields[count-1])}
	if v == verbHPub || v == verbHMsg {
		s.header = parseSize(fields[count-2])
		if s.header < 0 || s.header > s.total {
			return noPayload, FailureArguments
		}
	}
	if s.total < 0 {
		return noPayload, FailureArguments
	}
	return s, 0
}

// argumentCounts returns how many arguments v takes at least and at most.
func (v verb) argumentCounts() (least, most int) {
	switch v {
	case verbPub, verbSub:
		return 2, 3
	case verbHPub, verbMsg:
		return 3, 4
	case verbHMsg:
		return 4, 5
	case verbUnsub:
		return 1, 2
	default:
		assert.Unreachable("verb without arguments", uint64(v))
		return 0, 0
	}
}

// splitArguments cuts arg at blanks into out. It returns the number of fields, argumentsMax+1 when out is too small.
func splitArguments(arg []byte, out *[argumentsMax][]byte) int {
	count, start := 0, -1
	for i, c := range arg {
		if c > ' ' || !isSeparator(c) {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			if count == argumentsMax {
				return argumentsMax + 1
			}
			out[count] = arg[start:i:i]
			count++
			start = -1
		}
	}
	if start >= 0 {
		if count == argumentsMax {
			return argumentsMax + 1
		}
		out[count] = arg[start:len(arg):len(arg)]
		count++
	}
	return count
}

// sizeDigitsMax bounds the digits of a size, so that a size never overflows.
const sizeDigitsMax = 9

// parseSize returns the number that text is, or -1 unless text is one to sizeDigitsMax digits.
func parseSize(text []byte) int {
	if len(text) == 0 || len(text) > sizeDigitsMax {
		return -1
	}
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// isSeparator also counts CR, so that no argument can smuggle one to another client.
func isSeparator(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }
