package api

import (
	"bytes"
	"encoding/json"
	"strconv"

	"weir/model/header"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/spec/assert"
)

// call is one request on its way to an answer.
type call struct {
	api      *API
	backend  Backend
	endpoint *endpoint

	account, subject, reply string
	stream, consumer, tail  string

	// limits are the limits of the account, once admitted.
	limits *jsapi.Limits
	// create is the decoded body of a consumer create, nil for other requests.
	create *jsapi.ConsumerCreateRequest
	// body is the request for the audit; it is kept only when somebody listens.
	body    string
	audited bool
	client  func() *jsapi.ClientInfo
	// missing, when it is not nil, may answer in the place of lookup when there is no such stream; it reports whether it does.
	missing func() bool
	// kept is the request when it is about a stream that this node does not know (yet); nil otherwise.
	kept *Request
	// answered guards against two answers.
	answered bool
	// attempts counts how often the message that was asked for vanished while it was read.
	attempts int
}

// attemptsMax bounds how often a get looks for its message again.
const attemptsMax = 100

// again reports whether to look for a message anew, because the one that was found vanished while it was read: another
// may be the answer now, and absence would be wrong.
func (c *call) again() bool {
	c.attempts++
	return c.attempts <= attemptsMax
}

// begin keeps what the audit needs, while the request is still there.
func (c *call) begin(r *Request) {
	if c.backend.HasInterest(c.account, jsapi.SubjectAPIAudit) {
		c.audited, c.body, c.client = true, string(r.Body), r.Client
	}
}

// admit checks the API level that the request needs and whether the account may use JetStream.
func (c *call) admit(r *Request) bool {
	if !levelServed(r.Header) {
		c.refuse(jsapi.CodeRequiredApiLevel.Err())
		return false
	}
	if c.endpoint.system {
		return true
	}
	limits, enabled := c.backend.Limits(c.account)
	if !enabled {
		// Not counted: there is nothing that the account has of JetStream.
		c.send(c.endpoint.failed(jsapi.Response{Type: c.endpoint.kind, Error: jsapi.CodeNotEnabledForAccount.Err()}), c.audited)
		return false
	}
	c.limits = limits
	return true
}

// levelServed reports whether the API level that a request asks for is served (ADR-44).
func levelServed(hdr []byte) bool {
	if len(hdr) == 0 {
		return true
	}
	wanted := header.Get(hdr, header.RequiredAPILevel)
	if len(wanted) == 0 {
		return true
	}
	level, err := strconv.Atoi(string(wanted))
	return err == nil && level <= jsapi.APILevel
}

// response is the beginning of a successful response.
func (c *call) response() jsapi.Response { return jsapi.Response{Type: c.endpoint.kind} }

// refuse answers with an error.
func (c *call) refuse(err *jsapi.Error) {
	c.api.stats(c.account).Total++
	c.api.stats(c.account).Errors++
	c.send(c.endpoint.failed(jsapi.Response{Type: c.endpoint.kind, Error: err}), c.audited)
}

// respond answers with a response.
func (c *call) respond(v any) {
	c.api.stats(c.account).Total++
	c.send(v, c.audited)
}

// respondQuietly answers with a response that is neither counted nor audited.
func (c *call) respondQuietly(v any) { c.send(v, false) }

func (c *call) send(v any, audited bool) {
	assert.True(!c.answered, "a request is answered once")
	c.answered = true
	body := jsapi.AppendJSON(nil, v)
	if audited {
		c.audit(body)
	}
	if c.reply != "" {
		c.backend.Reply(c.account, c.reply, nil, body)
	}
}

// decode reads the body into v, or refuses.
func (c *call) decode(body []byte, v any) bool {
	if err := jsapi.Decode(body, v, c.api.config.Strict); err != nil {
		c.refuse(err)
		return false
	}
	return true
}

// decodeOptional reads the body into v if it looks like JSON; anything else counts as no body.
func (c *call) decodeOptional(body []byte, v any) bool {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
		return true
	}
	return c.decode(body, v)
}

// requireEmpty refuses a request with a body.
func (c *call) requireEmpty(body []byte) bool {
	if !emptyBody(body) {
		c.refuse(jsapi.CodeNotEmptyRequest.Err())
		return false
	}
	return true
}

// emptyBody reports whether a body asks for nothing: no bytes, or an object without members.
func emptyBody(body []byte) bool {
	if len(body) == 0 || string(body) == "{}" {
		return true
	}
	var members map[string]json.RawMessage
	return json.Unmarshal(body, &members) == nil && members != nil && len(members) == 0
}

// withStream runs then with the stream of the request once its state is current, or refuses. A stream that is not in the
// catalog is looked for again behind a barrier of the catalog before it counts as missing.
func (c *call) withStream(then func(*meta.Stream, Stream)) {
	c.lookup(func(entry *meta.Stream) {
		c.current(entry, func(s Stream) { then(entry, s) })
	})
}

// lookup runs then with the catalog's entry of the stream, or refuses.
func (c *call) lookup(then func(*meta.Stream)) {
	if entry := c.backend.Catalog().Stream(c.account, c.stream); entry != nil {
		then(entry)
		return
	}
	c.backend.Barrier(meta.Group, func(err *jsapi.Error) {
		if err != nil {
			c.refuse(err)
			return
		}
		entry := c.backend.Catalog().Stream(c.account, c.stream)
		if entry == nil {
			if c.missing == nil || !c.missing() {
				c.refuse(jsapi.CodeStreamNotFound.Err())
			}
			return
		}
		if c.kept != nil && !c.backend.Leads(entry.Group) {
			c.backend.Forward(c.kept)
			return
		}
		then(entry)
	})
}

// current runs then with the state of the entry's group once it is current, or refuses.
func (c *call) current(entry *meta.Stream, then func(Stream)) {
	c.backend.Barrier(entry.Group, func(err *jsapi.Error) {
		if err != nil {
			c.refuse(c.orGone(entry, err))
			return
		}
		s, ok := c.backend.Stream(entry.Group)
		if !ok {
			c.refuse(c.orGone(entry, jsapi.CodeStreamOffline.Err()))
			return
		}
		then(s)
	})
}

// orGone replaces an error of a group that ended with its stream.
func (c *call) orGone(entry *meta.Stream, err *jsapi.Error) *jsapi.Error {
	if c.backend.Catalog().ByGroup(entry.Group) == nil {
		return jsapi.CodeStreamNotFound.Err()
	}
	return err
}

// page cuts a list of total elements at the offset that a client asked for: offset is clamped, [lo, hi) is the page.
func page(total, offset, limit int) (p jsapi.Page, lo, hi int) {
	lo = min(max(offset, 0), total)
	return jsapi.Page{Total: total, Offset: lo, Limit: limit}, lo, min(total, lo+limit)
}
