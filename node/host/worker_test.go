package host

import (
	"runtime"
	"testing"

	"weir/disk/msgstore"
	"weir/node/event"
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

// TestRestFollowsAChoreThatOutlastsItsTimer has the timer of the rest fire between the end of an append and that of the chore
// behind it.
func TestRestFollowsAChoreThatOutlastsItsTimer(t *testing.T) {
	var w worker
	w.init(nil)
	rested := make(chan struct{})
	w.idle = func() bool {
		rested <- struct{}{}
		return false
	}
	w.chore = func() {
		for resting := true; resting; runtime.Gosched() {
			w.mu.Lock()
			resting = w.resting
			w.mu.Unlock()
		}
	}
	w.start()
	w.mu.Lock()
	w.ordered = true
	w.begin()
	w.mu.Unlock()
	w.end()
	<-rested
	w.stop()
}

// TestLogWaitsForBlocks holds the log back while more blocks wait to be written than fit into the memory for them.
func TestLogWaitsForBlocks(t *testing.T) {
	var w worker
	w.init(nil)
	block := event.Op{Kind: event.Keep, Blocks: []msgstore.BlockWrite{{Bytes: make([]byte, HeldBytesMax/2+1)}}}
	w.submit(block)
	w.waitForRoom()
	w.submit(block)
	done := make(chan bool)
	released := false
	go func() {
		w.waitForRoom()
		w.mu.Lock()
		defer w.mu.Unlock()
		done <- released
	}()
	w.mu.Lock()
	released = true
	batch := w.begin()
	w.mu.Unlock()
	w.wrote(batch[:1])
	if !<-done {
		t.Fatal("the log went on before there was room")
	}
	w.wrote(batch[1:])
	if w.held != 0 {
		t.Fatalf("%d bytes are still held", w.held)
	}
}
