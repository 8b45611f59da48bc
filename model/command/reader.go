package command

import (
	"encoding/binary"
	"fmt"
)

// Reader walks the commands of one batch without allocating. The zero Reader is empty.
type Reader struct {
	rest    []byte
	time    int64
	token   uint64
	ordinal int
	err     error
}

// Read starts reading a batch. It fails with ErrMalformed when the header is short or of another version.
func Read(batch []byte) (Reader, error) {
	if len(batch) < HeaderSize || batch[0] != Version {
		return Reader{}, fmt.Errorf("%w: header of %d bytes", ErrMalformed, len(batch))
	}
	return Reader{
		rest:    batch[HeaderSize:],
		time:    int64(binary.LittleEndian.Uint64(batch[1:9])),
		token:   binary.LittleEndian.Uint64(batch[9:17]),
		ordinal: -1,
	}, nil
}

// Time is the leader's timestamp of the batch in unix nanoseconds.
func (r *Reader) Time() int64 { return r.time }

// Token is the proposer's mark of the batch.
func (r *Reader) Token() uint64 { return r.token }

// Ordinal is the 0-based position of the command that the last Next returned.
func (r *Reader) Ordinal() int { return r.ordinal }

// Err is the reason for which Next stopped early, or nil at the end of the batch.
func (r *Reader) Err() error { return r.err }

// Next decodes the next command into c and reports whether there was one. The slices of c alias the batch.
func (r *Reader) Next(c *Command) bool {
	if r.err != nil || len(r.rest) == 0 {
		return false
	}
	r.ordinal++
	kind := Kind(r.rest[0])
	size, n := binary.Uvarint(r.rest[1:])
	if n <= 0 || size > uint64(len(r.rest)-1-n) {
		r.err = fmt.Errorf("%w: command %d has a bad length", ErrMalformed, r.ordinal)
		return false
	}
	body := r.rest[1+n : 1+n+int(size)]
	r.rest = r.rest[1+n+int(size):]
	*c = Command{Kind: kind}
	f := fields{rest: body}
	f.decode(c)
	if f.bad || len(f.rest) != 0 {
		r.err = fmt.Errorf("%w: command %d of kind %d has a bad body", ErrMalformed, r.ordinal, kind)
		return false
	}
	return true
}

// fields takes the members of one body in order; bad becomes true, and stays so, when one does not fit.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) decode(c *Command) {
	switch c.Kind {
	case Publish:
		c.Subject, c.Header = f.bytes(), f.bytes()
		c.Payload, f.rest = f.rest, nil
	case PutConsumer:
		c.Action = f.byte()
		c.Name, c.Config = f.bytes(), f.bytes()
	case DeleteConsumer:
		c.Name, c.Consumer = f.bytes(), f.uvarint()
	case Deliver:
		c.Consumer, c.Token, c.Count, c.MaxBytes = f.uvarint(), f.uvarint(), f.uvarint(), f.uvarint()
	case Ack, Progress, Release:
		f.delivery(c)
	case Nak:
		f.delivery(c)
		c.Delay = f.varint()
	case Term:
		f.delivery(c)
		c.Text = f.bytes()
	case Tick:
	case Purge:
		c.Text, c.StreamSeq, c.Keep = f.bytes(), f.uvarint(), f.uvarint()
	case DeleteMsg:
		c.StreamSeq, c.Keep = f.uvarint(), f.uvarint()
	case Reset:
		c.Consumer, c.StreamSeq = f.uvarint(), f.uvarint()
	case PutStream:
		c.Config, c.Version = f.bytes(), f.uvarint()
	case CreateStream, UpdateStream:
		c.Account, c.Name, c.Config = f.bytes(), f.bytes(), f.bytes()
	case DeleteStream:
		c.Account, c.Name, c.Version = f.bytes(), f.bytes(), f.uvarint()
	default:
		f.bad = true
	}
}

func (f *fields) delivery(c *Command) {
	c.Consumer, c.StreamSeq, c.ConsumerSeq, c.Deliveries = f.uvarint(), f.uvarint(), f.uvarint(), f.uvarint()
}

func (f *fields) byte() byte {
	if len(f.rest) == 0 {
		f.bad = true
		return 0
	}
	b := f.rest[0]
	f.rest = f.rest[1:]
	return b
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.rest)
	if n <= 0 {
		f.bad = true
		return 0
	}
	f.rest = f.rest[n:]
	return v
}

func (f *fields) varint() int64 {
	v, n := binary.Varint(f.rest)
	if n <= 0 {
		f.bad = true
		return 0
	}
	f.rest = f.rest[n:]
	return v
}

func (f *fields) bytes() []byte {
	size := f.uvarint()
	if f.bad || size > uint64(len(f.rest)) {
		f.bad = true
		return nil
	}
	b := f.rest[:size:size]
	f.rest = f.rest[size:]
	return b
}
