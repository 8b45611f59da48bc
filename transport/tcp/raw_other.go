//go:build unix && !linux

package tcp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func rawRead(fd uintptr, p []byte) (int, error) { return unix.Read(int(fd), p) }

func rawWrite(fd uintptr, p []byte) (int, error) { return unix.Write(int(fd), p) }

// rawWritev writes buffers one after the other, as not every system is known to have a call for all of them.
func rawWritev(fd uintptr, _ []syscall.Iovec, buffers [][]byte) (written int, err error) {
	for _, b := range buffers {
		n, err := unix.Write(int(fd), b)
		if err != nil && written > 0 {
			return written, nil // the next call meets the error again
		}
		if err != nil {
			return 0, err
		}
		if written += n; n < len(b) {
			break
		}
	}
	return written, nil
}
