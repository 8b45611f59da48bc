package tcp

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"weir/transport/wire"
)

// The bounds of writing.
const (
	// VectorMax bounds the buffers that one system call writes.
	VectorMax = 64
	// ChunkBytesMax bounds what a blocked write hands over at a time: each chunk has a deadline of its own, so that a
	// slow client that keeps reading is not taken for a dead one.
	ChunkBytesMax = 256 << 10
	// FlushTurnsMax bounds the writes that Flush does on its caller's goroutine, which has work of its own.
	FlushTurnsMax = 16
)

// Queue adds bytes to what is to be written. The connection owns b until Written gives it back. It never blocks.
//
// Short bytes are copied to the end of the buffer before them if there is room, so that what waits for a slow client
// takes memory in proportion to its bytes, whatever the capacity of the buffers.
func (c *Conn) Queue(b []byte) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	if n := len(c.queue); n > 0 && len(b) <= cap(c.queue[n-1])-len(c.queue[n-1]) {
		c.queue[n-1] = append(c.queue[n-1], b...)
		c.mu.Unlock()
		c.handler.Written(c.id, 0, b)
		return
	}
	c.queue = append(c.queue, b)
	c.mu.Unlock()
}

// Flush writes what is queued as far as the kernel takes it without waiting, and leaves the rest to the connection's
// own goroutine. Any goroutine may call it; if another is writing, that one takes the queue along.
func (c *Conn) Flush() {
	starts, waits := c.startWriting()
	if !starts {
		return
	}
	if waits {
		go c.writeBlocked(nil)
		return
	}
	for range FlushTurnsMax {
		taken := c.take()
		if len(taken) == 0 {
			return
		}
		left, err := c.tryWrite(taken)
		if err != nil {
			c.end(wire.WriteError)
			return
		}
		if len(left) > 0 {
			go c.writeBlocked(left)
			return
		}
	}
	go c.writeBlocked(nil)
}

// startWriting makes the caller the one who writes, if there is something to write and nobody does. waits says that this
// can not be done without waiting.
func (c *Conn) startWriting() (starts, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing || c.held || c.closed || len(c.queue) == 0 {
		return false, false
	}
	c.writing = true
	return true, c.protected
}

// take gives the writer what is queued, and ends the turn of the writer, and what was to end with it, when that is
// nothing.
func (c *Conn) take() [][]byte {
	c.mu.Lock()
	clear(c.taken)
	c.taken, c.queue = c.queue, c.taken[:0]
	if len(c.taken) > 0 && !c.closed {
		c.mu.Unlock()
		return c.taken
	}
	c.writing = false
	closing := c.closing
	if c.protected && !closing && !c.closed {
		// The deadline was of what is written now. What the layers below answer by themselves has none; it would fail once
		// that one has passed. If it can not be changed the socket is closed, which shows at the reader.
		_ = c.sock.SetWriteDeadline(time.Time{})
	}
	c.mu.Unlock()
	if closing {
		c.end(c.reason)
	}
	return nil
}

// tryWrite writes without waiting and returns what the kernel did not take.
func (c *Conn) tryWrite(buffers [][]byte) ([][]byte, error) {
	for len(buffers) > 0 {
		n, err := c.direct.write(buffers)
		if err == unix.EAGAIN {
			return buffers, nil
		}
		if err != nil {
			return buffers, err
		}
		buffers = c.advance(buffers, n)
	}
	return nil, nil
}

// advance reports n bytes as written and drops them from the front of buffers.
func (c *Conn) advance(buffers [][]byte, n int) [][]byte {
	for len(buffers) > 0 && n >= len(buffers[0]) {
		c.handler.Written(c.id, len(buffers[0]), buffers[0])
		n -= len(buffers[0])
		buffers = buffers[1:]
	}
	if n > 0 {
		buffers[0] = buffers[0][n:]
		c.handler.Written(c.id, n, nil)
	}
	return buffers
}

// writeBlocked writes with waiting until nothing is queued, beginning with what the writer has taken already.
func (c *Conn) writeBlocked(taken [][]byte) {
	for {
		for len(taken) > 0 {
			n, err := c.writeChunk(taken[0])
			if n > 0 {
				taken = c.advance(taken, n)
			}
			if err != nil {
				reason := wire.WriteError
				if errors.Is(err, os.ErrDeadlineExceeded) {
					reason = wire.SlowConsumerWriteDeadline
				}
				c.end(reason)
				return
			}
		}
		if taken = c.take(); len(taken) == 0 {
			return
		}
	}
}

// writeChunk writes a piece of b. Once the connection is closing the deadline stays where it is.
func (c *Conn) writeChunk(b []byte) (int, error) {
	c.mu.Lock()
	if !c.closing {
		if err := c.sock.SetWriteDeadline(time.Now().Add(c.deadline)); err != nil {
			c.mu.Unlock()
			return 0, err
		}
	}
	sock := c.sock
	c.mu.Unlock()
	return sock.Write(b[:min(len(b), ChunkBytesMax)])
}
