package oracle

import (
	"strings"

	"weir/model/jsapi"
)

// Copied is what a mirror has of the stream that it copies.
type Copied struct {
	// Incarnation is that of the stream, 0 before the mirror has begun; up to Through the mirror has all of it.
	Incarnation, Through uint64
}

// Follow has a mirror copy another stream from now on, instead of the one before (0: none), behind a sequence.
func (s *Stream) Follow(incarnation, before, after uint64) *jsapi.Error {
	wrong := incarnation == 0 || incarnation == before || before != s.Copied.Incarnation
	if s.Config.Mirror == nil || wrong || before != 0 && len(s.Messages) > 0 {
		return jsapi.CodeStreamSequenceNotMatch.Err()
	}
	s.Copied = Copied{incarnation, max(after, s.Last)}
	if len(s.Messages) == 0 && s.Copied.Through > s.Last {
		s.removeBelow(s.Copied.Through + 1)
	}
	return nil
}

// Copy stores a message of the stream that the mirror copies, behind what it has copied up to from. Without a subject there
// is none up to the sequence of m.
func (s *Stream) Copy(incarnation, from uint64, m Message) *jsapi.Error {
	if s.Config.Mirror == nil || incarnation != s.Copied.Incarnation || from != s.Copied.Through || m.Seq <= from {
		return jsapi.CodeStreamSequenceNotMatch.Err()
	}
	if m.Subject == "" || m.Seq <= s.Last {
		s.Copied.Through = m.Seq
		return nil
	}
	fields := parseFields(m.Header)
	switch {
	case s.Config.Sealed:
		return jsapi.CodeStreamSealed.Err()
	case s.Config.Storage == jsapi.FileStorage && s.size(m) > 32<<20:
		return jsapi.CodeStreamStoreFailed.With("message too large")
	}
	rolls := strings.ToLower(fields["Nats-Rollup"])
	if !s.Config.AllowRollup || s.Config.DenyPurge || rolls != "sub" && rolls != "all" {
		delete(fields, "Nats-Rollup")
	}
	if err := s.checkRoom(m, fields); err != nil {
		return err
	}
	s.Copied.Through = m.Seq
	m.Time = max(m.Time, s.LastTime)
	s.keep(m, fields)
	return nil
}
