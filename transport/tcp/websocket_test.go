package tcp

import (
	"bufio"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"weir/transport/wire"
)

// web is a Handler that remembers what came over a WebSocket.
type web struct {
	*recorder
	mu      sync.Mutex
	settled []Handshake
	ops     []string
	refused []wire.Failure
	greeted chan struct{}
}

func (w *web) Ops(_ uint64, ops []wire.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range ops {
		w.ops = append(w.ops, fmt.Sprintf("%s %s", ops[i].Subject, ops[i].Payload))
	}
}

func (w *web) Refused(_ uint64, failure wire.Failure) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = append(w.refused, failure)
}

func (w *web) Secured(_ uint64, h Handshake) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = append(w.settled, h)
	if h.Err == nil {
		close(w.greeted)
	}
}

// socket returns a connection that is to become a WebSocket, and the client's side.
func socket(t *testing.T, how *WebSockets) (*Conn, *net.TCPConn, *web) {
	t.Helper()
	c, client, r := pair(t, time.Minute)
	w := &web{recorder: r, greeted: make(chan struct{})}
	c.handler = w
	if how.Timeout == 0 {
		how.Timeout = time.Minute
	}
	c.Upgrade(how)
	return c, client, w
}

const request = "GET /any HTTP/1.1\r\nHost: example.org\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n" +
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"

// TestRequestsAreJudged sends requests that lack something, or ask from the wrong place.
func TestRequestsAreJudged(t *testing.T) {
	without := func(header string) string {
		var kept []string
		for line := range strings.SplitAfterSeq(request, "\r\n") {
			if !strings.HasPrefix(line, header) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	origin := func(text string) string { return request + "Origin: " + text + "\r\n" }
	mine, err := ParseOrigin("https://App.example.com")
	if err != nil {
		t.Fatal(err)
	}
	same, listed := WebSockets{SameOrigin: true}, WebSockets{Origins: []Origin{mine}}
	for name, c := range map[string]struct {
		how     WebSockets
		request string
		status  int
		text    string
	}{
		"good":                {request: request, status: 101},
		"post":                {request: strings.Replace(request, "GET", "POST", 1), status: 405, text: "request method must be GET"},
		"no host":             {request: without("Host"), status: 400, text: "'Host' missing in request"},
		"no upgrade":          {request: without("Upgrade"), status: 400, text: "invalid value for header 'Upgrade'"},
		"no connection":       {request: without("Connection"), status: 400, text: "invalid value for header 'Connection'"},
		"no key":              {request: without("Sec-WebSocket-Key"), status: 400, text: "key missing"},
		"short key":           {request: strings.Replace(request, "dGhlIHNhbXBsZSBub25jZQ==", "dGhl", 1), status: 400, text: "invalid websocket key"},
		"version":             {request: strings.Replace(request, "13", "8", 1), status: 400, text: "invalid version"},
		"mqtt":                {request: strings.Replace(request, "/any", "/mqtt", 1), status: 404, text: "mqtt websocket endpoint not enabled"},
		"leafnode":            {request: strings.Replace(request, "/any", "/x/leafnode", 1), status: 404, text: "leafnode websocket endpoint not enabled"},
		"same origin":         {how: same, request: origin("http://Example.org"), status: 101},
		"same origin, port":   {how: same, request: origin("http://example.org:8080"), status: 403, text: "origin not allowed: not same origin"},
		"same origin, tls":    {how: same, request: origin("https://example.org"), status: 403, text: "origin not allowed: not same origin"},
		"no browser":          {how: same, request: request, status: 101},
		"listed":              {how: listed, request: origin("https://app.example.com:443"), status: 101},
		"not listed":          {how: listed, request: origin("http://app.example.com"), status: 403, text: "origin not allowed: not in the allowed list"},
		"origin is no URL":    {how: listed, request: origin("null"), status: 403, text: "origin not allowed: parse \"null\": invalid URI for request"},
		"impatient":           {request: request + "\r\n\x81\x00", status: 400, text: "client sent data before handshake is complete"},
		"any origin":          {request: origin("http://elsewhere"), status: 101},
		"headers without end": {request: request + "X: " + strings.Repeat("x", RequestBytesMax), text: "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, client, w := socket(t, &c.how)
			go conn.Serve()
			if _, err := client.Write([]byte(c.request + "\r\n")); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(client), nil)
			switch {
			case c.status == 0:
				if err == nil {
					t.Fatalf("got %s", answer.Status)
				}
			case err != nil || answer.StatusCode != c.status:
				t.Fatalf("got %v, %v", answer, err)
			case c.status == http.StatusSwitchingProtocols:
				if got := answer.Header.Get("Sec-WebSocket-Accept"); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
					t.Errorf("accepted with %q", got)
				}
				client.Close()
				<-w.closed
				return
			}
			<-w.closed
			if len(w.settled) != 1 || w.settled[0].Err == nil || w.settled[0].Err.Error() != "websocket handshake error: "+c.text {
				t.Errorf("handshake: %+v", w.settled)
			}
		})
	}
}

// dial makes the connection a WebSocket.
func dial(t *testing.T, client *net.TCPConn, more string) *bufio.Reader {
	t.Helper()
	if _, err := client.Write([]byte(request + more + "\r\n")); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(client)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	return in
}

// readFrame reads a frame of the server.
func readFrame(in io.Reader) (f ws.Frame, err error) {
	if f.Header, err = ws.ReadHeader(in); err == nil {
		f.Payload = make([]byte, f.Header.Length)
		_, err = io.ReadFull(in, f.Payload)
	}
	return f, err
}

// frame is a frame of a client.
func frame(op ws.OpCode, fin bool, payload string) []byte {
	f := ws.NewFrame(op, fin, []byte(payload))
	return ws.MustCompileFrame(ws.MaskFrameWith(f, [4]byte{1, 2, 3, 4}))
}

func deflated(text string) string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	w.Write([]byte(text))
	w.Flush()
	return strings.TrimSuffix(b.String(), "\x00\x00\xff\xff")
}

// ended is text compressed with a last block.
func ended(text string) string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func compressed(op ws.OpCode, fin bool, payload string) []byte {
	b := frame(op, fin, payload)
	b[0] |= 0x40
	return b
}

// TestFramesCarryTheProtocol has messages in one piece, in fragments with control frames between them, of no length,
// compressed and not.
func TestFramesCarryTheProtocol(t *testing.T) {
	conn, client, w := socket(t, &WebSockets{Compression: true, Headers: []Header{{"X-A", "b"}}, Cookies: Credentials{User: "u", JWT: "j"}})
	go conn.Serve()
	in := dial(t, client, "Cookie: j=token; u=joe; other=x\r\nSec-WebSocket-Extensions: x-y, permessage-deflate; client_max_window_bits\r\n")
	big := strings.Repeat("0123456789", 20_000)
	small := deflated("PUB e 5\r\nhello\r\n")
	for _, f := range [][]byte{
		frame(ws.OpBinary, true, "PUB a 1\r\nx\r\nPUB b 4\r\nlo"),
		frame(ws.OpText, true, "ng\r\n"),
		frame(ws.OpBinary, false, "PUB c 2"), frame(ws.OpPing, true, "are you there"), frame(ws.OpContinuation, false, ""),
		frame(ws.OpPong, true, ""), frame(ws.OpContinuation, true, "\r\nxy\r\n"), frame(ws.OpBinary, true, ""),
		frame(ws.OpBinary, true, fmt.Sprintf("PUB d %d\r\n%s\r\n", len(big), big)),
		compressed(ws.OpBinary, false, small[:3]), frame(ws.OpPing, true, "2"), frame(ws.OpContinuation, true, small[3:]),
		compressed(ws.OpText, true, deflated(fmt.Sprintf("PUB f %d\r\n%s\r\n", len(big), big))),
		compressed(ws.OpText, true, deflated("")),
		compressed(ws.OpText, true, ended("PUB g 0\r\n\r\n")+"x"), frame(ws.OpClose, true, "\x03\xe8bye"),
	} {
		if _, err := client.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []ws.Frame{
		ws.NewPongFrame([]byte("are you there")), ws.NewPongFrame([]byte("2")), ws.NewCloseFrame(ws.NewCloseFrameBody(1000, "bye")),
	} {
		got, err := readFrame(in)
		if err != nil || got.Header != want.Header || !bytes.Equal(got.Payload, want.Payload) {
			t.Fatalf("got %+v, %v; want %+v", got, err, want)
		}
	}
	<-w.closed
	if want := []string{"a x", "b long", "c xy", "d " + big, "e hello", "f " + big, "g "}; !slices.Equal(w.ops, want) || len(w.refused) != 0 {
		t.Errorf("%d operations, refused %v", len(w.ops), w.refused)
	}
	if h := w.settled[0]; h.Web != (Credentials{User: "joe", JWT: "token"}) {
		t.Errorf("cookies: %+v", h.Web)
	}
	if w.reasons[0] != wire.ClientClosed {
		t.Errorf("closed: %v", w.reasons)
	}
}

// TestFramesThatAreNoneEndTheConnection sends what the protocol of WebSockets forbids. The client is told what.
func TestFramesThatAreNoneEndTheConnection(t *testing.T) {
	unmasked := ws.MustCompileFrame(ws.NewBinaryFrame([]byte("PING\r\n")))
	flagged := frame(ws.OpBinary, true, "x")
	flagged[0] |= 0x20
	long := frame(ws.OpPing, true, "")
	long[1] = 0x80 | 126
	trailing := deflated("PING\r\n")
	stored := "\x00\x20\x00\xdf\xff" // begins a block of 32 bytes as they are
	for name, c := range map[string]struct {
		compresses bool
		sent       []byte
		status     ws.StatusCode
		text       string
	}{
		"unmasked":              {false, unmasked, 1002, string(ws.ErrProtocolMaskRequired)},
		"unknown operation":     {false, frame(3, true, ""), 1002, string(ws.ErrProtocolOpCodeReserved)},
		"reserved bit":          {true, flagged, 1002, string(ws.ErrProtocolNonZeroRsv)},
		"not asked for":         {false, compressed(ws.OpBinary, true, trailing), 1002, string(ws.ErrProtocolNonZeroRsv)},
		"compressed ping":       {true, compressed(ws.OpPing, true, ""), 1002, string(ws.ErrProtocolNonZeroRsv)},
		"compressed rest":       {true, append(frame(ws.OpText, false, ""), compressed(ws.OpContinuation, true, "")...), 1002, string(ws.ErrProtocolNonZeroRsv)},
		"long ping":             {false, append(long, make([]byte, 4)...), 1002, string(ws.ErrProtocolControlPayloadOverflow)},
		"ping in parts":         {false, frame(ws.OpPing, false, ""), 1002, string(ws.ErrProtocolControlNotFinal)},
		"rest of nothing":       {false, frame(ws.OpContinuation, true, ""), 1002, string(ws.ErrProtocolContinuationUnexpected)},
		"message in message":    {false, append(frame(ws.OpText, false, ""), frame(ws.OpText, true, "")...), 1002, string(ws.ErrProtocolContinuationExpected)},
		"endless length":        {false, []byte{0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4}, 1002, ws.ErrHeaderLengthMSB.Error()},
		"close of one byte":     {false, frame(ws.OpClose, true, "x"), 1002, "close frame of one byte"},
		"close without meaning": {false, frame(ws.OpClose, true, "\x03\xee"), 1002, string(ws.ErrProtocolStatusCodeApplicationLevel)},
		"corrupt":               {true, compressed(ws.OpText, true, "\xff\xff\xff"), 1007, "flate: corrupt input before offset"},
		"cut short":             {true, compressed(ws.OpText, true, stored+"PING"), 1007, io.ErrUnexpectedEOF.Error()},
		"cut short in parts":    {true, append(compressed(ws.OpText, false, stored), frame(ws.OpContinuation, true, "")...), 1007, io.ErrUnexpectedEOF.Error()},
		"too much":              {true, compressed(ws.OpText, true, deflated(strings.Repeat("\r\n", InflatedBytesMax/2+1))), 1009, errInflated.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			f := newFramed(here, c.compresses, true)
			go func() {
				there.Write(c.sent)
			}()
			ended := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, f)
				ended <- err
			}()
			got, err := readFrame(there)
			if err != nil {
				t.Fatal(err)
			}
			code, text := ws.ParseCloseFrameData(got.Payload)
			if got.Header.OpCode != ws.OpClose || code != c.status || !strings.HasPrefix(text, c.text) {
				t.Errorf("got %d %q", code, text)
			}
			var wrong *frameError
			if err := <-ended; !errors.As(err, &wrong) {
				t.Errorf("got %v", err)
			}
			there.Close()
		})
	}
}

// TestWhatIsQueuedBeforeTheUpgradeIsFramed closes a connection before it is a WebSocket. The client gets what was queued, and
// why, as soon as it is one.
func TestWhatIsQueuedBeforeTheUpgradeIsFramed(t *testing.T) {
	for _, compression := range []bool{false, true} {
		conn, client, w := socket(t, &WebSockets{Compression: compression})
		text := "-ERR 'maximum connections exceeded'\r\n" + strings.Repeat("x", 2*joinedBytesMax)
		conn.Queue([]byte(text))
		conn.Flush()
		conn.Close(wire.MaxConnectionsExceeded, false)
		go conn.Serve()
		in := dial(t, client, "Sec-WebSocket-Extensions: permessage-deflate\r\n")
		got, err := readFrame(in)
		if err != nil || got.Header.Rsv1() != compression {
			t.Fatal(got.Header, err)
		}
		payload := got.Payload
		if compression {
			if len(payload) > len(text)/10 {
				t.Errorf("%d bytes are %d compressed", len(text), len(payload))
			}
			payload, _ = io.ReadAll(flate.NewReader(bytes.NewReader(append(payload, 0, 0, 0xff, 0xff, 1, 0, 0, 0xff, 0xff))))
		}
		if string(payload) != text {
			t.Errorf("got %d bytes, want %d", len(payload), len(text))
		}
		last, err := readFrame(in)
		if code, why := ws.ParseCloseFrameData(last.Payload); err != nil || code != 1008 || why != wire.MaxConnectionsExceeded.String() {
			t.Errorf("got %v %q, %v", code, why, err)
		}
		<-w.closed
	}
}

// scripted is a socket on which a client sends given bytes, a few at a time.
type scripted struct {
	net.Conn
	sent  []byte
	chunk int
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.sent) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.sent[:min(s.chunk, len(s.sent))])
	s.sent = s.sent[n:]
	return n, nil
}

func (s *scripted) Write(p []byte) (int, error)      { return len(p), nil }
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }

// FuzzFrames feeds arbitrary frames: however they are cut, the same bytes come out, and the same end.
func FuzzFrames(f *testing.F) {
	f.Add(frame(ws.OpText, true, "PING\r\n"), true, uint8(3))
	f.Add(append(frame(ws.OpText, false, "PI"), frame(ws.OpContinuation, true, "NG\r\n")...), false, uint8(1))
	f.Add(append(compressed(ws.OpText, true, deflated("PING\r\n")), frame(ws.OpClose, true, "")...), true, uint8(2))
	f.Add([]byte{0x82, 0xff, 0xff}, true, uint8(9))
	f.Fuzz(func(t *testing.T, sent []byte, masked bool, chunk uint8) {
		read := func(chunk int) (string, string) {
			socket := newFramed(&scripted{sent: sent, chunk: chunk}, true, masked)
			out, err := io.ReadAll(io.LimitReader(socket, 1<<20))
			if err != nil {
				return string(out), err.Error()
			}
			return string(out), ""
		}
		whole, end := read(1 << 20)
		if cut, cutEnd := read(int(chunk) + 1); cut != whole || cutEnd != end {
			t.Errorf("%q, %s; in pieces %q, %s", whole, end, cut, cutEnd)
		}
	})
}

// FuzzRequest feeds arbitrary requests: each is granted or refused.
func FuzzRequest(f *testing.F) {
	f.Add(request + "\r\n")
	f.Add(strings.Replace(request, "Upgrade", "Cookie: a=b; c\r\nOrigin: http://[::1\r\nUpgrade", 1) + "\r\n")
	how := WebSockets{SameOrigin: true, Compression: true, Cookies: Credentials{User: "a"}}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		reason := how.judge(r, false)
		if reason != nil {
			if answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(reason.answer())), nil); err != nil || answer.StatusCode != reason.status {
				t.Errorf("the answer to %q is %q", text, reason.answer())
			}
			return
		}
		how.credentials(r)
		if answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(how.accept(r, true, true))), nil); err != nil || answer.StatusCode != 101 {
			t.Errorf("the answer to %q: %v", text, err)
		}
	})
}

// expiring is a socket on which the deadline of a write has passed as soon as that is done.
type expiring struct{ net.Conn }

// Write implements net.Conn.
func (e expiring) Write(p []byte) (int, error) {
	n, err := e.Conn.Write(p)
	return n, errors.Join(err, e.SetWriteDeadline(time.Unix(1, 0)))
}

// TestControlFramesAreAnsweredHoweverLongAgoTheLastWriteWas has a client ping when the deadline of what was sent to it last
// has passed.
func TestControlFramesAreAnsweredHoweverLongAgoTheLastWriteWas(t *testing.T) {
	conn, client, w := socket(t, &WebSockets{})
	conn.sock = expiring{conn.sock}
	go conn.Serve()
	in := dial(t, client, "")
	<-w.greeted
	conn.Queue([]byte("PING\r\n"))
	if starts, waits := conn.startWriting(); !starts || !waits {
		t.Fatal("nobody else writes, and a WebSocket may have to wait")
	}
	conn.writeBlocked(nil)
	if f, err := readFrame(in); err != nil || string(f.Payload) != "PING\r\n" {
		t.Fatal(f, err)
	}
	if _, err := client.Write(frame(ws.OpPing, true, "still there?")); err != nil {
		t.Fatal(err)
	}
	if f, err := readFrame(in); err != nil || f.Header.OpCode != ws.OpPong || string(f.Payload) != "still there?" {
		t.Error(f, err)
	}
}

// TestAClientThatPingsAndDoesNotReadIsRead has a client ping, and publish, while it does not read what is on its way to it: if
// the server waited with the answer, and so with reading, a client that reads once it has written never would.
func TestAClientThatPingsAndDoesNotReadIsRead(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	for _, end := range []net.Conn{here, there} { // for a server that does wait
		if err := end.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	f := newFramed(here, false, true)
	written := make(chan error, 1)
	go func() {
		_, err := f.Write([]byte(strings.Repeat("MSG", 10_000)))
		written <- err
	}()
	in := bufio.NewReaderSize(there, 16)
	if _, err := in.Peek(1); err != nil { // the writer is in the middle of it
		t.Fatal(err)
	}
	const pings = pingsMax + 3
	go func() {
		for i := range pings {
			there.Write(frame(ws.OpPing, true, fmt.Sprint(i)))
		}
		there.Write(frame(ws.OpBinary, true, "PING\r\n"))
	}()
	got := make([]byte, 10)
	if n, err := f.Read(got); err != nil || string(got[:n]) != "PING\r\n" {
		t.Fatalf("read %q, %v", got[:n], err)
	}
	if message, err := readFrame(in); err != nil || len(message.Payload) != 30_000 || <-written != nil {
		t.Fatal(message.Header, err)
	}
	for i := pings - pingsMax; i < pings; i++ { // the oldest were too many
		if pong, err := readFrame(in); err != nil || pong.Header.OpCode != ws.OpPong || string(pong.Payload) != fmt.Sprint(i) {
			t.Fatal(i, pong, err)
		}
	}
}
