package oracle

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"weir/model/jsapi"
)

// PubAck is the answer to a publish that was not refused.
type PubAck struct {
	Seq       uint64
	Duplicate bool
}

// Publish stores a message or refuses it. A refusal changes nothing.
func (s *Stream) Publish(now int64, subject, header, payload string) (PubAck, *jsapi.Error) {
	header = withoutStatus(header)
	fields := parseFields(header)
	m := Message{Seq: s.Last + 1, Time: max(now, s.LastTime), Subject: subject, Header: header, Payload: payload}
	if err := s.checkForm(m, fields); err != nil {
		return PubAck{}, err
	}
	if err := s.checkExpected(m, fields); err != nil {
		return PubAck{}, err
	}
	id := fields["Nats-Msg-Id"]
	if id != "" && s.Config.DuplicateWindow > 0 {
		for _, seen := range s.seen {
			if seen.id == id && now-seen.time < int64(s.Config.DuplicateWindow) {
				return PubAck{Seq: seen.seq, Duplicate: true}, nil
			}
		}
	}
	if err := s.checkStore(m, fields); err != nil {
		return PubAck{}, err
	}
	if id != "" && s.Config.DuplicateWindow > 0 {
		s.seen = append(s.seen, seenID{id, m.Seq, now})
	}
	s.keep(m, fields)
	return PubAck{Seq: m.Seq}, nil
}

// keep stores a message that passed every check.
func (s *Stream) keep(m Message, fields map[string]string) {
	s.Messages = append(s.Messages, m)
	s.Last, s.LastTime, s.lastID = m.Seq, m.Time, fields["Nats-Msg-Id"]
	if len(s.Messages) == 1 {
		s.First = m.Seq
	}
	s.enforceLimits()
	switch strings.ToLower(fields["Nats-Rollup"]) {
	case "sub":
		s.remove(func(old Message) bool { return old.Subject == m.Subject && old.Seq < m.Seq })
	case "all":
		s.removeBelow(m.Seq)
	}
}

// checkForm makes the checks that do not depend on what the stream holds.
func (s *Stream) checkForm(m Message, fields map[string]string) *jsapi.Error {
	switch {
	case s.Config.Storage == jsapi.FileStorage && s.size(m) > 32<<20:
		return jsapi.CodeStreamStoreFailed.With("message too large")
	case s.Config.Sealed:
		return jsapi.CodeStreamSealed.Err()
	case s.Config.MaxMsgSize >= 0 && len(m.Header)+len(m.Payload) > int(s.Config.MaxMsgSize):
		return jsapi.CodeStreamMessageExceedsMaximum.Err()
	case len(m.Header) > 65535:
		return jsapi.CodeStreamHeaderExceedsMaximum.Err()
	case fields["Nats-Batch-Id"] != "":
		return jsapi.CodeAtomicPublishDisabled.Err()
	case fields["Nats-Incr"] != "":
		digits := strings.TrimLeft(fields["Nats-Incr"], "+-")
		if strings.Trim(digits, "0123456789") != "" || digits == "" || len(fields["Nats-Incr"])-len(digits) > 1 {
			return jsapi.CodeMessageIncrInvalid.Err()
		}
		return jsapi.CodeMessageIncrDisabled.Err()
	case fields["Nats-Expected-Stream"] != "" && fields["Nats-Expected-Stream"] != s.Config.Name:
		return jsapi.CodeStreamNotMatch.Err()
	case asksTTL(fields["Nats-TTL"]):
		return jsapi.CodeMessageTTLDisabled.Err()
	default:
		return nil
	}
}

// asksTTL says whether the field is a life time other than none. Streams have none so far.
func asksTTL(text string) bool {
	if strings.EqualFold(text, "never") {
		return true
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d >= time.Second
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n > 0
}

// checkExpected compares sequences with the expectations of the publisher.
func (s *Stream) checkExpected(m Message, fields map[string]string) *jsapi.Error {
	expected, filter := fields["Nats-Expected-Last-Subject-Sequence"], fields["Nats-Expected-Last-Subject-Sequence-Subject"]
	if expected == "" && filter != "" {
		return jsapi.CodeStreamExpectedLastSeqPerSubjectInvalid.Err()
	}
	if expected != "" {
		last := uint64(0)
		for _, old := range s.Messages {
			if filter == "" && old.Subject == m.Subject || filter != "" && matches(old.Subject, filter) {
				last = old.Seq
			}
		}
		if expected != fmt.Sprint(last) {
			return jsapi.CodeStreamWrongLastSequence.With(fmt.Sprint(last))
		}
	}
	if expected := fields["Nats-Expected-Last-Sequence"]; expected != "" && expected != fmt.Sprint(s.Last) {
		return jsapi.CodeStreamWrongLastSequence.With(fmt.Sprint(s.Last))
	}
	switch {
	case fields["Nats-Schedule"] != "":
		return jsapi.CodeMessageSchedulesDisabled.Err()
	case fields["Nats-Stream-Source"] != "":
		return jsapi.CodeMessageSourceHdrNotAllowed.Err()
	default:
		return nil
	}
}

// checkStore makes the checks of a message that is no duplicate: last message id, rollup, and the room that there is.
func (s *Stream) checkStore(m Message, fields map[string]string) *jsapi.Error {
	if want := fields["Nats-Expected-Last-Msg-Id"]; want != "" && want != s.lastID {
		return jsapi.CodeStreamWrongLastMsgID.With(s.lastID)
	}
	if rollup := strings.ToLower(fields["Nats-Rollup"]); rollup != "" {
		if !s.Config.AllowRollup || s.Config.DenyPurge {
			return jsapi.CodeStreamRollupFailed.With("rollup not permitted")
		}
		if rollup != "sub" && rollup != "all" {
			return jsapi.CodeStreamRollupFailed.With(fmt.Sprintf("rollup value invalid: %q", rollup))
		}
	}
	if ttl := fields["Nats-TTL"]; ttl != "" && (ttl == "0" || strings.Trim(ttl, "0") != "") {
		return jsapi.CodeMessageTTLInvalid.Err()
	}
	return s.checkRoom(m, fields)
}

// checkRoom refuses what a stream that discards new messages has no room for.
func (s *Stream) checkRoom(m Message, fields map[string]string) *jsapi.Error {
	if s.Config.Discard != jsapi.DiscardNew {
		return nil
	}
	var same []Message
	for _, old := range s.Messages {
		if old.Subject == m.Subject {
			same = append(same, old)
		}
	}
	// The oldest message of a full subject makes room for the new one.
	replaces := s.Config.MaxMsgsPerSubject > 0 && len(same) >= int(s.Config.MaxMsgsPerSubject)
	if replaces && s.Config.DiscardNewPerSubject && fields["Nats-Rollup"] == "" {
		return jsapi.CodeStreamStoreFailed.With("maximum messages per subject exceeded")
	}
	if s.Config.MaxMsgs > 0 && len(s.Messages) >= int(s.Config.MaxMsgs) && !replaces {
		return jsapi.CodeStreamStoreFailed.With("maximum messages exceeded")
	}
	if s.Config.MaxBytes > 0 && s.Bytes()+s.size(m) > uint64(s.Config.MaxBytes) {
		if !replaces || s.size(same[0]) < s.size(m) {
			return jsapi.CodeStreamStoreFailed.With("maximum bytes exceeded")
		}
	}
	return nil
}

// parseFields reads a header block line by line. The first field of a name counts.
func parseFields(header string) map[string]string {
	fields := map[string]string{}
	lines := strings.Split(header, "\r\n")
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if _, known := fields[name]; ok && !known {
			fields[name] = strings.TrimLeft(value, " ")
		}
	}
	return fields
}

// withoutStatus cuts the status from the first line; a block without fields that had one is no block.
func withoutStatus(header string) string {
	first, rest, ok := strings.Cut(header, "\r\n")
	if !ok || first == "NATS/1.0" || !strings.HasPrefix(first, "NATS/1.0") {
		return header
	}
	if rest == "\r\n" {
		return ""
	}
	return "NATS/1.0\r\n" + rest
}
