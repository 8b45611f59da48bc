package stream

import (
	"math"
	"strconv"
	"strings"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/header"
	"weir/model/jsapi"
	"weir/model/subject"
)

const (
	// headerBytesMax is the largest header of a stored message.
	headerBytesMax = math.MaxUint16
	// recordBytesMax is the largest record of a file stream: subject, header, payload and framing.
	recordBytesMax = 32 << 20
	// SeqMax is the last sequence that a stream gives to a message. Clients can push a stream there by a purge or a
	// first sequence; it then refuses publishes.
	SeqMax = 1 << 62
)

// The reasons in refusals of the store (10077). The texts are part of the API.
const (
	reasonTooLarge      = "message too large"
	reasonMaxMsgs       = "maximum messages exceeded"
	reasonMaxBytes      = "maximum bytes exceeded"
	reasonMaxPerSubject = "maximum messages per subject exceeded"
	reasonSeqMax        = "maximum sequence exceeded"
)

// message is a publish on its way through the checks.
type message struct {
	subject, header, payload []byte
	fields                   publishFields
	// key stands for the message id when there is one and the stream deduplicates.
	key   msgKey
	keyed bool
}

func (p *message) size() uint32 { return makeSize(len(p.header), len(p.payload)) }

// publish stores a message or refuses it. The order of the checks is that of the reference server, since the first
// failure is the one that the client hears of.
func (m *Machine) publish(c *command.Command) {
	p := message{subject: c.Subject, payload: c.Payload}
	if len(c.Header) > 0 {
		p.header = header.StripStatus(c.Header)
		p.fields = parsePublishFields(p.header)
	}
	if err := m.admit(&p); err != nil {
		m.refuse(err)
		return
	}
	if len(p.fields.msgID) > 0 && m.config.DuplicateWindow > 0 {
		p.key, p.keyed = keyOf(p.fields.msgID), true
		if seq, ok := m.dedup.find(p.key, m.clock, int64(m.config.DuplicateWindow)); ok {
			e := m.result()
			e.Seq, e.Flag = seq, true
			return
		}
	}
	if err := m.admitNew(&p); err != nil {
		m.refuse(err)
		return
	}
	m.store(&p)
}

// admit makes the checks that come before the question whether the message is a duplicate.
func (m *Machine) admit(p *message) *jsapi.Error {
	config := m.config
	if config.Storage == jsapi.FileStorage && m.log.accounted(len(p.subject), p.size()) > recordBytesMax {
		return jsapi.CodeStreamStoreFailed.With(reasonTooLarge)
	}
	if config.Sealed {
		return jsapi.CodeStreamSealed.Err()
	}
	if p.fields.requestInfo {
		p.header = header.Delete(p.header, header.RequestInfo)
	}
	if config.MaxMsgSize >= 0 && len(p.header)+len(p.payload) > int(config.MaxMsgSize) {
		return jsapi.CodeStreamMessageExceedsMaximum.Err()
	}
	if len(p.header) > headerBytesMax {
		return jsapi.CodeStreamHeaderExceedsMaximum.Err()
	}
	if len(p.header) == 0 {
		return nil
	}
	if err := m.checkFeatures(p); err != nil {
		return err
	}
	if err := m.checkExpected(p); err != nil {
		return err
	}
	if err := checkSchedule(p); err != nil {
		return err
	}
	if len(p.fields.streamSource) > 0 {
		return jsapi.CodeMessageSourceHdrNotAllowed.Err()
	}
	return nil
}

// checkFeatures refuses fields of features that no stream has, and another stream's message.
func (m *Machine) checkFeatures(p *message) *jsapi.Error {
	f := &p.fields
	if len(f.batchID) > 0 {
		return jsapi.CodeAtomicPublishDisabled.Err()
	}
	if len(f.incr) > 0 {
		if !isInteger(f.incr) {
			return jsapi.CodeMessageIncrInvalid.Err()
		}
		return jsapi.CodeMessageIncrDisabled.Err()
	}
	if len(f.expectedStream) > 0 && string(f.expectedStream) != m.name {
		return jsapi.CodeStreamNotMatch.Err()
	}
	if judgeTTL(f.ttl) == ttlAsked {
		return jsapi.CodeMessageTTLDisabled.Err()
	}
	return nil
}

// checkExpected compares what the publisher expects of the stream's sequences with what they are.
func (m *Machine) checkExpected(p *message) *jsapi.Error {
	f := &p.fields
	if len(f.expectedSubjectSeq) > 0 {
		var last uint64
		if len(f.expectedFilter) > 0 {
			last = m.lastOf(string(f.expectedFilter))
		} else if id := m.log.subjects.find(p.subject); id != noSubject {
			last, _ = m.log.subjects.row(id).seqs.Last()
		}
		if parseSeq(f.expectedSubjectSeq) != last {
			return jsapi.CodeStreamWrongLastSequence.With(strconv.FormatUint(last, 10))
		}
	} else if len(f.expectedFilter) > 0 {
		return jsapi.CodeStreamExpectedLastSeqPerSubjectInvalid.Err()
	}
	if len(f.expectedLastSeq) > 0 && parseSeq(f.expectedLastSeq) != m.log.last {
		return jsapi.CodeStreamWrongLastSequence.With(strconv.FormatUint(m.log.last, 10))
	}
	return nil
}

// checkSchedule refuses what belongs to message schedules, which no stream allows.
func checkSchedule(p *message) *jsapi.Error {
	f := &p.fields
	if len(f.schedule) > 0 || f.scheduleZone {
		return jsapi.CodeMessageSchedulesDisabled.Err()
	}
	if len(f.scheduleNext) == 0 {
		if len(f.scheduler) > 0 {
			return jsapi.CodeMessageSchedulesSchedulerInvalid.Err()
		}
		return nil
	}
	if string(f.scheduleNext) != "purge" || string(f.scheduler) == string(p.subject) || !subject.ValidLiteral(f.scheduler) {
		return jsapi.CodeMessageSchedulesSchedulerInvalid.Err()
	}
	return jsapi.CodeMessageSchedulesDisabled.Err()
}

// admitNew makes the checks of a message that is no duplicate.
func (m *Machine) admitNew(p *message) *jsapi.Error {
	f := &p.fields
	if len(f.expectedLastMsgID) > 0 && string(f.expectedLastMsgID) != m.lastMsgID {
		return jsapi.CodeStreamWrongLastMsgID.With(m.lastMsgID)
	}
	if len(f.rollup) > 0 {
		if !m.config.AllowRollup || m.config.DenyPurge {
			return jsapi.CodeStreamRollupFailed.With("rollup not permitted")
		}
		if !equalFold(f.rollup, header.RollupSubject) && !equalFold(f.rollup, header.RollupAll) {
			return jsapi.CodeStreamRollupFailed.With("rollup value invalid: " + strconv.Quote(strings.ToLower(string(f.rollup))))
		}
	}
	if judgeTTL(f.ttl) == ttlInvalid {
		return jsapi.CodeMessageTTLInvalid.Err()
	}
	if p.keyed && m.dedup.len() >= DedupEntriesMax {
		return jsapi.CodeInsufficientResources.Err()
	}
	if m.log.last >= SeqMax {
		return jsapi.CodeStreamStoreFailed.With(reasonSeqMax)
	}
	if reason := m.discardsNew(p); reason != "" {
		return jsapi.CodeStreamStoreFailed.With(reason)
	}
	return nil
}

// store appends a message that passed every check, then makes room for it.
func (m *Machine) store(p *message) {
	// What a mirror copied before it became an ordinary stream may be of a clock that was ahead.
	m.keep(p, m.log.last+1, max(m.clock, m.log.lastTime))
}

// keep appends a message with its sequence and time, then makes room for it.
func (m *Machine) keep(p *message, seq uint64, time int64) {
	id, fresh := m.log.add(seq, p.subject, time, p.size())
	if fresh && !m.strays && !m.patterns.HasMatch(p.subject) {
		m.strays = true
		m.recheckViews()
	}
	e := m.out.Add(effect.Store)
	e.Seq, e.Time, e.Cmd = seq, time, m.batch.Cmd
	e.Subject, e.Header, e.Payload = p.subject, p.header, p.payload
	m.result().Seq = seq
	if m.lastMsgID != string(p.fields.msgID) {
		m.lastMsgID = string(p.fields.msgID)
	}
	if p.keyed {
		m.dedup.insert(dedupEntry{key: p.key, seq: seq, time: m.clock}, int64(m.config.DuplicateWindow))
	}
	m.notifyStored(seq, m.log.subjects.row(id).text)
	m.enforceSubject(id)
	m.enforceTotals()
	if len(p.fields.rollup) > 0 {
		m.rollup(seq, equalFold(p.fields.rollup, header.RollupAll))
	}
}
