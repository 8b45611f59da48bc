package command

import (
	"encoding/binary"
	"fmt"

	"weir/model/fields"
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
	f := fields.NewReader(body)
	c.take(&f)
	if !f.Done() {
		r.err = fmt.Errorf("%w: command %d of kind %d has a bad body", ErrMalformed, r.ordinal, kind)
		return false
	}
	return true
}

// take reads the members of the command's kind.
func (c *Command) take(f *fields.Reader) {
	switch c.Kind {
	case Publish:
		c.Subject, c.Header = f.Bytes(), f.Bytes()
		c.Payload = f.Rest()
	case PutConsumer:
		c.Action = f.Byte()
		c.Name, c.Config = f.Bytes(), f.Bytes()
	case DeleteConsumer:
		c.Name, c.Consumer = f.Bytes(), f.Uvarint()
	case Deliver:
		c.Consumer, c.Token, c.Count, c.MaxBytes = f.Uvarint(), f.Uvarint(), f.Uvarint(), f.Uvarint()
	case Ack, Progress, Release:
		c.takeDelivery(f)
	case Nak:
		c.takeDelivery(f)
		c.Delay = f.Varint()
	case Term:
		c.takeDelivery(f)
		c.Text = f.Bytes()
	case Tick, FormCatalog:
	case Purge:
		c.Text, c.StreamSeq, c.Keep = f.Bytes(), f.Uvarint(), f.Uvarint()
	case DeleteMsg:
		c.StreamSeq, c.Keep = f.Uvarint(), f.Uvarint()
	case Reset:
		c.Consumer, c.StreamSeq = f.Uvarint(), f.Uvarint()
	case Follow:
		c.Version, c.Keep, c.StreamSeq = f.Uvarint(), f.Uvarint(), f.Uvarint()
	case Copy:
		c.Version, c.From, c.StreamSeq, c.Time = f.Uvarint(), f.Uvarint(), f.Uvarint(), f.Varint()
		c.Subject, c.Header = f.Bytes(), f.Bytes()
		c.Payload = f.Rest()
	case PutStream:
		c.Config, c.Version = f.Bytes(), f.Uvarint()
	case RegisterServer:
		c.Config = f.Bytes()
	case RemoveServer:
		c.Version, c.Config = f.Uvarint(), f.Bytes()
	case Settle:
		c.Version, c.Keep = f.Uvarint(), f.Uvarint()
	case CreateStream, UpdateStream, PlaceStream:
		c.Account, c.Name, c.Config = f.Bytes(), f.Bytes(), f.Bytes()
	case DeleteStream:
		c.Account, c.Name, c.Version = f.Bytes(), f.Bytes(), f.Uvarint()
	default:
		f.Fail()
	}
}

// takeDelivery reads the members that name one delivery.
func (c *Command) takeDelivery(f *fields.Reader) {
	c.Consumer, c.StreamSeq, c.ConsumerSeq, c.Deliveries = f.Uvarint(), f.Uvarint(), f.Uvarint(), f.Uvarint()
}

// Parse reads the command that Append wrote, alone. It fails with ErrMalformed.
func Parse(data []byte) (Command, error) {
	r := Reader{rest: data, ordinal: -1}
	var c Command
	if !r.Next(&c) || len(r.rest) > 0 {
		return Command{}, fmt.Errorf("%w: %d bytes are not one command", ErrMalformed, len(data))
	}
	return c, nil
}
