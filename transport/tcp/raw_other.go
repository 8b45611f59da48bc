//go:build !linux

package tcp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func rawRead(fd uintptr, p []byte) (int, error) { return unix.Read(int(fd), p) }

func rawWrite(fd uintptr, p []byte) (int, error) { return unix.Write(int(fd), p) }

func rawWritev(fd uintptr, _ []syscall.Iovec, buffers [][]byte) (int, error) {
	return unix.Writev(int(fd), buffers)
}
