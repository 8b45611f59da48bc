package world

import (
	"strings"

	"weir/disk/memfs"
	"weir/node/event"
	"weir/sim/sched"
	"weir/sim/trace"
)

// The workers.
const (
	logWorker   = 0
	storeWorker = 1
)

// worker is one of the two that carry out storage operations.
type worker struct {
	queue []event.Op
	batch []event.Op // under way
	// idling says that the log prepares for later appends.
	idling bool
	ends   uint64 // how often it came to an end
}

func (k *worker) busy() bool { return k.batch != nil || k.idling }

// submitter is the world as a node.Worker.
type submitter World

// Submit implements node.Worker: operations wait for the worker of their kind, which takes all that have gathered.
func (s *submitter) Submit(ops []event.Op) {
	w := (*World)(s)
	for i := range ops {
		at := storeWorker
		if ops[i].Kind.Log() {
			at = logWorker
		}
		w.machine.workers[at].queue = append(w.machine.workers[at].queue, ops[i])
	}
	w.diskStart(logWorker)
	w.diskStart(storeWorker)
}

// diskStart lets an idle worker begin with what has gathered. It is carried out when it ends, so that whatever changes
// what it refers to meanwhile is caught, and a crash before that leaves any part of it done.
func (w *World) diskStart(at int) {
	k := &w.machine.workers[at]
	if k.busy() || len(k.queue) == 0 {
		return
	}
	k.batch, k.queue = k.queue, nil
	w.trace.Add(trace.DiskStart, uint64(at), uint64(len(k.batch)), nil)
	w.book(at, uint64(k.batch[0].Ticket))
}

// book lets what a worker has begun end after a time that is drawn for it.
func (w *World) book(at int, what uint64) {
	d := w.plan.Disk
	took := d.SyncMinMicros*1000 + w.key.Exp(d.SyncMeanMicros*1000, "disk", uint64(at), what, uint64(w.now)>>20)
	if at == storeWorker {
		took = 10_000 + w.key.Exp(d.WorkMeanMicros*1000, "disk", uint64(at), what, uint64(w.now)>>20)
	}
	took *= w.machine.slow
	w.spring(at, took)
	w.queue.Push(sched.Event{At: w.now + took, Kind: evDisk, Gen: w.machine.gen, Conn: uint64(at)})
}

// diskEnd carries out what a worker had begun and tells the node.
func (w *World) diskEnd(at int) {
	k := &w.machine.workers[at]
	var done []event.Completion
	more := false
	if k.idling {
		more = w.idleLog()
	} else {
		done = w.machine.node.Storage().Do(k.batch, nil)
	}
	k.batch, k.idling = nil, false
	k.ends++
	w.trace.Add(trace.DiskEnd, uint64(at), uint64(len(done)), nil)
	if at == logWorker && (more || len(done) > 0) {
		w.queue.Push(sched.Event{At: w.now + idleAfter, Kind: evIdle, Gen: w.machine.gen, N: k.ends})
	}
	w.diskStart(at)
	if len(done) == 0 {
		return
	}
	inputs := make([]event.Input, len(done))
	for i := range done {
		inputs[i] = event.Input{Kind: event.Done, Done: done[i]}
	}
	w.step(inputs...)
}

// idleAfter is how long the log has had nothing to do before it prepares for later appends.
const idleAfter = 20_000_000

// idle lets the log prepare for later appends, unless it has had something to do meanwhile.
func (w *World) idle(ends uint64) {
	k := &w.machine.workers[logWorker]
	if k.busy() || k.ends != ends {
		return
	}
	k.idling = true
	w.trace.Add(trace.DiskStart, logWorker, 0, nil)
	w.book(logWorker, ends)
}

// idleLog is the work of the log for idle times; it reports whether there is more.
func (w *World) idleLog() bool {
	more, err := w.machine.node.Storage().IdleLog()
	if err != nil {
		w.trace.Add(trace.Log, uint64(event.Warn), 0, []byte("the log could not be prepared: "+err.Error()))
		return false
	}
	return more
}

// cut is where a batch ends that the process does not live to finish: after a number of disk calls, or after a number of
// calls that make something durable.
type cut struct {
	calls, syncs uint64
}

// cutOf draws where the batch of a worker ends: near its beginning for a crash that was meant to fall into this very
// work, else anywhere.
func (w *World) cutOf(at int) cut {
	gen := uint64(w.machine.gen)
	if w.key.Chance(500, "cut at syncs", gen, uint64(at)) {
		return cut{syncs: 1 + uint64(w.key.Exp(2, "syncs", gen, uint64(at)))}
	}
	if w.sprung {
		return cut{calls: w.key.Below(10, "calls", gen, uint64(at))}
	}
	mean := int64(2) << w.key.Below(5, "mean of calls", gen, uint64(at))
	return cut{calls: uint64(w.key.Exp(mean, "calls", gen, uint64(at)))}
}

// partly carries out a batch up to the cut. The process that would go on after a refused call does not exist any more,
// so that whatever it makes of it means nothing.
func (w *World) partly(at int, c cut) {
	defer func() {
		if recover() != nil {
			w.disk.StopAfter(0)
			w.syncsLeft = 0
		}
	}()
	if c.syncs > 0 {
		w.syncsLeft = c.syncs
	} else {
		w.disk.StopAfter(max(w.disk.Ops()+c.calls, 1))
	}
	if k := &w.machine.workers[at]; k.idling {
		w.idleLog()
	} else {
		w.machine.node.Storage().Do(k.batch, nil)
	}
	w.disk.StopAfter(0)
	w.syncsLeft = 0
}

// watchDisk remembers where the log was appended to last, and turns the machine off when the syncs of a cut have been made.
func (w *World) watchDisk() {
	w.disk.OnOp(func(op memfs.Op) {
		switch {
		case op.Kind == memfs.OpWrite && strings.Contains(op.Name, "/wal/") && !strings.HasSuffix(op.Name, "/mark") &&
			!w.machine.workers[logWorker].idling:
			w.lastLogWrite = op
		case op.Kind&(memfs.OpSync|memfs.OpSyncDir|memfs.OpRename) != 0 && w.syncsLeft > 0:
			if w.syncsLeft--; w.syncsLeft == 0 {
				w.disk.StopAfter(op.Number)
			}
		}
	})
}

func (w *World) crashDisk(strategy memfs.Strategy) {
	w.disk = w.disk.Crash(strategy, w.key.Draw("crash", uint64(w.machine.gen)))
	w.watchDisk()
	w.applyDiskFaults()
}

// strategy draws how a disk survives.
func (w *World) strategy(domain string, ids ...uint64) memfs.Strategy {
	all := memfs.Strategies()
	return all[w.key.Below(uint64(len(all)), domain, ids...)]
}
