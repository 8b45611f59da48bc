package world

import (
	"fmt"
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

// lane numbers a worker of a machine among all.
func (m *machine) lane(at int) uint64 { return uint64(m.index*len(m.workers) + at) }

func (k *worker) busy() bool { return k.batch != nil || k.idling }

// submitter is a machine as a node.Worker.
type submitter machine

// Submit implements node.Worker: operations wait for the worker of their kind, which takes all that have gathered.
func (s *submitter) Submit(ops []event.Op) {
	m := (*machine)(s)
	for i := range ops {
		at := storeWorker
		if ops[i].Kind.Log() {
			at = logWorker
			m.submitted(&ops[i])
		}
		m.workers[at].queue = append(m.workers[at].queue, ops[i])
	}
	m.diskStart(logWorker)
	m.diskStart(storeWorker)
}

// diskStart lets an idle worker begin with what has gathered. It is carried out when it ends, so that whatever changes
// what it refers to meanwhile is caught, and a crash before that leaves any part of it done.
func (m *machine) diskStart(at int) {
	k := &m.workers[at]
	if k.busy() || len(k.queue) == 0 {
		return
	}
	k.batch, k.queue = k.queue, nil
	m.w.trace.Add(trace.DiskStart, m.lane(at), uint64(len(k.batch)), nil)
	if m.w.trace.Keep {
		m.w.trace.Note(describe(k.batch))
	}
	m.book(at, uint64(k.batch[0].Ticket))
}

// opNames are for the timeline.
var opNames = map[event.OpKind]string{
	event.Persist: "persist", event.Probe: "probe", event.Keep: "keep", event.Fetch: "fetch", event.Save: "save", event.Rewrite: "rewrite",
	event.Erase: "erase", event.Drop: "drop", event.Pin: "pin", event.ReadPart: "read-part", event.Unpin: "unpin",
	event.Stage: "stage", event.StagePart: "stage-part", event.Unstage: "unstage", event.Install: "install", event.Scrub: "scrub",
}

// describe names operations for the timeline.
func describe(ops []event.Op) string {
	text := ""
	for i := range ops {
		text += fmt.Sprintf(" %s of group %d", opNames[ops[i].Kind], ops[i].Group)
		for k := range ops[i].Writes {
			w := &ops[i].Writes[k]
			text += fmt.Sprintf(" (%d: %d entries, term %d vote %d)", w.Group, len(w.Entries), w.HardState.Term, w.HardState.Vote)
		}
	}
	return text
}

// book lets what a worker has begun end after a time that is drawn for it.
func (m *machine) book(at int, what uint64) {
	d := m.w.plan.Disk
	took := d.SyncMinMicros*1000 + m.w.key.Exp(d.SyncMeanMicros*1000, "disk", m.lane(at), what, uint64(m.w.now)>>20)
	if at == storeWorker {
		took = 10_000 + m.w.key.Exp(d.WorkMeanMicros*1000, "disk", m.lane(at), what, uint64(m.w.now)>>20)
	}
	took *= m.slow
	m.spring(at, took)
	m.pushLife(sched.Event{At: m.w.now + took, Kind: evDisk, Conn: uint64(at)})
}

// diskEnd carries out what a worker had begun and tells the node.
func (m *machine) diskEnd(at int) {
	k := &m.workers[at]
	var done []event.Completion
	more := false
	if k.idling {
		more = m.idleLog()
	} else {
		done = m.node.Storage().Do(k.batch, nil)
		m.account(k.batch, done)
	}
	k.batch, k.idling = nil, false
	k.ends++
	m.w.trace.Add(trace.DiskEnd, m.lane(at), uint64(len(done)), nil)
	if at == logWorker && (more || len(done) > 0) {
		m.pushLife(sched.Event{At: m.w.now + idleAfter, Kind: evIdle, N: k.ends})
	}
	m.diskStart(at)
	if len(done) == 0 {
		return
	}
	inputs := make([]event.Input, len(done))
	for i := range done {
		inputs[i] = event.Input{Kind: event.Done, Done: done[i]}
	}
	m.step(inputs...)
}

// account notes which appends to the log succeeded.
func (m *machine) account(batch []event.Op, done []event.Completion) {
	next := 0
	for i := range batch {
		if !batch[i].Kind.Log() || batch[i].Ticket == 0 {
			continue
		}
		for next < len(done) && done[next].Ticket != batch[i].Ticket {
			next++
		}
		if next < len(done) && done[next].Err == nil {
			m.synced(&batch[i])
		}
	}
}

// idleAfter is how long the log has had nothing to do before it prepares for later appends.
const idleAfter = 20_000_000

// idle lets the log prepare for later appends, unless it has had something to do meanwhile.
func (m *machine) idle(ends uint64) {
	k := &m.workers[logWorker]
	if k.busy() || k.ends != ends {
		return
	}
	k.idling = true
	m.w.trace.Add(trace.DiskStart, m.lane(logWorker), 0, nil)
	m.book(logWorker, ends)
}

// idleLog is the work of the log for idle times; it reports whether there is more.
func (m *machine) idleLog() bool {
	more, err := m.node.Storage().IdleLog()
	if err != nil {
		m.w.trace.Add(trace.Log, uint64(event.Warn), 0, []byte("the log could not be prepared: "+err.Error()))
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
func (m *machine) cutOf(at int) cut {
	gen := m.life()
	if m.w.key.Chance(500, "cut at syncs", gen, uint64(at)) {
		return cut{syncs: 1 + uint64(m.w.key.Exp(2, "syncs", gen, uint64(at)))}
	}
	if m.sprung {
		return cut{calls: m.w.key.Below(10, "calls", gen, uint64(at))}
	}
	mean := int64(2) << m.w.key.Below(5, "mean of calls", gen, uint64(at))
	return cut{calls: uint64(m.w.key.Exp(mean, "calls", gen, uint64(at)))}
}

// partly carries out a batch up to the cut. The process that would go on after a refused call does not exist any more,
// so that whatever it makes of it means nothing.
func (m *machine) partly(at int, c cut) {
	defer func() {
		if recover() != nil {
			m.disk.StopAfter(0)
			m.syncsLeft = 0
		}
	}()
	if c.syncs > 0 {
		m.syncsLeft = c.syncs
	} else {
		m.disk.StopAfter(max(m.disk.Ops()+c.calls, 1))
	}
	if k := &m.workers[at]; k.idling {
		m.idleLog()
	} else {
		m.node.Storage().Do(k.batch, nil)
	}
	m.disk.StopAfter(0)
	m.syncsLeft = 0
}

// watchDisk remembers where the log was appended to last, and turns the machine off when the syncs of a cut have been made.
func (m *machine) watchDisk() {
	m.disk.OnOp(func(op memfs.Op) {
		switch {
		case op.Kind == memfs.OpWrite && strings.Contains(op.Name, "/wal/") && !strings.HasSuffix(op.Name, "/mark") &&
			!m.workers[logWorker].idling:
			m.lastLogWrite = op
		case op.Kind&(memfs.OpSync|memfs.OpSyncDir|memfs.OpRename) != 0 && m.syncsLeft > 0:
			if m.syncsLeft--; m.syncsLeft == 0 {
				m.disk.StopAfter(op.Number)
			}
		}
	})
}

func (m *machine) crashDisk(strategy memfs.Strategy) {
	m.disk = m.crashImage(strategy)
	m.watchDisk()
	m.applyDiskFaults()
}

// strategy draws how a disk survives.
func (m *machine) strategy(domain string, ids ...uint64) memfs.Strategy {
	all := memfs.Strategies()
	return all[m.w.key.Below(uint64(len(all)), domain, ids...)]
}
