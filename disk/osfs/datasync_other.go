//go:build unix && !linux

package osfs

import "os"

// Datasync makes the bytes of a file durable, by the cheapest call of the system that does: a full sync here.
func Datasync(f *os.File) error { return f.Sync() }
