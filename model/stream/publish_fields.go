package stream

import (
	"time"

	"weir/model/header"
)

// publishFields are the header fields of a publish that steer the stream. Absent and empty ones are empty; of repeated
// ones the first counts. The values alias the header.
type publishFields struct {
	msgID, expectedStream, expectedLastMsgID            []byte
	expectedLastSeq, expectedSubjectSeq, expectedFilter []byte
	rollup, ttl, incr, batchID, streamSource            []byte
	schedule, scheduleNext, scheduler                   []byte
	requestInfo, scheduleZone                           bool
}

// parsePublishFields reads the fields of a header in one pass.
func parsePublishFields(hdr []byte) (f publishFields) {
	for name, value := range header.Fields(hdr) {
		if len(name) < len("Nats-") || string(name[:len("Nats-")]) != "Nats-" {
			continue
		}
		if field := f.slot(name); field != nil {
			if *field == nil {
				*field = value
			}
			continue
		}
		switch string(name) {
		case header.RequestInfo:
			f.requestInfo = true
		case header.ScheduleTimeZone:
			f.scheduleZone = f.scheduleZone || len(value) == 0
		}
	}
	return f
}

// slot returns the place of the field of the name, nil when it does not steer the stream.
func (f *publishFields) slot(name []byte) *[]byte {
	switch string(name) {
	case header.MsgID:
		return &f.msgID
	case header.ExpectedStream:
		return &f.expectedStream
	case header.ExpectedLastMsgID:
		return &f.expectedLastMsgID
	case header.ExpectedLastSeq:
		return &f.expectedLastSeq
	case header.ExpectedLastSubjectSeq:
		return &f.expectedSubjectSeq
	case header.ExpectedLastSubjectSeqSubject:
		return &f.expectedFilter
	case header.Rollup:
		return &f.rollup
	case header.TTL:
		return &f.ttl
	case header.Incr:
		return &f.incr
	case header.BatchID:
		return &f.batchID
	case header.StreamSource:
		return &f.streamSource
	case header.Schedule:
		return &f.schedule
	case header.ScheduleNext:
		return &f.scheduleNext
	case header.Scheduler:
		return &f.scheduler
	}
	return nil
}

// parseSeq reads a decimal sequence. What is no decimal number reads as the largest sequence, which never exists and so
// never equals anything.
func parseSeq(text []byte) uint64 {
	const none = ^uint64(0)
	var n uint64
	for _, digit := range text {
		if digit < '0' || digit > '9' || n > (none-9)/10 {
			return none
		}
		n = n*10 + uint64(digit-'0')
	}
	if len(text) == 0 {
		return none
	}
	return n
}

// isInteger reports whether the text is a decimal integer of any length with an optional sign.
func isInteger(text []byte) bool {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	for _, digit := range text {
		if digit < '0' || digit > '9' {
			return false
		}
	}
	return len(text) > 0
}

// ttlVerdict is what a Nats-TTL field asks for.
type ttlVerdict uint8

const (
	ttlNone ttlVerdict = iota
	ttlAsked
	ttlInvalid
)

// judgeTTL reads a Nats-TTL field: "never", a duration of at least a second, or a number of seconds, of which one that
// is written as a plain "0" is a duration that is too short (ADR-43, and what the reference does of it).
func judgeTTL(text []byte) ttlVerdict {
	if len(text) == 0 {
		return ttlNone
	}
	if equalFold(text, "never") {
		return ttlAsked
	}
	if duration, err := time.ParseDuration(string(text)); err == nil {
		if duration < time.Second {
			return ttlInvalid
		}
		return ttlAsked
	}
	switch parseSeq(text) {
	case ^uint64(0):
		return ttlInvalid
	case 0:
		return ttlNone
	}
	return ttlAsked
}

// equalFold compares text with a lower-case ASCII word, ignoring the case of ASCII letters.
func equalFold(text []byte, lower string) bool {
	if len(text) != len(lower) {
		return false
	}
	for i, b := range text {
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != lower[i] {
			return false
		}
	}
	return true
}
