package tcp

import (
	"syscall"
	"unsafe"
)

// A call on a socket that does not block returns at once, so the runtime is not told of it: after a pause it would wake
// its monitor first, which costs more than the call and takes a processor from who is to work next.

func rawRead(fd uintptr, p []byte) (int, error) {
	return rawResult(syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))))
}

func rawWrite(fd uintptr, p []byte) (int, error) {
	return rawResult(syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))))
}

// rawWritev writes buffers, of which there are no more than vector, its memory, has room for.
func rawWritev(fd uintptr, vector []syscall.Iovec, buffers [][]byte) (int, error) {
	for i, b := range buffers {
		vector[i].Base = unsafe.SliceData(b)
		vector[i].SetLen(len(b))
	}
	n, err := rawResult(syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(unsafe.SliceData(vector))), uintptr(len(buffers))))
	clear(vector[:len(buffers)])
	return n, err
}

func rawResult(n, _ uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
