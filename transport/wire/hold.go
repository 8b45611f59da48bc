package wire

// hold adds bytes, which contain no LF, to the carried control line. What it keeps is bounded by the verb and the
// control line limit: blanks before the arguments and whatever follows a verb without arguments are dropped, so the
// carried line parses as the line in one piece would. A line that cannot become an operation fails at once.
func (p *Parser) hold(data []byte) {
	for len(data) > 0 && p.failure == 0 {
		switch p.phase {
		case phaseVerb:
			data = p.holdVerb(data)
		case phaseAfterVerb:
			if v, _ := p.verbOf(p.carry); v.needsBlank() && !isBlank(data[0]) {
				p.failure = FailureVerb
				return
			}
			p.carry = append(p.carry, ' ')
			p.lineBytes = len(p.carry)
			p.phase = phaseBlanks
		case phaseBlanks:
			for len(data) > 0 && isBlank(data[0]) {
				data = data[1:]
			}
			if len(data) > 0 {
				p.phase = phaseArgs
			}
		case phaseArgs:
			data = p.holdArgs(data)
		default: // phaseIgnore
			return
		}
	}
}

// holdVerb moves bytes to the carry until it is a verb or can be none. It returns the bytes that it did not take.
func (p *Parser) holdVerb(data []byte) []byte {
	p.carry = append(p.carry, data[0])
	switch v, _ := p.verbOf(p.carry); {
	case v == verbNone:
		p.failure = FailureVerb
	case v == verbPartial:
	case v.ignoresRest():
		p.phase = phaseIgnore
	default:
		p.phase = phaseAfterVerb
	}
	return data[1:]
}

// holdArgs moves bytes to the arguments in the carry unless they exceed the limit. A CR at the end may be part of the
// line end and does not count.
func (p *Parser) holdArgs(data []byte) []byte {
	size := len(p.carry) - p.lineBytes + len(data)
	if data[len(data)-1] == '\r' {
		size--
	}
	if size > p.limits.ControlLineBytes {
		p.failure = FailureControlLine
		return nil
	}
	p.carry = append(p.carry, data...)
	return nil
}
