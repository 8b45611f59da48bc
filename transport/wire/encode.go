package wire

import "strconv"

// Msg is a message to be encoded. Its slices are only read.
type Msg struct {
	// Subject is what the receiver sees as subject.
	Subject []byte
	// Sid is the receiver's name for the subscription; empty in a publish.
	Sid []byte
	// Reply is the reply subject, empty when there is none.
	Reply []byte
	// Header is the header block with its final blank line, empty when there is none.
	Header []byte
	// Payload is the body.
	Payload []byte
}

// AppendMsg appends the delivery of m: HMSG when m has a header and the receiver takes headers, MSG otherwise; a header
// that the receiver does not take is left out.
func AppendMsg(dst []byte, m *Msg, takesHeaders bool) []byte {
	if len(m.Header) > 0 && takesHeaders {
		dst = append(dst, "HMSG "...)
		dst = appendArguments(dst, m.Subject, m.Sid, m.Reply)
		return appendHeaderBody(dst, m)
	}
	dst = append(dst, "MSG "...)
	dst = appendArguments(dst, m.Subject, m.Sid, m.Reply)
	return appendBody(dst, m.Payload)
}

// AppendPub appends the publish of m as a client sends it: HPUB when m has a header, PUB otherwise.
func AppendPub(dst []byte, m *Msg) []byte {
	if len(m.Header) > 0 {
		dst = append(dst, "HPUB "...)
		dst = appendArguments(dst, m.Subject, nil, m.Reply)
		return appendHeaderBody(dst, m)
	}
	dst = append(dst, "PUB "...)
	dst = appendArguments(dst, m.Subject, nil, m.Reply)
	return appendBody(dst, m.Payload)
}

// AppendSub appends SUB; queue is empty for a subscription outside of any group.
func AppendSub(dst, subject, queue, sid []byte) []byte {
	dst = append(dst, "SUB "...)
	dst = appendArguments(dst, subject, queue, sid)
	return append(dst[:len(dst)-1], "\r\n"...)
}

// AppendUnsub appends UNSUB; most is the number of messages after which the subscription ends, 0 to end it at once.
func AppendUnsub(dst, sid []byte, most int) []byte {
	dst = append(dst, "UNSUB "...)
	dst = append(dst, sid...)
	if most > 0 {
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, int64(most), 10)
	}
	return append(dst, "\r\n"...)
}

// AppendErr appends -ERR with text between quotes.
func AppendErr(dst []byte, text string) []byte {
	dst = append(dst, "-ERR '"...)
	dst = append(dst, text...)
	return append(dst, "'\r\n"...)
}

// AppendOK appends +OK.
func AppendOK(dst []byte) []byte { return append(dst, "+OK\r\n"...) }

// AppendPing appends PING.
func AppendPing(dst []byte) []byte { return append(dst, "PING\r\n"...) }

// AppendPong appends PONG.
func AppendPong(dst []byte) []byte { return append(dst, "PONG\r\n"...) }

// AppendStatus appends a header block that holds nothing but a status line, as status messages to consumers and
// requesters carry it; the description may be empty. The code has three digits.
func AppendStatus(dst []byte, code int, description string) []byte {
	dst = append(dst, "NATS/1.0 "...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	if description != "" {
		dst = append(dst, ' ')
		dst = append(dst, description...)
	}
	return append(dst, "\r\n\r\n"...)
}

// AppendNoResponders appends the delivery that tells a requester that nobody received its request: status 503 and the
// subject of the request. The slices are only read.
func AppendNoResponders(dst, reply, sid, subject []byte) []byte {
	const before, after = "NATS/1.0 503\r\nNats-Subject: ", "\r\n\r\n"
	size := len(before) + len(subject) + len(after)
	dst = append(dst, "HMSG "...)
	dst = appendArguments(dst, reply, sid, nil)
	dst = appendSize(dst, size)
	dst = append(dst, ' ')
	dst = appendSize(dst, size)
	dst = append(dst, "\r\n"...)
	dst = append(dst, before...)
	dst = append(dst, subject...)
	dst = append(dst, after...)
	return append(dst, "\r\n"...)
}

// appendArguments appends the arguments that are not empty, each with a space after it.
func appendArguments(dst, first, second, third []byte) []byte {
	dst = append(dst, first...)
	dst = append(dst, ' ')
	if len(second) > 0 {
		dst = append(dst, second...)
		dst = append(dst, ' ')
	}
	if len(third) > 0 {
		dst = append(dst, third...)
		dst = append(dst, ' ')
	}
	return dst
}

func appendHeaderBody(dst []byte, m *Msg) []byte {
	dst = appendSize(dst, len(m.Header))
	dst = append(dst, ' ')
	dst = appendSize(dst, len(m.Header)+len(m.Payload))
	dst = append(dst, "\r\n"...)
	dst = append(dst, m.Header...)
	dst = append(dst, m.Payload...)
	return append(dst, "\r\n"...)
}

func appendBody(dst, payload []byte) []byte {
	dst = appendSize(dst, len(payload))
	dst = append(dst, "\r\n"...)
	dst = append(dst, payload...)
	return append(dst, "\r\n"...)
}

func appendSize(dst []byte, n int) []byte { return strconv.AppendUint(dst, uint64(n), 10) }
