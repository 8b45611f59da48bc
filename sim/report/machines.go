package report

import (
	"fmt"

	"weir/sim/trace"
)

// workers is how many workers each machine has for its disk.
const workers = 2

// life is which machine and which of its incarnations a record is about.
func life(r *trace.Record) (machine, incarnation uint64) { return r.A >> 32, r.A & (1<<32 - 1) }

// name is the label of a machine.
func (p *page) name(machine int) string {
	if p.result.Plan.Machines() == 1 {
		return "node"
	}
	return fmt.Sprintf("node %d", machine)
}

// machines draws when each process was up, and when sessions between servers began and broke.
func (p *page) machines() {
	n := p.result.Plan.Machines()
	lanes, from := make([]int, n), make([]int64, n)
	for i := range n {
		lanes[i], from[i] = p.lane(p.name(i)), -1
	}
	for i := range p.result.Trace.Records {
		r := &p.result.Trace.Records[i]
		at, incarnation := life(r)
		switch r.Code {
		case trace.Boot:
			from[at] = r.At
		case trace.Crash:
			p.bar(span{lanes[at], from[at], r.At}, "#8c8", fmt.Sprintf("incarnation %d until %s", incarnation, clock(r.At)))
			from[at] = -1
		case trace.PeerUp:
			p.bar(span{lanes[at], r.At, r.At}, "#04c", fmt.Sprintf("session with node %d at %s", r.B, clock(r.At)))
		case trace.PeerDown:
			p.bar(span{lanes[at], r.At, r.At}, "#c40", fmt.Sprintf("no session with node %d from %s", r.B, clock(r.At)))
		case trace.Phase:
			p.bar(span{lanes[0], r.At, r.At}, "#00f", fmt.Sprintf("phase %d at %s", r.A, clock(r.At)))
		}
	}
	for i := range n {
		if from[i] >= 0 {
			p.bar(span{lanes[i], from[i], p.end}, "#8c8", "last incarnation")
		}
	}
}

// nodeColours tell the machines apart in the lanes of groups.
var nodeColours = [...]string{"#c55", "#5a5", "#55c", "#ca3", "#5aa", "#a5a", "#888", "#a73", "#37a"}

// leadership is a replica that leads.
type leadership struct{ machine, group uint64 }

// leaders draws which node led each group, a lane for each group and node.
func (p *page) leaders() {
	lanes := map[leadership]int{}
	from := map[leadership]int64{}
	text := map[leadership]string{}
	var order []leadership
	end := func(l leadership, at int64) {
		if began := from[l]; began >= 0 {
			p.bar(span{lanes[l], began, at}, nodeColours[l.machine%uint64(len(nodeColours))], text[l]+" until "+clock(at))
			from[l] = -1
		}
	}
	for i := range p.result.Trace.Records {
		r := &p.result.Trace.Records[i]
		at, _ := life(r)
		switch r.Code {
		case trace.Role:
			l := leadership{at, r.B}
			if _, known := lanes[l]; !known {
				lanes[l] = p.lane(fmt.Sprintf("group %d on %d", l.group, l.machine))
				from[l], order = -1, append(order, l)
			}
			end(l, r.At)
			if r.Leads() {
				from[l], text[l] = r.At, r.Text
			}
		case trace.Crash:
			for _, l := range order {
				if l.machine == at {
					end(l, r.At)
				}
			}
		}
	}
	for _, l := range order {
		end(l, p.end)
	}
}

// disk draws the batches of the two workers of every machine.
func (p *page) disk() {
	n := p.result.Plan.Machines() * workers
	lanes, from := make([]int, n), make([]int64, n)
	for i := range n {
		lanes[i] = p.lane(p.name(i/workers) + ": " + [workers]string{"log", "store"}[i%workers])
	}
	for i := range p.result.Trace.Records {
		r := &p.result.Trace.Records[i]
		switch r.Code {
		case trace.DiskStart:
			from[r.A] = r.At
		case trace.DiskEnd:
			p.bar(span{lanes[r.A], from[r.A], r.At}, "#99c", fmt.Sprintf("%s to %s", clock(from[r.A]), clock(r.At)))
		}
	}
}
