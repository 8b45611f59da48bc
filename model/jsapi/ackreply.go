package jsapi

import "strconv"

// AckReply is what the reply subject of a delivered message says (ADR-15).
type AckReply struct {
	// Stream and Consumer are names. After parsing they alias the subject.
	Stream, Consumer string
	// Delivered counts the deliveries of the message to the consumer, this one included.
	Delivered uint64
	// StreamSeq and ConsumerSeq are the sequence of the message and of the delivery.
	StreamSeq, ConsumerSeq uint64
	// TimeNanos is when the message was stored, unix nanoseconds.
	TimeNanos int64
	// Pending is the number of messages that still matched after this one.
	Pending uint64
	// Domain and AccountHash are set in the second form of the subject only; a missing domain is "_".
	Domain, AccountHash string
}

const (
	ackPrefix      = "$JS.ACK."
	ackTokensFirst = 9  // tokens of the first form
	ackTokensNext  = 11 // tokens of the second form; it may have more, which are ignored
	ackTokensMax   = 16
)

// AppendAckReply appends the reply subject in its first form, $JS.ACK.stream.consumer.delivered.sseq.cseq.time.pending.
// Domain and AccountHash do not count. It allocates nothing beyond growing dst.
func AppendAckReply(dst []byte, r *AckReply) []byte {
	dst = append(dst, ackPrefix...)
	dst = append(dst, r.Stream...)
	dst = append(dst, '.')
	dst = append(dst, r.Consumer...)
	dst = append(dst, '.')
	dst = appendUint(dst, r.Delivered)
	dst = append(dst, '.')
	dst = appendUint(dst, r.StreamSeq)
	dst = append(dst, '.')
	dst = appendUint(dst, r.ConsumerSeq)
	dst = append(dst, '.')
	dst = appendInt(dst, r.TimeNanos)
	dst = append(dst, '.')
	return appendUint(dst, r.Pending)
}

// ParseAckReply reads a reply subject in either form. It reports false for anything else: such a subject is an ordinary
// one. The strings of r alias subject.
func ParseAckReply(subject string) (r AckReply, ok bool) {
	if len(subject) < len(ackPrefix) || subject[:len(ackPrefix)] != ackPrefix {
		return r, false
	}
	var tokens [ackTokensMax]string
	count, start := 0, 0
	for i := 0; i <= len(subject); i++ {
		if i < len(subject) && subject[i] != '.' {
			continue
		}
		if i == start || count == ackTokensMax {
			return r, false
		}
		tokens[count] = subject[start:i]
		count++
		start = i + 1
	}
	rest := tokens[2:count]
	switch {
	case count == ackTokensFirst:
	case count >= ackTokensNext:
		r.Domain, r.AccountHash = rest[0], rest[1]
		rest = rest[2:]
	default:
		return r, false
	}
	r.Stream, r.Consumer = rest[0], rest[1]
	ok = true
	for i, target := range []*uint64{&r.Delivered, &r.StreamSeq, &r.ConsumerSeq} {
		*target, ok = parseDecimal(rest[2+i], ok)
	}
	var nanos uint64
	nanos, ok = parseDecimal(rest[5], ok)
	r.TimeNanos = int64(nanos)
	r.Pending, ok = parseDecimal(rest[6], ok)
	return r, ok
}

func parseDecimal(token string, ok bool) (uint64, bool) {
	if !ok || len(token) == 0 || token[0] < '0' || token[0] > '9' {
		return 0, false
	}
	value, err := strconv.ParseUint(token, 10, 64)
	return value, err == nil
}
