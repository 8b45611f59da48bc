//go:build unix && !linux

package osfs

import "os"

// datasync is a full sync where the system has no cheaper durable call.
func datasync(f *os.File) error { return f.Sync() }
