package host

import (
	"sync"

	"weir/node/event"
)

// InlineBytesMax is the size up to which whoever submits an append to an idle log carries it out itself, instead of
// waking the worker: a lone synchronous publisher saves a thread switch, and a busy one is back at its socket before
// the next batch has gathered.
const InlineBytesMax = 2048

// worker carries out storage operations in order, one batch at a time.
type worker struct {
	host *Host
	name string

	mu      sync.Mutex
	more    *sync.Cond
	queue   []event.Op
	busy    bool // somebody carries out operations
	stopped bool
	done    sync.WaitGroup
}

func (w *worker) init(h *Host, name string) {
	w.host, w.name = h, name
	w.more = sync.NewCond(&w.mu)
}

func (w *worker) start() {
	w.done.Add(1)
	go w.run()
}

// stop waits until everything submitted is carried out.
func (w *worker) stop() {
	w.mu.Lock()
	w.stopped = true
	w.more.Broadcast()
	w.mu.Unlock()
	w.done.Wait()
}

func (w *worker) submit(op event.Op) {
	w.mu.Lock()
	w.queue = append(w.queue, op)
	if !w.busy {
		w.more.Signal()
	}
	w.mu.Unlock()
}

func (w *worker) run() {
	defer w.done.Done()
	for {
		w.mu.Lock()
		for (len(w.queue) == 0 || w.busy) && !(w.stopped && len(w.queue) == 0) {
			w.more.Wait()
		}
		if len(w.queue) == 0 {
			w.mu.Unlock()
			return
		}
		batch := w.queue
		w.queue = nil
		w.busy = true
		w.mu.Unlock()
		w.host.carryOut(batch)
		w.mu.Lock()
		w.busy = false
		w.mu.Unlock()
	}
}

// carryOut does the operations and brings their completions to the node in one step.
func (h *Host) carryOut(batch []event.Op) {
	var completions []event.Completion
	completions = h.node.Storage().Do(batch, completions)
	inputs := make([]event.Input, 0, len(completions))
	for _, c := range completions {
		inputs = append(inputs, event.Input{Kind: event.Done, Done: c})
	}
	if len(inputs) == 0 {
		return
	}
	h.mu.Lock()
	h.stepLocked(inputs...)
}

// submitter is the host as a node.Worker.
type submitter Host

// Submit hands operations to the two workers.
func (s *submitter) Submit(ops []event.Op) {
	for i := range ops {
		if ops[i].Kind.Log() {
			s.log.submit(ops[i])
		} else {
			s.store.submit(ops[i])
		}
	}
}
