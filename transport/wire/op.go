// Package wire turns the bytes of the NATS client protocol into operations and operations into bytes.
//
// It promises that the way in which a byte stream is cut into chunks never changes the operations that come out, that
// memory stays within the limits given by the caller whatever the bytes are, and that neither parsing nor encoding a
// message allocates once buffers have grown to their working size. Both directions are here: Parser reads what a
// client sends, NewClientParser reads what a server sends (for clients that live in tests and in the simulator).
//
// It does not judge: subjects are not validated, permissions and handshake rules belong to the session, and the JSON
// of CONNECT and INFO is decoded only when asked for.
package wire

// Kind says which operation an Op is.
type Kind uint8

// The operations of both directions. A parser for one direction never yields the kinds of the other.
const (
	// KindConnect is CONNECT; Args is the JSON.
	KindConnect Kind = iota + 1
	// KindPub is PUB, or HPUB when Header is not nil; Subject, Reply, Header, Payload are set.
	KindPub
	// KindSub is SUB; Subject, Queue (nil without a group) and Sid are set.
	KindSub
	// KindUnsub is UNSUB; Sid and Max are set.
	KindUnsub
	// KindMsg is MSG, or HMSG when Header is not nil; Subject, Sid, Reply, Header, Payload are set. Only from a server.
	KindMsg
	// KindPing is PING.
	KindPing
	// KindPong is PONG.
	KindPong
	// KindInfo is INFO; Args is the JSON.
	KindInfo
	// KindOK is +OK.
	KindOK
	// KindErr is -ERR; Args is the text with its quotes.
	KindErr
)

// Op is one operation of the protocol. Its slices alias the chunk given to Feed or the parser's own memory and are
// valid until the next call of Feed; whoever keeps one copies it.
type Op struct {
	// Kind selects which of the other fields mean something; the rest are zero.
	Kind Kind
	// Max is the message count of UNSUB, 0 when it was absent or not a number: then the subscription ends at once.
	Max int
	// Subject is the published, subscribed or delivered subject, not validated, never empty.
	Subject []byte
	// Reply is the reply subject; nil when absent.
	Reply []byte
	// Queue is the queue group of SUB; nil when absent.
	Queue []byte
	// Sid is the client's name for a subscription, opaque, never empty.
	Sid []byte
	// Args is the JSON of CONNECT and INFO, or the text of -ERR.
	Args []byte
	// Header is the header block with its final blank line. It is nil for PUB and MSG and not nil, though possibly
	// empty, for HPUB and HMSG.
	Header []byte
	// Payload is the message body without header and without the closing CR LF.
	Payload []byte
}
