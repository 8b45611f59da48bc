package api

import (
	"math"
	"slices"

	"weir/model/header"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/model/stream"
)

// windowMessages is how many messages of a batch are read at a time.
const windowMessages = 64

// batch is a direct get that answers with several messages and a final status. Messages are read in windows; the next
// window is read when the one before was sent.
type batch struct {
	c       *call
	entry   *meta.Stream
	request *jsapi.MsgGetRequest
	// bytesLeft is what may still be sent; the message that uses it up is sent.
	bytesLeft int
	// countLeft is how many messages may still be sent.
	countLeft int
	// pending is the number of messages that were left to send before the next one.
	pending uint64
	// lastSeq is the sequence of the message sent last.
	lastSeq uint64
	// upTo is reported at the end of a multi_last batch.
	upTo uint64
	// seqs are the messages of a multi_last batch; a plain batch looks for its messages as it goes, from next.
	seqs  []uint64
	multi bool
	// broken says that the batch has ended with an error.
	broken bool
	next   uint64
	// grown is the stream's last sequence at the beginning: pending is counted again when it moved.
	grown uint64

	window  []slot
	waiting int
	reading bool // a window is being asked for; its completion must not start the next one by itself
	sentAny bool
}

// slot is one message of a window.
type slot struct {
	known stream.Meta
	msg   Message
	read  Reading
}

func (c *call) newBatch(entry *meta.Stream, r *jsapi.MsgGetRequest) *batch {
	b := &batch{c: c, entry: entry, request: r, bytesLeft: r.MaxBytes, countLeft: r.Batch}
	if b.bytesLeft <= 0 || b.bytesLeft > c.api.config.PendingBytes {
		b.bytesLeft = c.api.config.PendingBytes
	}
	if b.countLeft <= 0 {
		b.countLeft = math.MaxInt
	}
	return b
}

// directBatch answers a batch of consecutive messages, of one filter or of all subjects.
func (c *call) directBatch(entry *meta.Stream, s Stream, r *jsapi.MsgGetRequest) {
	b := c.newBatch(entry, r)
	b.next = r.Seq
	if r.StartTime != nil {
		b.next = s.SeqAtTime(int64(*r.StartTime))
	}
	if r.NextFor != "" && !validPatterns([]string{r.NextFor}) {
		c.status(jsapi.StatusMessageNotFound)
		return
	}
	b.pending, b.grown = s.CountFrom(b.pattern(), b.next), s.State().LastSeq
	b.run(s)
}

func (b *batch) pattern() string {
	if b.request.NextFor == "" {
		return ">"
	}
	return b.request.NextFor
}

// directMulti answers with the last message of each of many subjects. All of them are read at once, so that what is
// sent is one state of the stream.
func (c *call) directMulti(entry *meta.Stream, s Stream, r *jsapi.MsgGetRequest) {
	b := c.newBatch(entry, r)
	b.multi = true
	state := s.State()
	b.upTo = r.UpToSeq
	if r.UpToTime != nil {
		b.upTo = s.SeqAtTime(int64(*r.UpToTime))
		if b.upTo <= state.FirstSeq {
			c.status(jsapi.StatusNoResults)
			return
		}
		b.upTo--
	}
	if b.upTo == 0 {
		b.upTo = state.LastSeq
	}
	if !validPatterns(r.MultiLast) {
		c.status(jsapi.StatusNoResults)
		return
	}
	seqs, ok := s.MultiLast(r.MultiLast, b.upTo, jsapi.MultiLastSubjectsMax)
	seqs = slices.DeleteFunc(seqs, func(seq uint64) bool { return seq < r.Seq })
	switch {
	case !ok:
		c.status(jsapi.StatusTooManyResults)
		return
	case len(seqs) == 0:
		c.status(jsapi.StatusNoResults)
		return
	}
	b.seqs, b.pending = seqs, uint64(len(seqs))
	b.run(s)
}

// run reads and sends windows until the batch ends or has to wait for storage.
func (b *batch) run(s Stream) {
	for {
		b.fill(s)
		if len(b.window) == 0 {
			b.end(s)
			return
		}
		b.reading, b.waiting = true, len(b.window)
		for i := range b.window {
			at := &b.window[i]
			b.c.backend.Fetch(b.entry.Group, at.known.Seq, func(m Message, read Reading) {
				at.msg, at.read = m, read
				b.fetched()
			})
		}
		b.reading = false
		if b.waiting > 0 {
			return
		}
		if b.send() {
			b.end(s)
			return
		}
	}
}

// fetched notes one message read. The last one of a window that had to wait goes on with the batch.
func (b *batch) fetched() {
	b.waiting--
	if b.waiting > 0 || b.reading {
		return
	}
	done := b.send()
	s, ok := b.c.backend.Stream(b.entry.Group)
	if !ok {
		b.c.status("500 " + b.c.orGone(b.entry, jsapi.CodeStreamOffline.Err()).Description)
		return
	}
	if done {
		b.end(s)
		return
	}
	b.run(s)
}

// fill finds the messages of the next window.
func (b *batch) fill(s Stream) {
	b.window = b.window[:0]
	limit, bytes := min(windowMessages, b.countLeft), 0
	if b.multi {
		limit = min(len(b.seqs), b.countLeft)
	}
	for len(b.window) < limit && bytes < b.bytesLeft {
		known, ok := b.find(s)
		if !ok {
			return
		}
		b.window = append(b.window, slot{known: known})
		bytes += len(known.Subject) + known.Size
	}
}

// find returns the next message of the batch.
func (b *batch) find(s Stream) (stream.Meta, bool) {
	for b.multi && len(b.seqs) > 0 {
		seq := b.seqs[0]
		b.seqs = b.seqs[1:]
		if known, ok := s.Get(seq); ok {
			return known, true
		}
	}
	if b.multi {
		return stream.Meta{}, false
	}
	known, ok := s.NextBySubject(b.pattern(), b.next)
	if ok {
		b.next = known.Seq + 1
	}
	return known, ok
}

// send sends the window that was read and reports whether the batch is complete.
func (b *batch) send() bool {
	for i := range b.window {
		at := &b.window[i]
		switch at.read {
		case ReadGone:
			continue // removed since it was found
		case ReadFailed:
			b.c.status(statusUnreadable)
			b.broken = true
			return true
		}
		b.sendOne(at)
		if b.bytesLeft <= 0 || b.countLeft <= 0 {
			return true
		}
	}
	return false
}

func (b *batch) sendOne(at *slot) {
	c := b.c
	var hdr []byte
	if !b.request.NoHeaders || b.multi {
		if b.pending > 0 {
			b.pending--
		}
		hdr = appendOrigin(make([]byte, 0, len(at.msg.Header)+headerRoom), at.msg.Header, b.entry.Name, &at.known)
		hdr = header.AppendUintField(hdr, header.NumPending, b.pending)
		hdr = header.AppendUintField(hdr, header.LastSequence, b.lastSeq)
		hdr = header.AppendEnd(hdr)
	}
	c.backend.Reply(c.account, c.reply, hdr, at.msg.Payload)
	b.sentAny = true
	b.lastSeq = at.known.Seq
	b.countLeft--
	b.bytesLeft -= len(at.known.Subject) + len(at.msg.Header) + len(at.msg.Payload)
}

// end sends the final status.
func (b *batch) end(s Stream) {
	if b.broken {
		return
	}
	if !b.sentAny {
		b.c.status(jsapi.StatusMessageNotFound)
		return
	}
	if !b.multi && s.State().LastSeq > b.grown {
		b.pending = s.CountFrom(b.pattern(), b.lastSeq+1)
	}
	hdr := appendStatus(nil, jsapi.StatusEndOfBatch)
	hdr = header.AppendUintField(hdr, header.NumPending, b.pending)
	hdr = header.AppendUintField(hdr, header.LastSequence, b.lastSeq)
	if b.multi {
		hdr = header.AppendUintField(hdr, header.UpToSequence, b.upTo)
	}
	b.c.backend.Reply(b.c.account, b.c.reply, header.AppendEnd(hdr), nil)
}
