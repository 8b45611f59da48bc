package host

import (
	"runtime"
	"testing"
)

// A vigil that ended by itself is begun again by the next use, any number of times, and no use waits for it.
func TestVigilBeginsAgainWithTheNextUse(t *testing.T) {
	var v vigil
	v.start()
	for range 3 {
		v.use()
		if v.asleep.Load() {
			t.Fatal("the log is in use and the vigil asleep")
		}
		v.use()
		for !v.asleep.Load() {
			runtime.Gosched()
		}
	}
	v.use()
	v.stop() // in the middle of a vigil
}
