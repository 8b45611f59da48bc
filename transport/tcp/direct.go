package tcp

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// direct writes to a socket without waiting. One goroutine at a time may use it. Its fields are the argument and the
// results of the one closure, so that a write allocates nothing.
type direct struct {
	raw     syscall.RawConn
	buffers [][]byte
	written int
	err     error
	try     func(fd uintptr) bool
}

func (d *direct) open(sock *net.TCPConn) (err error) {
	d.raw, err = sock.SyscallConn()
	d.try = d.writeFD
	return err
}

// write hands the first VectorMax buffers to the kernel and returns how many bytes it took; EAGAIN when it takes none. A
// deadline that has passed is that of an earlier write with waiting; the next one sets its own, and so EAGAIN asks for it.
func (d *direct) write(buffers [][]byte) (int, error) {
	d.buffers, d.written, d.err = buffers[:min(len(buffers), VectorMax)], 0, nil
	if err := d.raw.Write(d.try); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, unix.EAGAIN
		}
		return 0, err
	}
	return d.written, d.err
}

// writeFD is the body of write; it returns true always, so that the runtime does not wait for the socket.
func (d *direct) writeFD(fd uintptr) bool {
	for {
		var n int
		var err error
		if len(d.buffers) == 1 {
			n, err = unix.Write(int(fd), d.buffers[0])
		} else {
			n, err = unix.Writev(int(fd), d.buffers)
		}
		if err == unix.EINTR {
			continue
		}
		d.written, d.err = max(n, 0), err
		return true
	}
}
