// Package peerwire is the protocol between the servers of a cluster: framed, checksummed, versioned by the handshake.
//
//	+----------------+---------------------------+----------+--------+
//	| length (4, LE) | CRC-32C of the rest (4)   | kind (1) | body   |
//	+----------------+---------------------------+----------+--------+
//
// The length counts kind and body. A frame is flat: each kind uses the fields of Frame that its constant names. The
// package promises that what Append wrote Next gives back, and that damaged or foreign bytes are refused, not guessed. It
// decides nothing and reads no sockets.
package peerwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"weir/spec/assert"
)

// ServerID identifies a server: drawn at random when its data directory is made, never used again. A wiped disk is a new
// server.
type ServerID uint64

// shortLen is the length of the form of an id that clients see, as in the reference server.
const shortLen = 8

const shortDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Short is the form of the id that clients see: eight letters and digits.
func (s ServerID) Short() string {
	var text [shortLen]byte
	for i := range text {
		text[i] = shortDigits[s%62]
		s /= 62
	}
	return string(text[:])
}

// Kind tells frames apart. The values are part of the protocol.
type Kind uint8

// The closed set of frames. The comments name the fields of Frame that each kind uses.
const (
	// Raft is a message of one Raft group: Group, Payload (node/replica encodes it).
	Raft Kind = 1
	// Beat is heartbeats, or answers to them, of many groups: Payload (node/replica encodes it).
	Beat Kind = 2
	// Ping asks for a Pong: Token.
	Ping Kind = 3
	// Pong answers a Ping: Token.
	Pong Kind = 4
	// Interest changes how many subscriptions the sender has: Account, Subject (a pattern), Queue, Count (the new number;
	// 0: none any more), Flag (none of their clients keeps up), Offset (bits: 1, a client is about to be closed as too slow;
	// 2, messages go there before the others of the group).
	Interest Kind = 5
	// Msg is a message for subscriptions of the receiver, which does not pass it on: Account, Subject (routed to), Text (the
	// subject that subscriptions see, if it is another), Reply, Header, Payload, Flag (plain subscriptions get it), Queues
	// (groups of which one member gets it).
	Msg Kind = 6
	// Publish is a message for a stream, to the server that leads its group: Group, Account, Subject, Reply, Header,
	// Payload, Count (hops so far).
	Publish Kind = 7
	// Request is a message to a subject of JetStream itself, to the server that leads the group that decides: as Publish,
	// and Extra (the client in JSON, or empty).
	Request Kind = 8
	// Reply is an answer that the receiver publishes as if it had arisen there, once its catalog has applied the index:
	// Account, Subject, Header, Payload, Offset.
	Reply Kind = 9
	// NotLeader gives back a Publish or Request that the receiver could not take: Group, Account, Subject, Reply.
	NotLeader Kind = 10
	// Lead says which groups the sender leads: Payload (pairs of group and term, uvarints).
	Lead Kind = 11
	// Ask is a question of one engine to another: Token, Text (what about), Group, Account, Payload.
	Ask Kind = 12
	// Answer answers an Ask: Token, Flag (whether it could be answered), Payload.
	Answer Kind = 13
	// SnapGet asks for a piece of a snapshot: Group, Token (the transfer), Count (which part), Offset, Text (what of it),
	// Payload (how many bytes, a uvarint).
	SnapGet Kind = 14
	// SnapPart is a piece of a snapshot: Group, Token, Count, Offset, Text, Payload, Flag (it is the last of its part).
	SnapPart Kind = 15
	// SnapEnd ends a transfer: Group, Token, Flag (it succeeded), Text (the reason otherwise).
	SnapEnd Kind = 16
	// Digest compares states: Group, Offset (index), Token (digest).
	Digest Kind = 17
	// Join says what changed about the sender: Payload (a Hello). With Flag it invites the receiver to hold a replica of the
	// catalog too: Extra (the members at its founding, in JSON), Count (how many servers founded it together).
	Join Kind = 18

	// Propose is a command for the catalog, to the server that leads it; nobody waits for what becomes of it: Payload.
	Propose Kind = 19

	// Taken says how much of what came in frames of kinds Msg, Publish, Request and Copies since the session began has been
	// dealt with: Count (bytes, as MsgCost counts them).
	Taken Kind = 20

	// Follow asks the leader of a stream for what comes after a sequence, for a mirror of it: Token, Group (the stream's),
	// Offset (the sequence), Subject (a filter, or empty), Flag (answer now; otherwise when there is something), Payload
	// (node/engine encodes the rest).
	Follow Kind = 21
	// Copies answers a Follow: Token, Flag (false: ask another server, or this one later), Text (why there is no answer), Group
	// (the incarnation of the stream), Offset (the sequence up to which the answer has all), Count (messages behind that),
	// Payload (messages, as commands of a batch).
	Copies Kind = 22

	kindMax = Copies

	// Known tells of another server: Token (its id), Subject (its address); without any it says no more than that the
	// sender is there. It is spoken between the edges, which look for servers to connect to; engines never see it.
	Known Kind = 128
)

// Datagram reports whether frames of the kind may be lost, repeated, reordered or late; the others arrive in order or
// the session ends.
func (k Kind) Datagram() bool { return k == Raft || k == Beat || k == Ping || k == Pong }

// Frame is one frame, flat. Slices that Parse returns alias the bytes given.
type Frame struct {
	// Kind says which fields count.
	Kind Kind
	// Flag, Count, Offset, Token and Group are numbers whose meaning the kind gives.
	Flag          bool
	Count, Offset uint64
	Token         uint64
	Group         uint64
	// Account, Subject, Reply, Queue and Text are names.
	Account, Subject, Reply, Queue, Text []byte
	// Header, Payload and Extra are contents.
	Header, Payload, Extra []byte
	// Queues are names of queue groups.
	Queues [][]byte
}

// msgCostMin is what a frame with a message costs beside its contents.
const msgCostMin = 64

// MsgCost is about how many bytes a frame with a message takes. Both servers count alike.
func MsgCost(f *Frame) uint64 {
	return uint64(msgCostMin + len(f.Subject) + len(f.Text) + len(f.Reply) + len(f.Header) + len(f.Payload))
}

// HeadBytes is the size of what precedes the kind; FrameBytesMax bounds a frame: a message of the largest payload and
// header with its framing, or an append of Raft.
const (
	HeadBytes     = 8
	FrameBytesMax = 160 << 20
	queuesMax     = 1 << 16
)

// ErrMalformed is returned for bytes that are no frame of this protocol.
var ErrMalformed = errors.New("malformed frame between servers")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append appends a frame.
func Append(dst []byte, f *Frame) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0, byte(f.Kind))
	dst = appendBody(dst, f)
	return Seal(dst, start)
}

// Begin starts a frame whose body the caller appends; Seal completes it.
func Begin(dst []byte, kind Kind) []byte {
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0, byte(kind))
}

// Seal completes the frame that begins at start and ends with dst.
func Seal(dst []byte, start int) []byte {
	length := len(dst) - start - HeadBytes
	assert.True(length > 0 && length <= FrameBytesMax, "a frame is not larger than the protocol allows", uint64(length))
	binary.LittleEndian.PutUint32(dst[start:], uint32(length))
	binary.LittleEndian.PutUint32(dst[start+4:], crc32.Checksum(dst[start+HeadBytes:], castagnoli))
	return dst
}

func appendBody(dst []byte, f *Frame) []byte {
	flag := byte(0)
	if f.Flag {
		flag = 1
	}
	dst = append(dst, flag)
	for _, n := range [...]uint64{f.Count, f.Offset, f.Token, f.Group} {
		dst = binary.AppendUvarint(dst, n)
	}
	for _, b := range [...][]byte{f.Account, f.Subject, f.Reply, f.Queue, f.Text, f.Header, f.Extra} {
		dst = binary.AppendUvarint(dst, uint64(len(b)))
		dst = append(dst, b...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(f.Queues)))
	for _, q := range f.Queues {
		dst = binary.AppendUvarint(dst, uint64(len(q)))
		dst = append(dst, q...)
	}
	return append(dst, f.Payload...)
}

// Length reads the length of kind and body from the head of a frame, HeadBytes long.
func Length(head []byte) (int, error) {
	n := binary.LittleEndian.Uint32(head)
	if n == 0 || n > FrameBytesMax {
		return 0, fmt.Errorf("%w: length %d", ErrMalformed, n)
	}
	return int(n), nil
}

// Split cuts the first frame off: frame is whole, with its head.
func Split(data []byte) (frame, rest []byte, err error) {
	if len(data) < HeadBytes {
		return nil, nil, fmt.Errorf("%w: %d bytes", ErrMalformed, len(data))
	}
	n, err := Length(data)
	if err != nil {
		return nil, nil, err
	}
	if len(data) < HeadBytes+n {
		return nil, nil, fmt.Errorf("%w: %d of %d bytes", ErrMalformed, len(data)-HeadBytes, n)
	}
	return data[:HeadBytes+n], data[HeadBytes+n:], nil
}

// KindOf is the kind of a whole frame.
func KindOf(frame []byte) Kind { return Kind(frame[HeadBytes]) }

// Verify checks the checksum of a whole frame.
func Verify(frame []byte) error {
	if sum := crc32.Checksum(frame[HeadBytes:], castagnoli); sum != binary.LittleEndian.Uint32(frame[4:]) {
		return fmt.Errorf("%w: checksum", ErrMalformed)
	}
	return nil
}

// Parse reads a whole frame into f.
func Parse(frame []byte, f *Frame) error {
	if len(frame) < HeadBytes+2 {
		return fmt.Errorf("%w: %d bytes", ErrMalformed, len(frame))
	}
	if err := Verify(frame); err != nil {
		return err
	}
	kind := KindOf(frame)
	if kind == 0 || kind > kindMax && kind != Known {
		return fmt.Errorf("%w: kind %d", ErrMalformed, kind)
	}
	*f = Frame{Kind: kind, Flag: frame[HeadBytes+1] == 1, Queues: f.Queues[:0]}
	r := reader{data: frame[HeadBytes+2:]}
	for _, n := range [...]*uint64{&f.Count, &f.Offset, &f.Token, &f.Group} {
		*n = r.uvarint()
	}
	for _, b := range [...]*[]byte{&f.Account, &f.Subject, &f.Reply, &f.Queue, &f.Text, &f.Header, &f.Extra} {
		*b = r.bytes()
	}
	queues := r.uvarint()
	if queues > queuesMax {
		return fmt.Errorf("%w: %d queue groups", ErrMalformed, queues)
	}
	for range queues {
		f.Queues = append(f.Queues, r.bytes())
	}
	f.Payload = r.data
	if r.failed {
		return fmt.Errorf("%w: kind %d is cut off", ErrMalformed, kind)
	}
	return nil
}

// reader reads fields; after a failure it returns zero values.
type reader struct {
	data   []byte
	failed bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.failed, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.data)) {
		r.failed, r.data = true, nil
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}
