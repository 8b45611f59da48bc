package tcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsflate"
	"github.com/klauspost/compress/flate"

	"weir/transport/wire"
)

// The bounds of WebSockets.
const (
	// InflatedBytesMax bounds what a compressed message is when it is not. It is read in pieces, whatever its size.
	InflatedBytesMax = 64 << 20
	// compressedBytesMin is from how many bytes on compression is worth while.
	compressedBytesMin = 64
	// joinedBytesMax bounds the payload that is copied behind its header, to be written by one call.
	joinedBytesMax = 16 << 10
	// goodbye bounds the time that the last frame takes.
	goodbye = time.Second
)

// framed is a socket on which bytes travel in the frames of a WebSocket. One goroutine may read while others write; where
// messages begin and end means nothing to either side.
type framed struct {
	net.Conn
	in         *bufio.Reader
	compresses bool
	masked     bool // clients have to mask what they send

	// The reader's: the frame that is being read.
	header     ws.Header
	left       int64
	offset     int  // of what comes next, in the payload
	compressed bool // the message is
	inflater   *wsflate.Reader
	inflated   int64 // bytes of the message so far

	mu      sync.Mutex // guards what follows, and writing
	joined  []byte
	deflate bytes.Buffer
	ended   bool // the last frame was sent, or there can be none

	pings pings
}

func newFramed(sock net.Conn, compresses, masked bool) *framed {
	// Before the first frame is as after the last one of a message.
	return &framed{Conn: sock, in: bufio.NewReaderSize(sock, ReadBufferMin), compresses: compresses, masked: masked, header: ws.Header{Fin: true}}
}

// frameError is what a client did wrong, and the status that tells it so.
type frameError struct {
	status ws.StatusCode
	err    error
}

// Error returns what.
func (e *frameError) Error() string { return "websocket: " + e.err.Error() }

// Unwrap returns what as an error.
func (e *frameError) Unwrap() error { return e.err }

var errInflated = errors.New("a message is too long")

// Read returns what is next in messages of the client. io.EOF is the end that the client announced.
func (f *framed) Read(p []byte) (int, error) {
	for {
		n, err := f.readMessage(p)
		switch {
		case n > 0:
			return n, nil
		case err == io.EOF: // only of the message
			if err := f.nextFrame(); err != nil {
				return 0, f.failed(err)
			}
			f.inflated = 0
			if f.compressed {
				f.beginInflating()
			}
		case err != nil:
			return 0, f.failed(err)
		}
	}
}

// failed tells the client what it did wrong.
func (f *framed) failed(err error) error {
	var wrong *frameError
	if errors.As(err, &wrong) {
		f.sayGoodbye(wrong.status, wrong.err.Error())
	}
	return err
}

// readMessage reads from the present message; io.EOF is its end.
func (f *framed) readMessage(p []byte) (int, error) {
	if !f.compressed {
		return f.readFrames(p)
	}
	n, err := f.inflater.Read(p)
	if f.inflated += int64(n); f.inflated > InflatedBytesMax {
		return 0, &frameError{ws.StatusMessageTooBig, errInflated}
	}
	var corrupt flate.CorruptInputError
	cut := err == io.ErrUnexpectedEOF && f.header.Fin && f.left == 0 // the message is over, and not the connection
	switch {
	case n > 0:
		return n, nil // an error comes again
	case errors.As(err, &corrupt) || cut:
		return 0, &frameError{ws.StatusInvalidFramePayloadData, err}
	case err == io.EOF:
		// What follows its last block in the message means nothing.
		f.compressed = false
		if _, err := io.Copy(io.Discard, frameReader{f}); err != nil {
			return 0, err
		}
	}
	return n, err
}

func (f *framed) beginInflating() {
	if f.inflater == nil {
		f.inflater = wsflate.NewReader(frameReader{f}, func(r io.Reader) wsflate.Decompressor { return &resettable{flate.NewReader(r)} })
		return
	}
	f.inflater.Reset(frameReader{f})
}

// resettable is a decompressor in the form that its user knows.
type resettable struct{ io.ReadCloser }

// Reset begins anew with another source.
func (r *resettable) Reset(src io.Reader) {
	// It has no dictionary, without which it can not fail.
	_ = r.ReadCloser.(flate.Resetter).Reset(src, nil)
}

// frameReader reads the payloads of the present message.
type frameReader struct{ f *framed }

// Read implements io.Reader.
func (r frameReader) Read(p []byte) (int, error) { return r.f.readFrames(p) }

// readFrames reads from the payloads of the present message; io.EOF is its end.
func (f *framed) readFrames(p []byte) (int, error) {
	for f.left == 0 {
		if f.header.Fin {
			return 0, io.EOF
		}
		if err := f.nextFrame(); err != nil {
			return 0, unfinished(err)
		}
	}
	n, err := f.in.Read(p[:min(int64(len(p)), f.left)])
	if f.header.Masked {
		ws.Cipher(p[:n], f.header.Mask, f.offset)
	}
	f.left -= int64(n)
	f.offset += n
	if n > 0 {
		err = nil
	}
	return n, unfinished(err)
}

// unfinished tells the end of the connection from that of a message.
func unfinished(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// nextFrame reads up to the payload of the next frame with data, and answers what comes before it. io.EOF is the end that the
// client announced.
func (f *framed) nextFrame() error {
	for {
		h, err := ws.ReadHeader(f.in)
		if errors.Is(err, ws.ErrHeaderLengthMSB) || errors.Is(err, ws.ErrHeaderLengthUnexpected) {
			return &frameError{ws.StatusProtocolError, err}
		}
		if err != nil {
			return err
		}
		if err := f.check(h); err != nil {
			return &frameError{ws.StatusProtocolError, err}
		}
		if !h.OpCode.IsControl() {
			if h.OpCode != ws.OpContinuation {
				f.compressed = h.Rsv1()
			}
			f.header, f.left, f.offset = h, h.Length, 0
			return nil
		}
		if err := f.control(h); err != nil {
			return err
		}
	}
}

// check reports what is wrong with a header at this point.
func (f *framed) check(h ws.Header) error {
	var state ws.State
	if f.masked {
		state = state.Set(ws.StateServerSide)
	}
	if !f.header.Fin {
		state = state.Set(ws.StateFragmented)
	}
	if first := h.OpCode == ws.OpText || h.OpCode == ws.OpBinary; f.compresses && first && !h.Rsv2() && !h.Rsv3() {
		state = state.Set(ws.StateExtended)
	}
	return ws.CheckHeader(h, state)
}

// control takes a frame that is not data. Its length has been checked.
func (f *framed) control(h ws.Header) error {
	payload := make([]byte, h.Length)
	if _, err := io.ReadFull(f.in, payload); err != nil {
		return unfinished(err)
	}
	if h.Masked {
		ws.Cipher(payload, h.Mask, 0)
	}
	switch h.OpCode {
	case ws.OpPing:
		if f.pings.add(payload) {
			go f.answerPings()
		}
	case ws.OpClose:
		return f.leave(payload)
	}
	return nil // a pong
}

// leave answers the last frame of a client.
func (f *framed) leave(payload []byte) error {
	switch code, reason := ws.ParseCloseFrameData(payload); {
	case len(payload) == 0:
		f.sayGoodbye(0, "")
	case len(payload) == 1:
		return &frameError{ws.StatusProtocolError, errors.New("close frame of one byte")}
	default:
		if err := ws.CheckCloseFrameData(code, reason); err != nil {
			return &frameError{ws.StatusProtocolError, err}
		}
		f.sayGoodbye(code, reason)
	}
	return io.EOF
}

// Write sends p as one message.
func (f *framed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return 0, net.ErrClosed
	}
	h, payload := ws.Header{Fin: true, OpCode: ws.OpBinary}, p
	if f.compresses && len(p) >= compressedBytesMin {
		if err := f.compress(p); err != nil {
			return 0, err
		}
		h.Rsv, payload = ws.Rsv(true, false, false), f.deflate.Bytes()
	}
	if err := f.writeFrame(h, payload); err != nil {
		return 0, err
	}
	if f.deflate.Cap() > 2*joinedBytesMax {
		f.deflate = bytes.Buffer{}
	}
	return len(p), nil
}

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic("a level that the library names: " + err.Error())
	}
	return w
}}

// syncTailBytes is the length of what each flush ends with, and compressed messages do not.
const syncTailBytes = 4

// compress leaves p compressed in f.deflate.
func (f *framed) compress(p []byte) error {
	f.deflate.Reset()
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&f.deflate)
	if _, err := w.Write(p); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	f.deflate.Truncate(f.deflate.Len() - syncTailBytes)
	return nil
}

// writeFrame writes a frame; f.mu is held. After a failure nobody knows where the next one would begin.
func (f *framed) writeFrame(h ws.Header, payload []byte) error {
	h.Length = int64(len(payload))
	var head bytes.Buffer
	if err := ws.WriteHeader(&head, h); err != nil {
		return err
	}
	f.joined = append(f.joined[:0], head.Bytes()...)
	var err error
	if len(payload) <= joinedBytesMax {
		f.joined = append(f.joined, payload...)
		_, err = f.Conn.Write(f.joined)
	} else {
		parts := net.Buffers{f.joined, payload}
		_, err = parts.WriteTo(f.Conn)
	}
	f.ended = f.ended || err != nil
	return err
}

// sayGoodbye sends the last frame, once; a status of 0 says nothing more.
func (f *framed) sayGoodbye(status ws.StatusCode, text string) {
	// If the deadline can not be set the socket is closed, and the write fails.
	_ = f.Conn.SetWriteDeadline(time.Now().Add(goodbye))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writePongs()
	if f.ended {
		return
	}
	var body []byte
	if status != 0 {
		body = ws.NewCloseFrameBody(status, text[:min(len(text), ws.MaxControlFramePayloadSize-2)])
	}
	// The client may be gone already.
	_ = f.writeFrame(ws.Header{Fin: true, OpCode: ws.OpClose}, body)
	f.ended = true
}

// closeFor ends the connection and tells the client why.
func (f *framed) closeFor(reason wire.Reason) error {
	f.sayGoodbye(statusOf(reason), reason.String())
	f.linger()
	return f.Conn.Close()
}

// lingerBytesMax bounds what is read from a client that is on its way out.
const lingerBytesMax = 1 << 20

// linger waits until the client has closed its side too, but not long: a socket that is closed while the client still writes
// makes the client lose what it was told last.
func (f *framed) linger() {
	half, can := f.Conn.(interface{ CloseWrite() error })
	if !can || half.CloseWrite() != nil || f.Conn.SetReadDeadline(time.Now().Add(goodbye)) != nil {
		return
	}
	// Whatever comes, and however it ends, nobody is interested any more.
	_, _ = io.Copy(io.Discard, io.LimitReader(f.Conn, lingerBytesMax))
}

// statusOf is the status by which clients are told why they are closed.
func statusOf(reason wire.Reason) ws.StatusCode {
	switch reason {
	case wire.ClientClosed:
		return ws.StatusNormalClosure
	case wire.AuthenticationTimeout, wire.AuthenticationFailure, wire.SlowConsumerPendingBytes, wire.SlowConsumerWriteDeadline,
		wire.MaxAccountConnectionsExceeded, wire.MaxConnectionsExceeded, wire.MaxControlLineExceeded, wire.MaxSubscriptionsExceeded,
		wire.MissingAccount, wire.AuthenticationExpired, wire.CredentialsRevoked:
		return ws.StatusPolicyViolation
	case wire.ParseError, wire.ProtocolViolation, wire.BadClientProtocolVersion:
		return ws.StatusProtocolError
	case wire.MaxPayloadExceeded:
		return ws.StatusMessageTooBig
	case wire.WriteError, wire.ReadError, wire.StaleConnection, wire.ServerShutdown:
		return ws.StatusGoingAway
	}
	return ws.StatusInternalServerError
}
