package api

import (
	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/model/stream"
	"weir/model/subject"
)

// streamPurge answers STREAM.PURGE.
func (c *call) streamPurge(body []byte) {
	var request jsapi.PurgeRequest
	if !c.decodeOptional(body, &request) {
		return
	}
	if request.Sequence > 0 && request.Keep > 0 {
		c.refuse(jsapi.CodeBadRequest.Err())
		return
	}
	if request.Filter != "" && !subject.Valid(request.Filter) {
		// Such a filter matches no subject; the machine knows valid patterns only.
		c.withStream(func(*meta.Stream, Stream) { c.respond(jsapi.PurgeResponse{Response: c.response(), Success: true}) })
		return
	}
	c.lookup(func(entry *meta.Stream) {
		purge := command.Command{
			Kind: command.Purge, Text: []byte(request.Filter), StreamSeq: request.Sequence, Keep: request.Keep,
		}
		c.backend.Propose(entry.Group, &purge, func(r *effect.Effect) {
			if r.Err != nil {
				c.refuse(c.orGone(entry, r.Err))
				return
			}
			c.respond(jsapi.PurgeResponse{Response: c.response(), Success: true, Purged: r.N})
		})
	})
}

// msgDelete answers STREAM.MSG.DELETE. The bytes are overwritten unless the request says that they need not be; the
// message is gone either way.
func (c *call) msgDelete(body []byte) {
	if emptyBody(body) {
		c.refuse(jsapi.CodeBadRequest.Err())
		return
	}
	var request jsapi.MsgDeleteRequest
	if !c.decode(body, &request) {
		return
	}
	c.lookup(func(entry *meta.Stream) {
		del := command.Command{Kind: command.DeleteMsg, StreamSeq: request.Seq}
		if request.NoErase {
			del.Keep = 1
		}
		c.backend.Propose(entry.Group, &del, func(r *effect.Effect) {
			if r.Err != nil {
				c.refuse(c.orGone(entry, r.Err))
				return
			}
			c.respond(jsapi.SuccessResponse{Response: c.response(), Success: true})
		})
	})
}

// msgGet answers STREAM.MSG.GET.
func (c *call) msgGet(body []byte) {
	if emptyBody(body) {
		c.refuse(jsapi.CodeBadRequest.Err())
		return
	}
	var r jsapi.MsgGetRequest
	if !c.decode(body, &r) {
		return
	}
	if r.Batch > 0 || r.MaxBytes > 0 || r.Seq == 0 && r.LastFor == "" && r.NextFor == "" && r.StartTime == nil ||
		conflicting(&r) {
		c.refuse(jsapi.CodeBadRequest.Err())
		return
	}
	c.getOne(&r)
}

// getOne answers STREAM.MSG.GET with the message that the request selects.
func (c *call) getOne(r *jsapi.MsgGetRequest) {
	c.withStream(func(entry *meta.Stream, s Stream) {
		known, ok := pick(s, r)
		if !ok {
			c.refuse(jsapi.CodeNoMessageFound.Err())
			return
		}
		c.backend.Fetch(entry.Group, known.Seq, func(m Message, read Reading) {
			if read == ReadGone && c.again() {
				c.getOne(r)
				return
			}
			if read != ReadOK {
				c.refuse(jsapi.CodeStreamGeneralError.With("message can not be read"))
				return
			}
			stored := &jsapi.StoredMsg{
				Subject: known.Subject, Seq: known.Seq, Data: m.Payload, Time: jsapi.Time(known.Time),
			}
			if !r.NoHeaders {
				stored.Header = m.Header
			}
			c.respondQuietly(jsapi.MsgGetResponse{Response: c.response(), Message: stored})
		})
	})
}

// conflicting reports whether the members that select one message exclude each other.
func conflicting(r *jsapi.MsgGetRequest) bool {
	return r.Seq > 0 && (r.LastFor != "" || r.StartTime != nil) || r.LastFor != "" && (r.StartTime != nil || r.NextFor != "")
}

// pick finds the one message that a get request selects.
func pick(s Stream, r *jsapi.MsgGetRequest) (stream.Meta, bool) {
	seq := r.Seq
	if r.StartTime != nil {
		seq = s.SeqAtTime(int64(*r.StartTime))
	}
	switch {
	case r.NextFor != "":
		return next(s, r.NextFor, seq)
	case r.LastFor != "":
		if !subject.Valid(r.LastFor) {
			return stream.Meta{}, false
		}
		return s.LastBySubject(r.LastFor)
	}
	return s.Get(seq)
}

// next finds the first message at or after seq that matches the pattern.
func next(s Stream, pattern string, seq uint64) (stream.Meta, bool) {
	if !subject.Valid(pattern) {
		return stream.Meta{}, false
	}
	return s.NextBySubject(pattern, seq)
}
