package torture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/linearizability/history"
)

// found is a message that was read.
type found struct {
	seq, value uint64
	subject    string
	msgID      string
	time       int64
}

// got writes down how a read ended and says whether there was an answer.
func (c *client) got(pos int, m found, err error) bool {
	switch {
	case err == nil:
		c.run.log.end(pos, history.OK, func(r *history.Record) {
			r.Seq, r.Value, r.Time, r.MsgID = m.seq, m.value, m.time, m.msgID
			if r.Kind == history.GetSeq {
				r.Subject = m.subject
			}
		})
		return true
	case errors.Is(err, jetstream.ErrMsgNotFound):
		c.run.log.end(pos, history.OK, nil)
		return true
	default:
		c.unknown(pos)
		return false
	}
}

// getLast reads the last message of a subject, by direct get or by the stream's API.
func (c *client) getLast(t *target, subject string) bool {
	pos, _ := c.run.log.begin(history.Record{Client: c.number, Kind: history.GetLast, Stream: t.name, Subject: subject})
	m, err := c.fetchLast(t.name, subject, c.rng.IntN(2) == 0)
	return c.got(pos, m, err)
}

func (c *client) fetchLast(stream, subject string, direct bool) (found, error) {
	if !direct {
		return c.msgGet(stream, map[string]any{"last_by_subj": subject})
	}
	ctx, cancel := c.limit()
	defer cancel()
	return c.directGet(ctx, "$JS.API.DIRECT.GET."+stream+"."+subject, nil)
}

// msgGet asks the stream's API for a message.
func (c *client) msgGet(stream string, request map[string]any) (found, error) {
	ctx, cancel := c.limit()
	defer cancel()
	return c.msgGetWithin(ctx, stream, request)
}

func (c *client) msgGetWithin(ctx context.Context, stream string, request map[string]any) (found, error) {
	var answer struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Data    []byte    `json:"data"`
			Header  []byte    `json:"hdrs"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	err := ask(ctx, c.nc, call{"STREAM.MSG.GET." + stream, request, &answer})
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeMessageNotFound {
		return found{}, jetstream.ErrMsgNotFound
	}
	if err != nil {
		return found{}, err
	}
	header := nats.Header{}
	if len(answer.Message.Header) > 0 {
		if header, err = nats.DecodeHeadersMsg(answer.Message.Header); err != nil {
			return found{}, err
		}
	}
	m := &answer.Message
	return found{
		seq: m.Seq, value: valueOf(m.Data, header.Get(valueHeader)), subject: m.Subject, msgID: header.Get(nats.MsgIdHdr),
		time: m.Time.UnixNano(),
	}, nil
}

// directGet asks for one message by direct get.
func (c *client) directGet(ctx context.Context, subject string, body []byte) (found, error) {
	m, err := c.nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		return found{}, err
	}
	switch m.Header.Get("Status") {
	case "":
	case "404":
		return found{}, jetstream.ErrMsgNotFound
	default:
		return found{}, fmt.Errorf("%w: status %s %s", errNoAnswer, m.Header.Get("Status"), m.Header.Get("Description"))
	}
	return directFound(m)
}

// directFound reads the headers of a direct get.
func directFound(m *nats.Msg) (found, error) {
	f := found{
		value: valueOf(m.Data, m.Header.Get(valueHeader)), subject: m.Header.Get(jetstream.SubjectHeader),
		msgID: m.Header.Get(nats.MsgIdHdr),
	}
	if _, err := fmt.Sscan(m.Header.Get(jetstream.SequenceHeader), &f.seq); err != nil {
		return found{}, fmt.Errorf("the answer to a direct get has no sequence: %v", m.Header)
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return found{}, fmt.Errorf("the answer to a direct get has no time: %v", m.Header)
	}
	f.time = at.UnixNano()
	return f, nil
}

// getSeq reads a message near the end of the stream.
func (c *client) getSeq(t *target) bool {
	newest := c.run.log.last(t.name, "")
	at := uint64(1 + c.rng.Int64N(int64(newest)+2))
	if c.rng.IntN(2) == 0 {
		at = max(1, newest+2-min(newest, uint64(c.rng.IntN(20))))
	}
	pos, _ := c.run.log.begin(history.Record{Client: c.number, Kind: history.GetSeq, Stream: t.name, At: at})
	if c.rng.IntN(2) == 0 {
		m, err := c.msgGet(t.name, map[string]any{"seq": at})
		return c.got(pos, m, err)
	}
	ctx, cancel := c.limit()
	defer cancel()
	m, err := c.directGet(ctx, "$JS.API.DIRECT.GET."+t.name, fmt.Appendf(nil, `{"seq":%d}`, at))
	return c.got(pos, m, err)
}

// info reads the state of the stream.
func (c *client) info(t *target) bool {
	ctx, cancel := c.limit()
	defer cancel()
	return c.infoWithin(ctx, t)
}

func (c *client) infoWithin(ctx context.Context, t *target) bool {
	pos, _ := c.run.log.begin(history.Record{Client: c.number, Kind: history.Info, Stream: t.name})
	var answer jetstream.StreamInfo
	if err := ask(ctx, c.nc, call{"STREAM.INFO." + t.name, nil, &answer}); err != nil {
		c.unknown(pos)
		return false
	}
	if answer.Cluster != nil && answer.Cluster.Leader != "" {
		c.run.leaders.note(t.name, answer.Cluster.Leader)
	}
	c.run.log.end(pos, history.OK, func(r *history.Record) {
		r.Seq, r.First, r.Messages = answer.State.LastSeq, answer.State.FirstSeq, answer.State.Msgs
	})
	return true
}

// reader reads until the load ends.
func (c *client) reader(ctx context.Context, t *target) {
	for ctx.Err() == nil {
		if c.refresh(!c.read(t)) != nil {
			return
		}
		c.think()
	}
}

// read reads something.
func (c *client) read(t *target) bool {
	switch c.rng.IntN(10) {
	case 0:
		return c.info(t)
	case 1, 2, 3:
		return c.getSeq(t)
	case 4:
		pos, _ := c.run.log.begin(history.Record{Client: c.number, Kind: history.GetLast, Stream: t.name, Subject: t.prefix + ".>"})
		m, err := c.fetchLast(t.name, t.prefix+".>", false)
		return c.got(pos, m, err)
	default:
		return c.getLast(t, t.subject(c.rng.IntN(t.keys)))
	}
}
