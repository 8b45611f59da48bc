package delivery

import (
	"weir/model/header"
	"weir/model/jsapi"
)

// status is what a request or a push subscription is told beside messages.
type status uint8

const (
	statusNone status = iota
	statusNoMessages
	statusRequestTimeout
	statusRequestsPending
	statusMaxWaiting
	statusSizeExceeded
	statusBatchCompleted
	statusConsumerDeleted
	statusLeadershipChange
	statusServerShutdown
	statusPushBased
)

// statuses gives the text of each status and whether it says what is left of the request.
var statuses = [...]struct {
	text    string
	pending bool
}{
	statusNone:             {},
	statusNoMessages:       {jsapi.StatusNoMessages, false},
	statusRequestTimeout:   {jsapi.StatusRequestTimeout, true},
	statusRequestsPending:  {jsapi.StatusRequestsPending, false},
	statusMaxWaiting:       {jsapi.StatusMaxWaiting, false},
	statusSizeExceeded:     {jsapi.StatusSizeExceeded, true},
	statusBatchCompleted:   {jsapi.StatusBatchCompleted, true},
	statusConsumerDeleted:  {jsapi.StatusConsumerDeleted, false},
	statusLeadershipChange: {jsapi.StatusLeadershipChange, false},
	statusServerShutdown:   {jsapi.StatusServerShutdown, true},
	statusPushBased:        {jsapi.StatusPushBased, false},
}

// statusPrefix begins the first line of a header block that carries a status.
const statusPrefix = "NATS/1.0 "

// sendText sends a message without body whose header block begins with the given status.
func (d *Desk) sendText(group uint64, to []byte, text string) {
	d.header = append(append(d.header[:0], statusPrefix...), text...)
	d.header = append(d.header, "\r\n"...)
	d.sendHeader(group, to)
}

// sendHeader closes the header block in d.header and sends it.
func (d *Desk) sendHeader(group uint64, to []byte) {
	d.header = header.AppendEnd(d.header)
	d.message = Message{Subject: to, Header: d.header}
	d.send(group, to)
}

// sendStatus tells a request how it ends.
func (d *Desk) sendStatus(l *line, r *request, s status) {
	row := statuses[s]
	d.header = append(append(d.header[:0], statusPrefix...), row.text...)
	d.header = append(d.header, "\r\n"...)
	if row.pending {
		d.header = header.AppendUintField(d.header, header.PendingMessages, uint64(r.left))
		d.header = header.AppendUintField(d.header, header.PendingBytes, uint64(r.bytesLeft))
	}
	d.sendHeader(l.key.group, r.inbox)
}

// sendHeartbeat tells an idle client how far the consumer is; stalled is the flow control subject that a push consumer
// waits for.
func (d *Desk) sendHeartbeat(l *line, to, stalled []byte) {
	state := d.world.Consumer(l.key.group, l.key.id)
	if state == nil {
		return
	}
	at := state.Delivered()
	consumerSeq, streamSeq := at.Consumer, at.Stream
	if head := l.out.firstMessage(); head != nil {
		consumerSeq, streamSeq = head.consumerSeq-1, l.sentStream
	}
	d.header = append(append(d.header[:0], statusPrefix...), jsapi.StatusIdleHeartbeat...)
	d.header = append(d.header, "\r\n"...)
	d.header = header.AppendUintField(d.header, header.LastConsumer, consumerSeq)
	d.header = header.AppendUintField(d.header, header.LastStream, streamSeq)
	if len(stalled) > 0 {
		d.header = header.AppendField(d.header, header.ConsumerStalled, string(stalled))
	}
	d.sendHeader(l.key.group, to)
}
