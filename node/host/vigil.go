package host

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// vigil keeps the monitor thread of the Go runtime at its long intervals while the log is in use.
//
// That thread rests when no processor of the scheduler (a P) is in use; the next system call that may wait wakes it, and it
// then looks around every 20 us for a millisecond. A server that is asked for one thing after the other has nothing to do
// between any two of them, and would pay for the wake and several looks each time: a sixth of its processor time. The vigil
// keeps one P in use, which it adds for the purpose, by sleeping in a system call that the runtime is not told of. A signal
// ends that sleep, so that it does not delay when the runtime stops the world.
type vigil struct {
	used   atomic.Bool // since the last look
	asleep atomic.Bool
	wakeup chan struct{} // holds a token from when asleep becomes false until run takes it
	quit   chan struct{}
	done   sync.WaitGroup
}

const (
	// vigilLook is the time between two looks of the vigil at whether the log is in use.
	vigilLook = 10 * time.Millisecond
	// vigilLooksMax is how many looks find the log unused before the vigil ends until the log is used again.
	vigilLooksMax = 20
)

// addProcessor makes room for the P that the vigils of this process keep in use.
var addProcessor = sync.OnceFunc(func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) })

func (v *vigil) start() {
	v.wakeup, v.quit = make(chan struct{}, 1), make(chan struct{})
	if !canSleepUnseen {
		return
	}
	addProcessor()
	v.asleep.Store(true)
	v.done.Go(v.run)
}

func (v *vigil) stop() {
	close(v.quit)
	v.done.Wait()
}

// use notes that the log is in use. It does not wait.
func (v *vigil) use() {
	if !v.used.Load() {
		v.used.Store(true)
	}
	if v.asleep.Load() && v.asleep.CompareAndSwap(true, false) {
		v.wakeup <- struct{}{}
	}
}

func (v *vigil) run() {
	for {
		select {
		case <-v.quit:
			return
		case <-v.wakeup:
			v.keep()
		}
	}
}

// keep keeps a P in use until the log has not been used for a while.
func (v *vigil) keep() {
	for unused := 0; unused < vigilLooksMax; unused++ {
		if v.used.Swap(false) {
			unused = 0
		}
		sleepUnseen(vigilLook)
		select {
		case <-v.quit:
			return
		default:
		}
	}
	v.asleep.Store(true)
}
