// Package host is an edge: it may do what others may not.
package host

import (
	"os"
	"time"
)

// Stamp may read the clock, start goroutines and walk maps.
func Stamp(m map[string]int) int64 {
	go os.Getpid()
	for range m {
	}
	return time.Now().Unix()
}
