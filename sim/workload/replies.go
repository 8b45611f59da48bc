package workload

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"weir/linearizability/history"
)

// status is the status code of a header block; 0 when its first line has none.
func status(header []byte) int {
	rest, found := bytes.CutPrefix(header, []byte("NATS/1.0 "))
	if !found || len(rest) < 3 {
		return 0
	}
	code, err := strconv.Atoi(string(rest[:3]))
	if err != nil {
		return 0
	}
	return code
}

// field is the value of a header line, "" when there is none.
func field(header []byte, name string) string {
	for line := range bytes.SplitSeq(header, []byte("\r\n")) {
		key, value, found := bytes.Cut(line, []byte(":"))
		if found && string(key) == name {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// valueOf is the ID that a publish wrote into its payload; 0 when the bytes are no value of the workload, or not whole.
func valueOf(payload []byte) uint64 {
	digits, padding, found := bytes.Cut(payload, []byte(":"))
	if !found || len(digits) < 2 || digits[0] != '#' {
		return 0
	}
	if len(padding) > len(filler) || string(padding) != filler[:len(padding)] {
		return 0
	}
	id, err := strconv.ParseUint(string(digits[1:]), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// gotDirect writes down the answer of a direct get.
func (c *client) gotDirect(stream int, i int, m *message) {
	if m == nil || m.status != 0 && m.status != 404 {
		c.end(i, history.Unknown)
		return
	}
	if m.status == 404 {
		c.end(i, history.OK)
		return
	}
	seq, err := strconv.ParseUint(field(m.header, "Nats-Sequence"), 10, 64)
	if err != nil {
		c.end(i, history.Unknown)
		return
	}
	r := c.end(i, history.OK)
	r.Seq, r.Value = seq, valueOf(m.payload)
	r.MsgID = field(m.header, "Nats-Msg-Id")
	if r.Kind == history.GetSeq {
		r.Subject = field(m.header, "Nats-Subject")
	}
	if at, err := time.Parse(time.RFC3339Nano, field(m.header, "Nats-Time-Stamp")); err == nil {
		r.Time = at.UnixNano()
	}
	c.load.see(stream, field(m.header, "Nats-Subject"), seq)
}

// notFound is the error code of a message that is not there.
const notFound = 10037

// gotStored writes down the answer of STREAM.MSG.GET.
func (c *client) gotStored(stream int, i int, m *message) {
	var answer struct {
		Error   *apiError `json:"error"`
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if m == nil || m.status != 0 || json.Unmarshal(m.payload, &answer) != nil {
		c.end(i, history.Unknown)
		return
	}
	if answer.Error != nil {
		if answer.Error.ErrCode == notFound {
			c.end(i, history.OK)
			return
		}
		c.end(i, history.Unknown)
		return
	}
	r := c.end(i, history.OK)
	r.Seq, r.Value, r.Time = answer.Message.Seq, valueOf(answer.Message.Data), answer.Message.Time.UnixNano()
	c.load.see(stream, answer.Message.Subject, r.Seq)
}

// metadata is what the reply subject of a delivery says.
type metadata struct {
	count, streamSeq, consumerSeq, pending uint64
	time                                   int64
}

// parseReply reads "$JS.ACK.stream.consumer.count.sseq.cseq.time.pending".
func parseReply(reply []byte) (metadata, bool) {
	parts := bytes.Split(reply, []byte("."))
	if len(parts) != 9 || string(parts[0]) != "$JS" || string(parts[1]) != "ACK" {
		return metadata{}, false
	}
	var n [5]uint64
	for i := range n {
		v, err := strconv.ParseUint(string(parts[4+i]), 10, 64)
		if err != nil {
			return metadata{}, false
		}
		n[i] = v
	}
	return metadata{count: n[0], streamSeq: n[1], consumerSeq: n[2], time: int64(n[3]), pending: n[4]}, true
}
