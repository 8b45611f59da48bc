package tcp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"weir/transport/peerwire"
)

// Queue adds whole frames to what is to be written, and owns them. It never blocks. When too much waits already the
// session ends, and nothing more is sent in it; a part of the queue that is half full is kept free of datagrams.
func (p *PeerConn) Queue(frames []byte) {
	p.mu.Lock()
	if p.closed || p.closing {
		p.mu.Unlock()
		return
	}
	if p.queued >= PeerQueueBytesMax {
		waiting := p.queued
		p.mu.Unlock()
		p.Close(fmt.Errorf("%w: %d bytes wait", ErrPeerSlow, waiting))
		return
	}
	if p.queued >= PeerQueueBytesMax/2 {
		frames = withoutDatagrams(frames)
	}
	if len(frames) > 0 {
		p.queue = append(p.queue, frames)
		p.queued += len(frames)
	}
	p.mu.Unlock()
	p.framesOut.Add(int64(count(frames)))
	p.bytesOut.Add(int64(len(frames)))
}

// withoutDatagrams takes the frames out that may be lost, in place.
func withoutDatagrams(frames []byte) []byte {
	kept := frames[:0]
	for len(frames) > 0 {
		frame, rest, err := peerwire.Split(frames)
		if err != nil {
			panic("frames of this server are malformed: " + err.Error())
		}
		if !peerwire.KindOf(frame).Datagram() {
			kept = append(kept, frame...)
		}
		frames = rest
	}
	return kept
}

// count counts frames of this server.
func count(frames []byte) (n int) {
	for len(frames) > 0 {
		_, rest, err := peerwire.Split(frames)
		if err != nil {
			break // as in withoutDatagrams, where it matters
		}
		n, frames = n+1, rest
	}
	return n
}

// Flush writes what is queued as far as the kernel takes it without waiting, and leaves the rest to a goroutine of the
// connection. Any goroutine may call it; if another is writing, that one takes the queue along.
func (p *PeerConn) Flush() {
	p.mu.Lock()
	if p.writing || p.closed || len(p.queue) == 0 {
		p.mu.Unlock()
		return
	}
	p.writing = true
	p.mu.Unlock()
	if p.direct.raw == nil {
		go p.writeBlocked(nil)
		return
	}
	for range FlushTurnsMax {
		taken := p.take()
		for len(taken) > 0 {
			n, err := p.direct.write(taken)
			if err == unix.EAGAIN {
				go p.writeBlocked(taken)
				return
			}
			if err != nil {
				p.Close(err)
				return
			}
			taken = p.advance(taken, n)
		}
		if taken == nil {
			return
		}
	}
	go p.writeBlocked(nil)
}

// take gives the writer what is queued. When that is nothing it returns nil and the writer's turn is over.
func (p *PeerConn) take() [][]byte {
	p.mu.Lock()
	clear(p.taken)
	p.taken, p.queue = p.queue, p.taken[:0]
	if len(p.taken) > 0 && !p.closed {
		p.mu.Unlock()
		return p.taken
	}
	p.writing = false
	closing, reason := p.closing, p.err
	p.mu.Unlock()
	if closing {
		p.Close(reason)
	}
	return nil
}

// advance drops n written bytes from the front of buffers and gives whole buffers back to their owner.
func (p *PeerConn) advance(buffers [][]byte, n int) [][]byte {
	p.mu.Lock()
	p.queued -= n
	p.mu.Unlock()
	for len(buffers) > 0 && n >= len(buffers[0]) {
		n -= len(buffers[0])
		p.options.Release(buffers[0])
		buffers = buffers[1:]
	}
	if n > 0 {
		buffers[0] = buffers[0][n:]
	}
	return buffers
}

// writeBlocked writes with waiting until nothing is queued, beginning with what the writer has taken already.
func (p *PeerConn) writeBlocked(taken [][]byte) {
	for {
		for len(taken) > 0 {
			n, err := p.writeChunk(taken)
			taken = p.advance(taken, n)
			if err != nil {
				p.Close(err)
				return
			}
		}
		if taken = p.take(); taken == nil {
			return
		}
	}
}

// writeChunk writes a piece of the first buffers, in one call, so that TLS makes large records. Once the connection is
// closing the deadline stays where it is.
func (p *PeerConn) writeChunk(buffers [][]byte) (int, error) {
	p.mu.Lock()
	if !p.closing {
		if err := p.sock.SetWriteDeadline(time.Now().Add(p.options.WriteDeadline)); err != nil {
			p.mu.Unlock()
			return 0, err
		}
	}
	p.mu.Unlock()
	chunk := buffers[0]
	if len(buffers) > 1 && len(chunk) < ChunkBytesMax {
		p.joined = p.joined[:0]
		for _, b := range buffers {
			p.joined = append(p.joined, b[:min(len(b), ChunkBytesMax-len(p.joined))]...)
			if len(p.joined) == ChunkBytesMax {
				break
			}
		}
		chunk = p.joined
	}
	return p.sock.Write(chunk[:min(len(chunk), ChunkBytesMax)])
}
