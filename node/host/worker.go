package host

import (
	"sync"
	"time"

	"weir/node/event"
)

// InlineBytesMax is the size up to which whoever submits an append to an idle log carries it out itself, instead of
// waking the worker: a lone synchronous publisher saves two thread switches, and a busy one is back at its socket before
// much has gathered there.
const InlineBytesMax = 2048

// InlinePeerBytesMax is the same for appends that another server asks for: its next ones gather in the socket meanwhile,
// and nobody else waits for the reader.
const InlinePeerBytesMax = 256 << 10

// IdleAfter is how long the log has to rest before the worker prepares it for what comes next.
const IdleAfter = 50 * time.Millisecond

// worker carries out storage operations in order, one batch at a time: on its own goroutine, or on that of whoever
// submitted a small one.
type worker struct {
	host *Host
	// idle, when not nil, is called while there is nothing to do, as long as it returns true.
	idle func() bool
	// chore is done once after each call of order, between two batches.
	chore func()

	mu      sync.Mutex
	queue   []event.Op
	taken   []event.Op // what is being carried out; its memory is that of the next queue but one
	spare   []event.Op // of the next queue
	bytes   int        // of the appends in queue
	held    int        // bytes of blocks that are not written yet
	busy    bool       // somebody carries out operations
	ordered bool       // the chore is to be done
	stopped bool
	wakeup  chan struct{}
	room    *sync.Cond  // held has become less
	rest    *time.Timer // until it is time for idle
	resting bool        // rest runs
	endedAt time.Time   // when operations ended last
	done    sync.WaitGroup

	// Memory of whoever carries out operations.
	completions []event.Completion
	inputs      []event.Input
}

// KeptMax is how many elements the memory that a worker keeps for the next batch has room for at most.
const KeptMax = 256

func (w *worker) init(h *Host) {
	w.host = h
	w.wakeup = make(chan struct{}, 1)
	w.room = sync.NewCond(&w.mu)
	w.rest, w.resting = time.NewTimer(IdleAfter), true
}

func (w *worker) start() {
	w.done.Add(1)
	go w.run()
}

// stop waits until everything submitted is carried out.
func (w *worker) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.wake()
	w.done.Wait()
}

// submit queues an operation. Whoever submits calls drive once it has released the lock of the node.
func (w *worker) submit(op event.Op) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, op)
	for i := range op.Writes {
		for j := range op.Writes[i].Entries {
			w.bytes += len(op.Writes[i].Entries[j].Data)
		}
	}
	w.held += blockBytes(&op)
}

func blockBytes(op *event.Op) (bytes int) {
	for i := range op.Blocks {
		bytes += len(op.Blocks[i].Bytes)
	}
	return bytes
}

// HeldBytesMax is how many bytes of message blocks may wait to be written before the log waits for them: else a disk that
// is slow with checkpoints and not with the log would fill the memory.
const HeldBytesMax = 64 << 20

// waitForRoom waits until few blocks are left to be written.
func (w *worker) waitForRoom() {
	w.mu.Lock()
	for w.held > HeldBytesMax {
		w.room.Wait()
	}
	w.mu.Unlock()
}

// wrote notes that operations are carried out.
func (w *worker) wrote(batch []event.Op) {
	bytes := 0
	for i := range batch {
		bytes += blockBytes(&batch[i])
	}
	if bytes == 0 {
		return
	}
	w.mu.Lock()
	w.held -= bytes
	w.mu.Unlock()
	w.room.Broadcast()
}

func (w *worker) wake() {
	select {
	case w.wakeup <- struct{}{}:
	default:
	}
}

// drive has the queue carried out: by the caller if its appends are not larger than inlineBytes, which is not 0, and
// nobody is at it, else by the worker.
func (w *worker) drive(inlineBytes int) {
	w.mu.Lock()
	switch {
	case len(w.queue) == 0 || w.busy:
		w.mu.Unlock()
	case inlineBytes > 0 && w.bytes <= inlineBytes:
		batch := w.begin()
		w.mu.Unlock()
		left := w.carryOut(batch)
		if w.waits() { // the worker has the next append made durable beside the answers to this one
			w.end()
			left.flush()
		} else {
			left.flush()
			w.end()
		}
	default:
		w.mu.Unlock()
		w.wake()
	}
}

// waits reports whether there is more in the queue.
func (w *worker) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0
}

// begin takes the queue; the caller holds mu and calls end when it has carried it out.
func (w *worker) begin() []event.Op {
	w.taken = w.queue
	w.queue, w.spare, w.bytes, w.busy = w.spare, nil, 0, true
	return w.taken
}

// order has the chore done as soon as nobody carries out operations.
func (w *worker) order() {
	w.mu.Lock()
	w.ordered = true
	busy := w.busy
	w.mu.Unlock()
	if !busy {
		w.wake()
	}
}

// end lets the next one begin and lets the rest begin anew.
func (w *worker) end() {
	w.release()
	w.mu.Lock()
	w.arm(IdleAfter)
	w.mu.Unlock()
}

// arm sets the timer of the rest; mu is held. One that runs is left alone: it finds out itself that it came too early, which
// costs less than to set it with every append.
func (w *worker) arm(after time.Duration) {
	if !w.resting {
		w.resting = true
		w.rest.Reset(after)
	}
}

// release lets the next one begin, after the chore if that is ordered, and leaves to the worker what has come meanwhile.
func (w *worker) release() {
	w.mu.Lock()
	if w.ordered {
		w.ordered = false
		w.mu.Unlock()
		w.chore()
		w.mu.Lock()
	}
	if w.taken != nil {
		w.endedAt = time.Now()
		if cap(w.taken) <= KeptMax {
			w.spare = w.taken[:0]
		}
	}
	w.taken, w.busy = nil, false
	more := len(w.queue) > 0 || w.ordered || w.stopped
	w.mu.Unlock()
	if more {
		w.wake()
	}
}

func (w *worker) run() {
	defer w.done.Done()
	defer w.rest.Stop()
	for {
		w.mu.Lock()
		if w.ordered && !w.busy {
			w.busy = true
			w.mu.Unlock()
			w.end()
			continue
		}
		if w.busy || len(w.queue) == 0 {
			stopped := w.stopped && !w.busy
			w.mu.Unlock()
			if stopped {
				return
			}
			select {
			case <-w.wakeup:
			case <-w.rest.C:
				w.useRest()
			}
			continue
		}
		batch := w.begin()
		w.mu.Unlock()
		left := w.carryOut(batch)
		if len(left) >= asideMin && w.waits() {
			go left.flush() // which connection is written first is of no matter, the order on each is fixed
		} else {
			left.flush()
		}
		w.end()
		if w == &w.host.log {
			w.host.store.drive(0)
		}
	}
}

// asideMin is the number of connections from which their answers are written beside the next append: to write to a socket
// takes about a tenth of the time that it takes to sync.
const asideMin = 2

// useRest does a piece of the work for idle times, unless somebody has begun something: then the rest begins anew when
// that ends.
func (w *worker) useRest() {
	w.mu.Lock()
	w.resting = false
	if w.idle == nil || w.busy || len(w.queue) > 0 {
		w.mu.Unlock()
		return
	}
	if early := IdleAfter - time.Since(w.endedAt); early > 0 {
		w.arm(early)
		w.mu.Unlock()
		return
	}
	w.busy = true
	w.mu.Unlock()
	more := w.idle()
	w.release()
	if more {
		w.mu.Lock()
		w.arm(IdleAfter / 10)
		w.mu.Unlock()
	}
}

// CompletedBytesMax bounds the messages that were read and wait for the rest of their batch before the node gets them.
const CompletedBytesMax = 4 << 20

// carryOut does the operations and brings their completions to the node: those of appends in one step, others in turns,
// so that no read waits for the checkpoints behind it. What the last step queued is left to the caller to be flushed.
func (w *worker) carryOut(batch []event.Op) (left touched) {
	h := w.host
	if w == &h.log {
		h.vigil.use()
		h.store.waitForRoom()
	}
	for len(batch) > 0 {
		n := turn(batch)
		completions := h.node.Storage().Do(batch[:n], w.completions[:0])
		w.wrote(batch[:n])
		clear(batch[:n])
		batch = batch[n:]
		if len(completions) == 0 {
			continue
		}
		inputs := w.inputs[:0]
		for i := range completions {
			inputs = append(inputs, event.Input{Kind: event.Done, Done: completions[i]})
		}
		h.mu.Lock()
		if w == &h.log && len(batch) == 0 {
			left = h.advance(inputs...)
		} else {
			h.stepLocked(0, inputs...)
		}
		clear(completions)
		clear(inputs)
		if cap(completions) <= KeptMax && cap(inputs) <= KeptMax {
			w.completions, w.inputs = completions, inputs
		}
	}
	return left
}

// turn is how many operations of a batch are carried out before the node is told.
func turn(batch []event.Op) int {
	bytes := 0
	for i := range batch {
		switch batch[i].Kind {
		case event.Persist, event.Drop:
		case event.Keep, event.Fetch:
			if bytes += blockBytes(&batch[i]) + int(batch[i].Loc.Size); bytes >= CompletedBytesMax {
				return i + 1
			}
		default:
			return i + 1
		}
	}
	return len(batch)
}

// prepareLog is the work of the log for idle times.
func (h *Host) prepareLog() bool {
	more, err := h.node.Storage().IdleLog()
	if err != nil {
		h.options.Log.Warn("The log could not be prepared for later appends: " + err.Error())
		return false
	}
	return more
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
