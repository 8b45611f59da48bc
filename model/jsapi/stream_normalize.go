package jsapi

import (
	"fmt"
	"strings"
	"time"
)

const (
	duplicateWindowDefault = 2 * time.Minute
	intervalMin            = 100 * time.Millisecond
)

func invalidStream(format string, args ...any) *Error {
	return CodeStreamInvalidConfig.With(fmt.Sprintf(format, args...))
}

func pedantic(text string) *Error { return CodePedantic.With(text) }

func unsupported(feature string) string { return feature + " not supported by this server" }

// ValidName reports whether a stream or consumer may have the name.
func ValidName(name string) bool {
	return name != "" && !strings.ContainsAny(name, " \t\r\n\f.*>\\/")
}

// Normalize fills in the defaults of a configuration that a client sent and checks everything about it that does not
// depend on other streams, in the order of the reference server. With strictly ("pedantic" in requests) values are
// refused where they would be corrected. Metadata is brought to its stored form. On error the configuration is in an
// unspecified state.
func (c *StreamConfig) Normalize(limits *Limits, strictly bool) *Error {
	return c.NormalizeAmong(limits, strictly, func(*StreamConfig) *Error { return nil })
}

// NormalizeAmong is Normalize with a check of what does depend on other streams, which is made in its turn: that of a mirror
// against the stream that it copies.
func (c *StreamConfig) NormalizeAmong(limits *Limits, strictly bool, others func(*StreamConfig) *Error) *Error {
	checks := []func(*Limits, bool) *Error{
		c.checkNames, c.normalizeLimits, c.normalizeWindow, c.checkRollupAndDiscard, c.normalizeMarkers,
		c.checkSchedulesAndPersist, c.checkMirror, func(*Limits, bool) *Error { return others(c) }, c.checkSources,
		c.normalizeSubjects, c.checkAccountBytes, c.checkPlacement, c.checkSupported, c.checkReplicasPlaceable,
	}
	for _, check := range checks {
		if err := check(limits, strictly); err != nil {
			return err
		}
	}
	c.Metadata = storedMetadata(c.Metadata, c.requiredLevel())
	return nil
}

func (c *StreamConfig) checkNames(*Limits, bool) *Error {
	switch {
	case !ValidName(c.Name):
		return invalidStream(`stream name is required and can not contain '.', '*', '>', '\', '/'`)
	case len(c.Name) > NameBytesMax:
		return invalidStream("stream name is too long, maximum allowed is %d", NameBytesMax)
	case len(c.Description) > DescriptionBytesMax:
		return invalidStream("stream description is too long, maximum allowed is %d", DescriptionBytesMax)
	case metadataBytes(c.Metadata) > MetadataBytesMax:
		return invalidStream("stream metadata exceeds maximum size of %d bytes", MetadataBytesMax)
	}
	return nil
}

func (c *StreamConfig) normalizeLimits(_ *Limits, strictly bool) *Error {
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.Replicas > ReplicasMax {
		return invalidStream("maximum replicas is %d", ReplicasMax)
	}
	if c.Replicas < 0 {
		return CodeReplicasCountCannotBeNegative.Err()
	}
	size := int64(c.MaxMsgSize)
	consumers := int64(c.MaxConsumers)
	for _, limit := range []struct {
		value *int64
		name  string
	}{{&c.MaxMsgs, "max_msgs"}, {&c.MaxMsgsPerSubject, "max_msgs_per_subject"}, {&c.MaxBytes, "max_bytes"},
		{&size, "max_msg_size"}, {&consumers, "max_consumers"}} {
		if strictly && *limit.value < -1 {
			return pedantic(limit.name + " must be set to -1")
		}
		if *limit.value <= 0 {
			*limit.value = -1
		}
	}
	c.MaxMsgSize, c.MaxConsumers = int32(size), int(consumers)
	if c.MaxAge < 0 {
		return invalidStream("max age can not be negative")
	}
	if c.MaxAge != 0 && c.MaxAge < intervalMin {
		return invalidStream("max age needs to be >= 100ms")
	}
	return nil
}

func (c *StreamConfig) normalizeWindow(limits *Limits, strictly bool) *Error {
	if c.DuplicateWindow == 0 && c.Mirror == nil && len(c.Sources) == 0 {
		window := duplicateWindowDefault
		if limits.DuplicateWindow > 0 && window > limits.DuplicateWindow {
			if strictly {
				return pedantic("duplicate window limits are higher than current limits")
			}
			window = limits.DuplicateWindow
		}
		if c.MaxAge != 0 && c.MaxAge < window {
			if strictly {
				return pedantic("duplicate window cannot be bigger than max age")
			}
			window = c.MaxAge
		}
		c.DuplicateWindow = window
	}
	switch {
	case c.DuplicateWindow < 0:
		return invalidStream("duplicates window can not be negative")
	case c.MaxAge != 0 && c.DuplicateWindow > c.MaxAge:
		return invalidStream("duplicates window can not be larger then max age")
	case limits.DuplicateWindow > 0 && c.DuplicateWindow > limits.DuplicateWindow:
		return invalidStream("duplicates window can not be larger then server limit of %v", limits.DuplicateWindow)
	case c.DuplicateWindow > 0 && c.DuplicateWindow < intervalMin:
		return invalidStream("duplicates window needs to be >= 100ms")
	}
	return nil
}

func (c *StreamConfig) checkRollupAndDiscard(*Limits, bool) *Error {
	if c.DenyPurge && c.AllowRollup {
		return invalidStream("roll-ups require the purge permission")
	}
	if c.AllowMsgCounter {
		switch {
		case c.Discard == DiscardNew:
			return invalidStream("counter stream cannot use discard new")
		case c.AllowMsgTTL:
			return invalidStream("counter stream cannot use message TTLs")
		case c.AllowMsgSchedules:
			return invalidStream("counter stream cannot use message schedules")
		case c.Retention != LimitsRetention:
			return invalidStream("counter stream can only use limits retention")
		}
	}
	if c.DiscardNewPerSubject && c.Discard != DiscardNew {
		return invalidStream("discard new per subject requires discard new policy to be set")
	}
	if c.DiscardNewPerSubject && c.MaxMsgsPerSubject <= 0 {
		return invalidStream("discard new per subject requires max msgs per subject > 0")
	}
	return nil
}

func (c *StreamConfig) normalizeMarkers(_ *Limits, strictly bool) *Error {
	switch {
	case c.SubjectDeleteMarkerTTL < 0:
		return invalidStream("subject delete marker TTL must not be negative")
	case c.SubjectDeleteMarkerTTL == 0:
		return nil
	case c.SubjectDeleteMarkerTTL < time.Second:
		return invalidStream("subject delete marker TTL must be at least 1 second")
	case strictly && !c.AllowMsgTTL:
		return invalidStream("subject delete marker cannot be set if message TTLs are disabled")
	case strictly && !c.AllowRollup:
		return invalidStream("subject delete marker cannot be set if roll-ups are disabled")
	}
	c.AllowMsgTTL = true
	if !c.AllowRollup {
		c.AllowRollup, c.DenyPurge = true, false
	}
	return nil
}

func (c *StreamConfig) checkSchedulesAndPersist(_ *Limits, strictly bool) *Error {
	if c.AllowMsgSchedules {
		if c.Discard == DiscardNew {
			return invalidStream("message scheduling cannot use discard new")
		}
		if strictly && !c.AllowRollup {
			return invalidStream("message scheduling cannot be set if roll-ups are disabled")
		}
		if !c.AllowRollup {
			c.AllowRollup, c.DenyPurge = true, false
		}
	}
	if c.PersistMode == AsyncPersist {
		switch {
		case c.Storage != FileStorage:
			return invalidStream("async persist mode is only supported on file storage")
		case c.Replicas > 1:
			return invalidStream("async persist mode is not supported on replicated streams")
		case c.AllowAtomic:
			return invalidStream("async persist mode is not supported with atomic batch publish")
		}
	}
	return nil
}

// requiredLevel is the API level that the features of the configuration need (ADR-44).
func (c *StreamConfig) requiredLevel() int {
	switch {
	case c.AllowBatched:
		return 4
	case c.AllowMsgCounter, c.AllowAtomic, c.AllowMsgSchedules, c.PersistMode == AsyncPersist:
		return 2
	case c.AllowMsgTTL, c.SubjectDeleteMarkerTTL > 0:
		return 1
	}
	return 0
}
