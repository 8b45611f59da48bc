package jsapi

import (
	"reflect"
	"slices"

	"weir/model/subject"
)

// checkMirror refuses what a mirror can not be combined with, and mirrors of what this version does not copy.
func (c *StreamConfig) checkMirror(*Limits, bool) *Error {
	if c.Mirror == nil {
		return nil
	}
	for _, rule := range []struct {
		broken bool
		code   Code
	}{
		{c.FirstSeq > 0, CodeMirrorWithFirstSeq},
		{len(c.Subjects) > 0, CodeMirrorWithSubjects},
		{len(c.Sources) > 0, CodeMirrorWithSources},
		{c.AllowMsgCounter, CodeMirrorWithCounters},
		{c.AllowAtomic, CodeMirrorWithAtomicPublish},
		{c.AllowBatched, CodeMirrorWithBatchPublish},
		{c.AllowMsgSchedules, CodeMirrorWithMsgSchedules},
		{c.Mirror.FilterSubject != "" && len(c.Mirror.SubjectTransforms) > 0, CodeMirrorMultipleFiltersNotAllowed},
		{c.Mirror.External == nil && !ValidName(c.Mirror.Name), CodeMirrorInvalidStreamName},
	} {
		if rule.broken {
			return rule.code.Err()
		}
	}
	switch {
	case c.SubjectDeleteMarkerTTL > 0:
		return invalidStream("subject delete markers forbidden on mirrors")
	case c.Mirror.External != nil:
		return invalidStream("%s", unsupported("mirrors of streams in other accounts or domains are"))
	case len(c.Mirror.SubjectTransforms) > 0:
		return invalidStream("%s", unsupported("subject_transforms of mirrors are"))
	case c.Mirror.Consumer != nil:
		return invalidStream("%s", unsupported("consumers of mirrors are"))
	}
	return nil
}

// CheckFilter refuses a new mirror with a filter that can not match anything, which is found last.
func (c *StreamConfig) CheckFilter() *Error {
	if c.Mirror == nil || c.Mirror.FilterSubject == "" || subject.Valid(c.Mirror.FilterSubject) {
		return nil
	}
	return CodeStreamCreate.With("subject filter '" + c.Mirror.FilterSubject + "' for the mirror invalid subject")
}

// CheckOrigin checks a mirror against the stream that it copies, nil when there is none (yet), and has it inherit whether
// clients may read messages directly. With strictly that is refused where it would be changed. It is deterministic and may be
// used in a state machine.
func (c *StreamConfig) CheckOrigin(origin *StreamConfig, strictly bool) *Error {
	switch {
	case c.Mirror == nil || origin == nil:
		return nil
	case c.MaxMsgSize > 0 && origin.MaxMsgSize > 0 && c.MaxMsgSize < origin.MaxMsgSize:
		return CodeMirrorMaxMessageSizeTooBig.Err()
	case strictly && c.MirrorDirect != origin.AllowDirect:
		return pedantic("origin stream has direct get set, mirror has it disabled")
	}
	c.MirrorDirect = origin.AllowDirect
	return nil
}

// checkSources refuses what sources can not be combined with, and sources as such.
func (c *StreamConfig) checkSources(*Limits, bool) *Error {
	if len(c.Sources) == 0 {
		return nil
	}
	if c.AllowMsgSchedules {
		return CodeSourceWithMsgSchedules.Err()
	}
	for _, source := range c.Sources {
		if source == nil || !ValidName(source.Name) {
			return CodeSourceInvalidStreamName.Err()
		}
		if source.FilterSubject != "" && len(source.SubjectTransforms) != 0 {
			return CodeSourceMultipleFiltersNotAllowed.Err()
		}
	}
	return invalidStream("%s", unsupported("stream sources are"))
}

// normalizeSubjects defaults the subjects to the name, unless the stream is a mirror, and checks each of them and all pairs.
func (c *StreamConfig) normalizeSubjects(*Limits, bool) *Error {
	if len(c.Subjects) == 0 {
		if c.Mirror == nil {
			c.Subjects = []string{c.Name}
		}
		return nil
	}
	for i, name := range c.Subjects {
		if !subject.Valid(name) {
			return invalidStream("invalid subject")
		}
		if slices.Contains(c.Subjects[:i], name) {
			return invalidStream("duplicate subjects detected")
		}
		if err := c.checkReserved(name); err != nil {
			return err
		}
		for _, later := range c.Subjects[i+1:] {
			if subject.Overlaps(later, name) {
				return invalidStream("subject %q overlaps with %q", name, later)
			}
		}
	}
	return nil
}

// checkReserved keeps acknowledging streams away from the subjects on which the server itself answers.
func (c *StreamConfig) checkReserved(name string) *Error {
	if name == ">" {
		if !c.NoAck {
			return invalidStream("capturing all subjects requires no-ack to be true")
		}
		if c.Replicas != 1 {
			return invalidStream("capturing all subjects requires replicas of 1")
		}
	}
	if c.NoAck {
		return nil
	}
	for _, space := range []string{"$JS.>", "$JSC.>", "$NRG.>"} {
		if subject.Overlaps(name, space) && !subject.Subset(name, "$JS.EVENT.>") {
			return invalidStream("subjects that overlap with jetstream api require no-ack to be true")
		}
	}
	if subject.Overlaps(name, "$SYS.>") && !subject.Subset(name, "$SYS.ACCOUNT.>") {
		return invalidStream("subjects that overlap with system api require no-ack to be true")
	}
	return nil
}

func (c *StreamConfig) checkAccountBytes(limits *Limits, _ bool) *Error {
	limit := limits.Account.StoreMaxStreamBytes
	if c.Storage == MemoryStorage {
		limit = limits.Account.MemoryMaxStreamBytes
	}
	if limits.Account.MaxBytesRequired && c.MaxBytes <= 0 {
		return CodeStreamMaxBytesRequired.Err()
	}
	if limit > 0 && c.MaxBytes > limit {
		return CodeStreamMaxStreamBytesExceeded.Err()
	}
	return nil
}

func (c *StreamConfig) checkPlacement(*Limits, bool) *Error {
	if p := c.Placement; p != nil {
		if p.Preferred != "" {
			return invalidStream("preferred server not permitted in placement")
		}
		if p.Cluster == "" && len(p.Tags) == 0 {
			c.Placement = nil
		}
	}
	return nil
}

// checkSupported refuses the features that this version of the server does not have, rather than to ignore them.
func (c *StreamConfig) checkSupported(*Limits, bool) *Error {
	for _, feature := range []struct {
		wanted bool
		name   string
	}{
		{c.Retention == InterestRetention, "interest retention is"},
		{c.Retention == WorkQueueRetention, "workqueue retention is"},
		{c.SubjectTransform != nil, "subject_transform is"},
		{c.Republish != nil, "republish is"},
		{c.SubjectDeleteMarkerTTL > 0, "subject_delete_marker_ttl is"},
		{c.AllowMsgTTL, "allow_msg_ttl is"},
		{c.AllowMsgCounter, "allow_msg_counter is"},
		{c.AllowAtomic, "allow_atomic is"},
		{c.AllowMsgSchedules, "allow_msg_schedules is"},
		{c.PersistMode == AsyncPersist, "persist_mode async is"},
		{c.AllowBatched, "allow_batched is"},
	} {
		if feature.wanted {
			return invalidStream("%s", unsupported(feature.name))
		}
	}
	return nil
}

func (c *StreamConfig) checkReplicasPlaceable(limits *Limits, _ bool) *Error {
	if c.Replicas > 1 && !limits.Clustered {
		return CodeStreamReplicasNotSupported.Err()
	}
	return nil
}

// CheckCreate is the part of the checks that a create makes and an update does not. The reference server makes it
// before everything else but the name.
func (c *StreamConfig) CheckCreate() *Error {
	if c.Sealed {
		return invalidStream("stream configuration for create can not be sealed")
	}
	if c.MirrorDirect && c.Mirror == nil {
		return invalidStream("stream has no mirror but does have mirror direct")
	}
	return nil
}

// CheckUpdate checks that a stream with the configuration old may get c, both normalised, and makes the adjustments
// that sealing brings. It is deterministic and may be used in a state machine.
func (c *StreamConfig) CheckUpdate(old *StreamConfig) *Error {
	for _, rule := range []struct {
		broken bool
		text   string
	}{
		{c.Name != old.Name, "stream configuration name must match original"},
		{c.Storage != old.Storage, "stream configuration update can not change storage type"},
		{c.Retention != old.Retention && (c.Retention == WorkQueueRetention || old.Retention == WorkQueueRetention),
			"stream configuration update can not change retention policy to/from workqueue"},
		{!c.Sealed && old.Sealed, "stream configuration update can not unseal a sealed stream"},
		{!c.DenyDelete && old.DenyDelete, "stream configuration update can not cancel deny message deletes"},
		{!c.DenyPurge && old.DenyPurge, "stream configuration update can not cancel deny purge"},
		{old.AllowMsgTTL && !c.AllowMsgTTL, "message TTL status can not be disabled"},
		{old.AllowMsgCounter != c.AllowMsgCounter, "stream configuration update can not change message counter setting"},
		{old.AllowMsgSchedules && !c.AllowMsgSchedules, "message schedules can not be disabled"},
		{old.PersistMode != c.PersistMode, "stream configuration update can not change persist mode"},
	} {
		if rule.broken {
			return invalidStream("%s", rule.text)
		}
	}
	if c.Mirror != nil && !reflect.DeepEqual(c.Mirror, old.Mirror) {
		return CodeStreamMirrorNotUpdatable.Err()
	}
	if c.Sealed {
		c.MaxAge = 0
		c.Discard = DiscardNew
		c.DenyDelete, c.DenyPurge = true, true
		c.AllowRollup = false
	}
	return nil
}
