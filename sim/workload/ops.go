package workload

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"weir/linearizability/history"
	"weir/sim/plan"
	"weir/sim/trace"
)

// retriesMax bounds how often a publish with an id is sent again after an unknown outcome.
const retriesMax = 2

// perform carries out one operation of the plan.
func (c *client) perform(op *plan.Op) {
	switch op.Kind {
	case plan.OpPub:
		c.publish(op, 0)
	case plan.OpGet, plan.OpMsgGet:
		c.getLast(op)
	case plan.OpSeq:
		c.getSeq(op.Stream, less(c.load.newest[op.Stream], op.Delta), func() { c.finished() })
	case plan.OpInfo:
		c.info(op.Stream, func(*streamState) { c.finished() })
	case plan.OpPurge:
		c.purge(op)
	case plan.OpDelete:
		c.deleteMsg(op)
	case plan.OpFetch:
		c.fetch(op.Consumer, op.N, op.Wait, func() { c.finished() })
	case plan.OpScratch:
		c.scratch(op)
	case plan.OpConsumer:
		call := c.load.world.Now()
		c.request(request{subject: c.load.consumerInfoSubject(op.Consumer)}, func(m *message) {
			c.load.consumerState(op.Consumer, call, m)
			c.finished()
		})
	case plan.OpWatch:
		c.watch(op)
	case plan.OpUpdate, plan.OpScale:
		c.update(op)
	case plan.OpStepDown, plan.OpPeerRemove:
		c.administer(op)
	case plan.OpMetaStepDown:
		c.operate(op)
	default:
		panic("workload: operation of kind " + op.Kind)
	}
}

// less is the newest sequence less delta, at least 1.
func less(newest uint64, delta int) uint64 {
	if uint64(delta) >= newest {
		return 1
	}
	return newest - uint64(delta)
}

// begin writes down a call.
func (c *client) begin(r history.Record) int {
	l := c.load
	l.ids++
	r.ID, r.Client, r.Call = l.ids, c.number, l.world.Now()
	l.trace.Add(trace.Call, uint64(c.number), r.ID, nil)
	l.trace.Note(fmt.Sprintf("%s %s %s", r.Kind, r.Stream, r.Subject))
	return l.History.Begin(r)
}

// end writes down how a call ended. For an unknown outcome it returns nil, and the client becomes another one.
func (c *client) end(i int, outcome history.Outcome) *history.Record {
	l := c.load
	r := &l.History.Records[i]
	if outcome == history.Unknown {
		l.trace.Add(trace.Unknown, uint64(c.number), r.ID, nil)
		l.numbers++
		c.number = l.numbers
		return nil
	}
	l.trace.Add(trace.Return, uint64(c.number), r.ID, nil)
	return l.History.End(i, outcome, l.world.Now())
}

// apiError is the error object of an answer.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

// decides reports whether the error can only be given after deciding that the operation did not happen.
func (e *apiError) decides() bool { return e.Code < 500 || e.ErrCode == 10077 || e.ErrCode == 10057 }

// filler is what values are padded with.
var filler = strings.Repeat("abcdefghijklmnop", 1024)

func (c *client) publish(op *plan.Op, attempt int) {
	l := c.load
	stream := &l.plan.Streams[op.Stream]
	r := history.Record{Kind: history.Publish, Stream: stream.Name, Subject: stream.Subject(op.Key), MsgID: op.ID, Rollup: op.Rollup}
	if op.ID != "" {
		r.MsgID = stream.Name + "-" + op.ID
	}
	header := ""
	if r.MsgID != "" {
		header += "Nats-Msg-Id: " + r.MsgID + "\r\n"
	}
	switch op.Expect {
	case plan.ExpectLast:
		r.ExpectLast = expect(l.newest[op.Stream], op.Delta)
		header += "Nats-Expected-Last-Sequence: " + strconv.FormatUint(r.ExpectLast.Seq, 10) + "\r\n"
	case plan.ExpectWrong:
		// Recorded as an expectation that nothing can meet.
		r.ExpectLast = history.Expected{Set: true, Seq: math.MaxUint64}
		header += "Nats-Expected-Stream: NO-" + stream.Name + "\r\n"
	case plan.ExpectSubject:
		r.ExpectSubject = expect(l.newestSubject[r.Subject], op.Delta)
		header += "Nats-Expected-Last-Subject-Sequence: " + strconv.FormatUint(r.ExpectSubject.Seq, 10) + "\r\n"
	}
	if r.Rollup {
		header += "KV-Operation: PURGE\r\nNats-Rollup: sub\r\n"
	}
	i := c.begin(r)
	ask := request{subject: r.Subject, body: fmt.Appendf(nil, "#%d:%s", l.ids, filler[:min(op.N, len(filler))])}
	if header != "" {
		ask.header = []byte("NATS/1.0\r\n" + header + "\r\n")
	}
	c.request(ask, func(m *message) {
		if c.published(op, i, m) == nil && op.ID != "" && attempt < retriesMax {
			c.whenReady(func() { c.publish(op, attempt+1) })
			return
		}
		c.finished()
	})
}

// expect is the expectation of a sequence delta away from the newest one seen.
func expect(newest uint64, delta int) history.Expected {
	return history.Expected{Set: true, Seq: uint64(max(0, int64(newest)+int64(delta)))}
}

// noResponders is the status of the answer that nobody listens.
const noResponders = 503

// published reads a PubAck; it returns nil for an unknown outcome, and when nobody took the message: it may be sent again.
func (c *client) published(op *plan.Op, i int, m *message) *history.Record {
	var ack struct {
		Error     *apiError `json:"error"`
		Stream    string    `json:"stream"`
		Seq       uint64    `json:"seq"`
		Duplicate bool      `json:"duplicate"`
	}
	if m != nil && m.status == noResponders {
		// No stream has it, whatever it expected.
		r := c.end(i, history.Rejected)
		r.Code, r.ExpectLast, r.ExpectSubject = noResponders, history.Expected{}, history.Expected{}
		return nil
	}
	if m == nil || m.status != 0 || json.Unmarshal(m.payload, &ack) != nil {
		return c.end(i, history.Unknown)
	}
	if ack.Error == nil {
		r := c.end(i, history.OK)
		r.Seq, r.Duplicate = ack.Seq, ack.Duplicate
		c.load.see(op.Stream, r.Subject, ack.Seq)
		return r
	}
	if !ack.Error.decides() {
		return c.end(i, history.Unknown)
	}
	r := c.end(i, history.Rejected)
	r.Code = ack.Error.ErrCode
	if at, found := strings.CutPrefix(ack.Error.Description, "wrong last sequence: "); found {
		if seq, err := strconv.ParseUint(at, 10, 64); err == nil {
			r.Seq, r.Observed = seq, true
			subject := r.Subject
			if r.ExpectLast.Set {
				subject = ""
			}
			c.load.see(op.Stream, subject, seq)
		}
	}
	return r
}

// getLast reads the last message of a subject or of the whole stream.
func (c *client) getLast(op *plan.Op) {
	stream := &c.load.plan.Streams[op.Stream]
	subject := stream.Prefix + ".>"
	if op.Key >= 0 {
		subject = stream.Subject(op.Key)
	}
	c.getLastOn(op.Stream, subject, op.Kind == plan.OpMsgGet, func() { c.finished() })
}

func (c *client) getLastOn(stream int, subject string, slow bool, done func()) {
	name := c.load.plan.Streams[stream].Name
	i := c.begin(history.Record{Kind: history.GetLast, Stream: name, Subject: subject})
	body := fmt.Appendf(nil, `{"last_by_subj":%q}`, subject)
	if slow {
		c.request(request{subject: "$JS.API.STREAM.MSG.GET." + name, body: body}, func(m *message) {
			c.gotStored(stream, i, m)
			done()
		})
		return
	}
	ask := request{subject: "$JS.API.DIRECT.GET." + name + "." + subject}
	if strings.HasSuffix(subject, ">") {
		ask = request{subject: "$JS.API.DIRECT.GET." + name, body: body}
	}
	c.request(ask, func(m *message) {
		c.gotDirect(stream, i, m)
		done()
	})
}

func (c *client) getSeq(stream int, seq uint64, done func()) {
	name := c.load.plan.Streams[stream].Name
	i := c.begin(history.Record{Kind: history.GetSeq, Stream: name, At: seq})
	c.request(request{subject: "$JS.API.DIRECT.GET." + name, body: fmt.Appendf(nil, `{"seq":%d}`, seq)}, func(m *message) {
		c.gotDirect(stream, i, m)
		done()
	})
}

// streamState is the state of a stream in STREAM.INFO.
type streamState struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	First    uint64 `json:"first_seq"`
	Last     uint64 `json:"last_seq"`
	// Down is why there is no state.
	Down string `json:"-"`
}

func (c *client) info(stream int, done func(*streamState)) {
	name := c.load.plan.Streams[stream].Name
	i := c.begin(history.Record{Kind: history.Info, Stream: name})
	c.request(request{subject: "$JS.API.STREAM.INFO." + name}, func(m *message) {
		var answer struct {
			Error  *apiError   `json:"error"`
			State  streamState `json:"state"`
			Config struct {
				Description string `json:"description"`
			} `json:"config"`
		}
		if m == nil || m.status != 0 || json.Unmarshal(m.payload, &answer) != nil || answer.Error != nil {
			c.end(i, history.Unknown)
			down := "no answer"
			if answer.Error != nil {
				down = answer.Error.Description
			}
			done(&streamState{Down: down})
			return
		}
		r := c.end(i, history.OK)
		r.Seq, r.First, r.Messages = answer.State.Last, answer.State.First, answer.State.Messages
		c.load.Descriptions = append(c.load.Descriptions, Description{stream, answer.Config.Description, r.Call, r.Return})
		c.load.see(stream, "", r.Seq)
		c.load.Bytes[stream] = max(c.load.Bytes[stream], answer.State.Bytes)
		done(&answer.State)
	})
}

func (c *client) purge(op *plan.Op) {
	stream := &c.load.plan.Streams[op.Stream]
	r := history.Record{Kind: history.Purge, Stream: stream.Name, Keep: uint64(op.N)}
	body := fmt.Sprintf(`"keep":%d`, op.N)
	if op.Key >= 0 {
		r.Subject = stream.Subject(op.Key)
		body += fmt.Sprintf(`,"filter":%q`, r.Subject)
	}
	i := c.begin(r)
	c.request(request{subject: "$JS.API.STREAM.PURGE." + stream.Name, body: []byte("{" + body + "}")}, func(m *message) {
		defer c.finished()
		var answer struct {
			Error  *apiError `json:"error"`
			Purged uint64    `json:"purged"`
		}
		switch {
		case m == nil || m.status != 0 || json.Unmarshal(m.payload, &answer) != nil:
			c.end(i, history.Unknown)
		case answer.Error == nil:
			c.end(i, history.OK).Messages = answer.Purged
		case answer.Error.decides():
			c.end(i, history.Rejected).Code = answer.Error.ErrCode
		default:
			c.end(i, history.Unknown)
		}
	})
}

func (c *client) deleteMsg(op *plan.Op) {
	name := c.load.plan.Streams[op.Stream].Name
	seq := less(c.load.newest[op.Stream], op.Delta)
	i := c.begin(history.Record{Kind: history.DeleteMsg, Stream: name, At: seq})
	c.request(request{subject: "$JS.API.STREAM.MSG.DELETE." + name, body: fmt.Appendf(nil, `{"seq":%d}`, seq)}, func(m *message) {
		defer c.finished()
		var answer struct {
			Error *apiError `json:"error"`
		}
		switch {
		case m == nil || m.status != 0 || json.Unmarshal(m.payload, &answer) != nil:
			c.end(i, history.Unknown)
		case answer.Error == nil:
			c.end(i, history.OK)
		case answer.Error.decides():
			c.end(i, history.Rejected).Code = answer.Error.ErrCode
		default:
			c.end(i, history.Unknown)
		}
	})
}
