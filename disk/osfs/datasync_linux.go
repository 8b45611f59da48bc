package osfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// Datasync makes the bytes of a file durable, by the cheapest call of the system that does: fdatasync here.
func Datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
