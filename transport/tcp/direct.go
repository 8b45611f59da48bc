package tcp

import (
	"errors"
	"io"
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
	vector  [VectorMax]syscall.Iovec
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
			n, err = rawWrite(fd, d.buffers[0])
		} else {
			n, err = rawWritev(fd, d.vector[:], d.buffers)
		}
		if err == unix.EINTR {
			continue
		}
		d.written, d.err = max(n, 0), err
		return true
	}
}

// directReader reads from a socket, waiting until there is something. One goroutine at a time may use it.
type directReader struct {
	raw    syscall.RawConn
	buffer []byte
	read   int
	err    error
	try    func(fd uintptr) bool
}

// newDirectReader returns the reader of a connection that is not protected; else it returns the connection itself.
func newDirectReader(sock net.Conn) (io.Reader, error) {
	plain, ok := sock.(*net.TCPConn)
	if !ok {
		return sock, nil
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return nil, err
	}
	d := &directReader{raw: raw}
	d.try = d.readFD
	return d, nil
}

// Read implements io.Reader.
func (d *directReader) Read(p []byte) (int, error) {
	d.buffer, d.read, d.err = p, 0, nil
	err := d.raw.Read(d.try)
	d.buffer = nil
	if err == nil {
		err = d.err
	}
	if err == nil && d.read == 0 && len(p) > 0 {
		err = io.EOF
	}
	return d.read, err
}

// readFD is the body of Read; false has the runtime wait for the socket.
func (d *directReader) readFD(fd uintptr) bool {
	for {
		n, err := rawRead(fd, d.buffer)
		switch err {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		}
		d.read, d.err = max(n, 0), err
		return true
	}
}
