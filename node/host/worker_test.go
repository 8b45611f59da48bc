package host

import (
	"runtime"
	"testing"
)

// TestWorkerStopsAfterAnAppendOfSomebodyElse stops a worker while whoever submitted an append carries it out.
func TestWorkerStopsAfterAnAppendOfSomebodyElse(t *testing.T) {
	var w worker
	w.init(nil)
	w.mu.Lock()
	w.begin()
	w.mu.Unlock()
	w.rest.Stop()
	w.start()
	stopped := make(chan struct{})
	go func() {
		w.stop()
		close(stopped)
	}()
	for seen := false; !seen; runtime.Gosched() {
		w.mu.Lock()
		seen = w.stopped && len(w.wakeup) == 0
		w.mu.Unlock()
	}
	w.end()
	<-stopped
}

// TestWorkOfOthersEndsTheRestOfTheWorker looks whether the work for idle times comes again after appends that the
// worker did not carry out itself.
func TestWorkOfOthersEndsTheRestOfTheWorker(t *testing.T) {
	var w worker
	w.init(nil)
	rested := make(chan struct{})
	w.idle = func() bool {
		rested <- struct{}{}
		return false
	}
	w.start()
	for range 3 {
		<-rested
		w.mu.Lock()
		for w.busy {
			w.mu.Unlock()
			runtime.Gosched()
			w.mu.Lock()
		}
		w.begin()
		w.mu.Unlock()
		w.end()
	}
	<-rested
	w.stop()
}
