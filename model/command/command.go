// Package command is the vocabulary of what is replicated: a closed set of commands and their versioned binary form.
//
// One Raft entry carries one batch: the leader's timestamp, a token that lets the proposer find the callers that wait
// for results, and the commands that one step of the engine collected for the group, in order. Everything that a state
// machine needs in order to apply a command travels in the batch, so that Apply depends on nothing else.
//
// The package does not decide anything: validity of the values is the concern of the state machines.
package command

import (
	"encoding/binary"
	"errors"
	"fmt"

	"weir/model/fields"
)

// Version is the first byte of every batch. A change of the layout raises it and keeps a reader for the old form.
const Version = 1

// HeaderSize is the number of bytes in front of the first command of a batch.
//
//	+---------+---------------+----------------+-----------------+
//	| version | time (8, LE)  | token (8, LE)  | commands ...    |
//	+---------+---------------+----------------+-----------------+
//
// A command is its kind, the length of its body as a uvarint, and the body.
const HeaderSize = 1 + 8 + 8

// BatchSizeMax bounds the bytes of one batch, and so of one Raft entry: one message of the largest payload and header
// that the server can be configured to accept (64 MiB each at most), with room for the framing.
const BatchSizeMax = 128<<20 + 4096

// ErrMalformed is returned for bytes that are not a batch of this version. Entries come from our own log, checksummed,
// so that a malformed batch is a defect or damage, never input of a client.
var ErrMalformed = errors.New("malformed command batch")

// Kind tells commands apart. The values are part of the log format.
type Kind uint8

// The closed set of commands. The comments name the fields of Command that each kind uses.
const (
	// Publish stores a message: Subject, Header, Payload.
	Publish Kind = 1
	// PutConsumer creates or updates a consumer: Name, Action, Config (canonical JSON of the normalised configuration).
	PutConsumer Kind = 2
	// DeleteConsumer removes a consumer: Name, and Consumer when the incarnation must match (0: any).
	DeleteConsumer Kind = 3
	// Deliver hands messages to one request of a consumer: Consumer, Token, Count, MaxBytes.
	Deliver Kind = 4
	// Ack acknowledges a delivery: Consumer, StreamSeq, ConsumerSeq, Deliveries.
	Ack Kind = 5
	// Nak asks for redelivery: as Ack, and Delay (nanoseconds, 0: at once).
	Nak Kind = 6
	// Progress restarts the ack wait of a delivery: as Ack.
	Progress Kind = 7
	// Term ends the deliveries of a message: as Ack, and Text (the reason).
	Term Kind = 8
	// Release takes back a delivery that reached nobody, so that it is delivered again with the same count: as Ack.
	Release Kind = 9
	// Tick lets the machine act on deadlines that the batch's time has passed: no fields.
	Tick Kind = 10
	// Purge removes messages: Text (filter, "" for all), StreamSeq (remove below; 0: no bound), Keep.
	Purge Kind = 11
	// DeleteMsg removes one message: StreamSeq, and Keep when its bytes may stay on the disk until their block is rewritten
	// (1; 0: they are overwritten).
	DeleteMsg Kind = 12
	// PutStream brings the stream's configuration to a version of the catalog: Config, Version.
	PutStream Kind = 13
	// Reset has a consumer deliver again from a sequence on: Consumer, StreamSeq (0: after its ack floor).
	Reset Kind = 14

	// Follow has a mirror begin to copy a stream: Version (the incarnation of that stream), Keep (the one that it copied so
	// far, 0: none), StreamSeq (it copies what comes after).
	Follow Kind = 15
	// Copy stores a message of the stream that a mirror copies: Version (its incarnation), From (the sequence up to which the
	// mirror has copied), StreamSeq (the message's sequence, up to which it then has), Time, Subject, Header, Payload. Without
	// a subject there is nothing to be stored up to the sequence.
	Copy Kind = 16
	// CreateStream adds a stream to the catalog: Account, Name, Config.
	CreateStream Kind = 32
	// UpdateStream changes a stream of the catalog: Account, Name, Config.
	UpdateStream Kind = 33
	// DeleteStream removes a stream from the catalog: Account, Name, and Version when the incarnation must match (0: any).
	DeleteStream Kind = 34
	// RegisterServer makes a server known to the catalog, or brings what the catalog knows of it up to date: Config.
	RegisterServer Kind = 35
	// RemoveServer takes a server out of the cluster: Version (its id), Config.
	RemoveServer Kind = 36
	// Settle reports that the members of a stream's group are those that the catalog asks for: Version (the group), Keep
	// (the version of the placement).
	Settle Kind = 37
	// PlaceStream takes a stream off a server: Account, Name, Config.
	PlaceStream Kind = 38
	// FormCatalog notes that the catalog is held by all servers that were to found it: no fields.
	FormCatalog Kind = 39
)

// The actions of PutConsumer (ADR-42 of the API: the "action" member of a create request).
const (
	// Upsert creates the consumer or updates it.
	Upsert uint8 = 0
	// CreateOnly refuses an existing consumer with another configuration.
	CreateOnly uint8 = 1
	// UpdateOnly refuses a consumer that does not exist.
	UpdateOnly uint8 = 2
)

// Command is one command, flat: each kind uses the fields that its constant names, the others are zero.
// After decoding the slices alias the batch.
type Command struct {
	// Kind says which fields count.
	Kind Kind
	// Action is how PutConsumer treats an existing or missing consumer.
	Action uint8
	// Subject, Header and Payload are the published message; Header is empty or a NATS/1.0 block.
	Subject, Header, Payload []byte
	// Account and Name identify a stream of the catalog; Name alone a consumer of the stream.
	Account, Name []byte
	// Config is a configuration in canonical JSON.
	Config []byte
	// Text is a filter (Purge) or a reason (Term).
	Text []byte
	// Consumer is the incarnation id of a consumer.
	Consumer uint64
	// StreamSeq and ConsumerSeq are the two sequences of a delivery.
	StreamSeq, ConsumerSeq uint64
	// Deliveries is the delivery count that the acknowledgement names.
	Deliveries uint64
	// Token identifies the request that a Deliver serves; it comes back in the effects.
	Token uint64
	// Count is the largest number of messages to hand out.
	Count uint64
	// MaxBytes bounds the bytes to hand out; 0: no bound.
	MaxBytes uint64
	// Delay is the delay of a Nak in nanoseconds.
	Delay int64
	// Keep is the number of messages that a Purge leaves, 0: no such rule; or 1 for a DeleteMsg that leaves the bytes; or
	// the version of a placement (Settle).
	Keep uint64
	// Version is the configuration version (PutStream), the incarnation (DeleteStream, Follow, Copy), the group (Settle) or the
	// server (RemoveServer).
	Version uint64
	// From is the sequence that a Copy continues.
	From uint64
	// Time is when a copied message was stored first, unix nanoseconds.
	Time int64
}

// AppendHeader starts a batch: time is the leader's timestamp in unix nanoseconds, token identifies the batch to its
// proposer.
func AppendHeader(dst []byte, time int64, token uint64) []byte {
	dst = append(dst, Version)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(time))
	return binary.LittleEndian.AppendUint64(dst, token)
}

// SetTime overwrites the timestamp of a batch that AppendHeader started.
func SetTime(batch []byte, time int64) {
	binary.LittleEndian.PutUint64(batch[1:9], uint64(time))
}

// AppendPublish appends a Publish without building a Command: the hot path of the server. The message is copied.
func AppendPublish(dst, subject, header, payload []byte) []byte {
	size := uvarintLen(len(subject)) + len(subject) + uvarintLen(len(header)) + len(header) + len(payload)
	dst = append(dst, byte(Publish))
	dst = binary.AppendUvarint(dst, uint64(size))
	dst = fields.AppendBytes(dst, subject)
	dst = fields.AppendBytes(dst, header)
	return append(dst, payload...)
}

// Append appends c to a batch. It panics on a kind outside the closed set.
func Append(dst []byte, c *Command) []byte {
	switch c.Kind {
	case Publish:
		return AppendPublish(dst, c.Subject, c.Header, c.Payload)
	case Copy:
		return appendCopy(dst, c)
	}
	dst = append(dst, byte(c.Kind))
	var scratch [256]byte
	body := appendBody(scratch[:0], c)
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return append(dst, body...)
}

// appendCopy appends a Copy, whose message is copied once.
func appendCopy(dst []byte, c *Command) []byte {
	var scratch [5 * binary.MaxVarintLen64]byte
	head := binary.AppendVarint(appendUvarints(scratch[:0], c.Version, c.From, c.StreamSeq), c.Time)
	size := len(head) + uvarintLen(len(c.Subject)) + len(c.Subject) + uvarintLen(len(c.Header)) + len(c.Header) + len(c.Payload)
	dst = binary.AppendUvarint(append(dst, byte(Copy)), uint64(size))
	dst = append(dst, head...)
	dst = fields.AppendBytes(dst, c.Subject)
	dst = fields.AppendBytes(dst, c.Header)
	return append(dst, c.Payload...)
}

func appendBody(b []byte, c *Command) []byte {
	switch c.Kind {
	case PutConsumer:
		b = append(b, c.Action)
		b = fields.AppendBytes(b, c.Name)
		return fields.AppendBytes(b, c.Config)
	case DeleteConsumer:
		b = fields.AppendBytes(b, c.Name)
		return binary.AppendUvarint(b, c.Consumer)
	case Deliver:
		return appendUvarints(b, c.Consumer, c.Token, c.Count, c.MaxBytes)
	case Ack, Progress, Release:
		return appendUvarints(b, c.Consumer, c.StreamSeq, c.ConsumerSeq, c.Deliveries)
	case Nak:
		b = appendUvarints(b, c.Consumer, c.StreamSeq, c.ConsumerSeq, c.Deliveries)
		return binary.AppendVarint(b, c.Delay)
	case Term:
		b = appendUvarints(b, c.Consumer, c.StreamSeq, c.ConsumerSeq, c.Deliveries)
		return fields.AppendBytes(b, c.Text)
	case Tick, FormCatalog:
		return b
	case Purge:
		b = fields.AppendBytes(b, c.Text)
		return appendUvarints(b, c.StreamSeq, c.Keep)
	case DeleteMsg:
		return appendUvarints(b, c.StreamSeq, c.Keep)
	case Reset:
		return appendUvarints(b, c.Consumer, c.StreamSeq)
	case Follow:
		return appendUvarints(b, c.Version, c.Keep, c.StreamSeq)
	case PutStream:
		b = fields.AppendBytes(b, c.Config)
		return binary.AppendUvarint(b, c.Version)
	case CreateStream, UpdateStream, PlaceStream:
		b = fields.AppendBytes(b, c.Account)
		b = fields.AppendBytes(b, c.Name)
		return fields.AppendBytes(b, c.Config)
	case RegisterServer:
		return fields.AppendBytes(b, c.Config)
	case RemoveServer:
		b = binary.AppendUvarint(b, c.Version)
		return fields.AppendBytes(b, c.Config)
	case Settle:
		return appendUvarints(b, c.Version, c.Keep)
	case DeleteStream:
		b = fields.AppendBytes(b, c.Account)
		b = fields.AppendBytes(b, c.Name)
		return binary.AppendUvarint(b, c.Version)
	default:
		panic(fmt.Sprintf("command: append of kind %d, which does not exist", c.Kind))
	}
}

func appendUvarints(dst []byte, values ...uint64) []byte {
	for _, v := range values {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

func uvarintLen(n int) int {
	size := 1
	for v := uint64(n); v >= 0x80; v >>= 7 {
		size++
	}
	return size
}
