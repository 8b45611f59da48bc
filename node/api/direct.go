package api

import (
	"encoding/json"
	"strconv"

	"weir/model/header"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/model/stream"
	"weir/model/subject"
)

// headerRoom is the expected size of the fields that a direct get adds.
const headerRoom = 192

// next directs a pull request to its consumer. A consumer that does not exist has no responders.
func (c *call) next(r *Request) Outcome {
	entry := c.backend.Catalog().Stream(c.account, c.stream)
	if entry == nil {
		return NoResponders
	}
	s, ok := c.backend.Stream(entry.Group)
	if !ok {
		return NoResponders
	}
	state := s.ConsumerByName(c.consumer)
	if state == nil {
		return NoResponders
	}
	if r.Reply == "" {
		return Handled
	}
	if !levelServed(r.Header) {
		c.status(jsapi.StatusRequiredAPILevel)
		return Handled
	}
	c.backend.Pull(entry.Group, state.ID(), r)
	return Handled
}

// directStream returns the stream of a direct get; only those that allow it answer.
func (c *call) directStream() (*meta.Stream, bool) {
	entry := c.backend.Catalog().Stream(c.account, c.stream)
	return entry, entry != nil && entry.Config.AllowDirect
}

// directGet answers DIRECT.GET.stream.
func (c *call) directGet(r *Request) Outcome {
	entry, ok := c.directStream()
	if !ok {
		return NoResponders
	}
	if r.Reply == "" {
		return Handled
	}
	var request jsapi.MsgGetRequest
	switch {
	case !levelServed(r.Header):
		c.status(jsapi.StatusRequiredAPILevel)
	case len(r.Body) == 0:
		c.status(jsapi.StatusEmptyRequest)
	case json.Unmarshal(r.Body, &request) != nil:
		c.status(jsapi.StatusMalformedRequest)
	case request.Seq == 0 && request.LastFor == "" && request.NextFor == "" && len(request.MultiLast) == 0 &&
		request.StartTime == nil:
		c.status(jsapi.StatusEmptyRequest)
	case conflicting(&request) || request.LastFor != "" && (request.Batch > 0 || len(request.MultiLast) > 0) ||
		request.NextFor != "" && len(request.MultiLast) > 0 || request.UpToSeq > 0 && request.UpToTime != nil:
		c.status(jsapi.StatusBadRequest)
	default:
		c.direct(entry, &request)
	}
	return Handled
}

// directGetLast answers DIRECT.GET.stream.subject: the last message on the subject.
func (c *call) directGetLast(r *Request) Outcome {
	entry, ok := c.directStream()
	if !ok {
		return NoResponders
	}
	if r.Reply == "" {
		return Handled
	}
	if !levelServed(r.Header) {
		c.status(jsapi.StatusRequiredAPILevel)
		return Handled
	}
	var request jsapi.MsgGetRequest
	if len(r.Body) > 0 && json.Unmarshal(r.Body, &request) != nil {
		c.status(jsapi.StatusMalformedRequest)
		return Handled
	}
	if request.LastFor != "" || request.NextFor != "" || len(request.MultiLast) > 0 || request.Seq != 0 ||
		request.Batch != 0 || request.StartTime != nil || request.UpToSeq != 0 || request.UpToTime != nil {
		c.status(jsapi.StatusBadRequest)
		return Handled
	}
	request.LastFor = c.tail
	c.direct(entry, &request)
	return Handled
}

// direct answers a valid direct get behind a barrier of the stream.
func (c *call) direct(entry *meta.Stream, r *jsapi.MsgGetRequest) {
	c.backend.Barrier(entry.Group, func(err *jsapi.Error) {
		s, ok := c.backend.Stream(entry.Group)
		if err != nil || !ok {
			if err == nil {
				err = jsapi.CodeStreamOffline.Err()
			}
			c.status("500 " + c.orGone(entry, err).Description)
			return
		}
		switch {
		case len(r.MultiLast) > 0:
			c.directMulti(entry, s, r)
		case r.Batch > 0:
			c.directBatch(entry, s, r)
		default:
			c.directOne(entry, s, r)
		}
	})
}

// directOne answers with one message.
func (c *call) directOne(entry *meta.Stream, s Stream, r *jsapi.MsgGetRequest) {
	known, ok := pick(s, r)
	if !ok {
		c.status(jsapi.StatusMessageNotFound)
		return
	}
	c.backend.Fetch(entry.Group, known.Seq, func(m Message, read Reading) {
		switch read {
		case ReadGone:
			if c.again() {
				c.direct(entry, r)
				return
			}
			c.status(statusUnreadable)
			return
		case ReadFailed:
			c.status(statusUnreadable)
			return
		}
		if r.NoHeaders {
			c.backend.Reply(c.account, c.reply, nil, m.Payload)
			return
		}
		hdr := appendOrigin(make([]byte, 0, len(m.Header)+headerRoom), m.Header, entry.Name, &known)
		c.backend.Reply(c.account, c.reply, header.AppendEnd(hdr), m.Payload)
	})
}

// appendOrigin appends the stored header and the fields that say where a message is from. The block is left open.
func appendOrigin(dst, stored []byte, name string, known *stream.Meta) []byte {
	const lineEnd = 2 // the empty line that ends a block
	if len(stored) > lineEnd {
		dst = append(dst, stored[:len(stored)-lineEnd]...)
	} else {
		dst = header.AppendStart(dst)
	}
	dst = header.AppendField(dst, header.Stream, name)
	dst = header.AppendField(dst, header.Subject, known.Subject)
	dst = header.AppendUintField(dst, header.Sequence, known.Seq)
	var stamp [len("2006-01-02T15:04:05.999999999Z07:00")]byte
	return header.AppendField(dst, header.TimeStamp, string(jsapi.AppendTime(stamp[:0], jsapi.Time(known.Time))))
}

// status answers with a status line and nothing else.
func (c *call) status(line string) {
	if c.reply != "" {
		c.backend.Reply(c.account, c.reply, header.AppendEnd(appendStatus(nil, line)), nil)
	}
}

// statusUnreadable is the status for a stored message that can not be read.
const statusUnreadable = "500 Message Can Not Be Read"

// appendStatus appends the first line of a block for a status such as "404 Message Not Found".
func appendStatus(dst []byte, line string) []byte {
	const codeBytes = 3
	code, err := strconv.Atoi(line[:codeBytes])
	if err != nil {
		code = 500
	}
	return header.AppendStatusStart(dst, code, line[codeBytes+1:])
}

// validPatterns reports whether every pattern can match something.
func validPatterns(patterns []string) bool {
	for _, p := range patterns {
		if !subject.Valid(p) {
			return false
		}
	}
	return true
}
