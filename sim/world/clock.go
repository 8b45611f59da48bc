package world

import (
	"weir/node/event"
	"weir/sim/sched"
)

// clock is a machine as a node.Clock.
type clock machine

// million is the scale of the drift.
const million = 1_000_000

// mono is the node's monotone clock: nanoseconds since its start, at the rate of its drift.
func (m *machine) mono() int64 {
	elapsed := m.w.now - m.bootAt
	rate := m.w.plan.Drift(m.index)
	return 1 + elapsed + elapsed/million*rate + elapsed%million*rate/million
}

// time is what the clocks of the machine show.
func (m *machine) time() event.Time {
	return event.Time{Mono: m.mono(), Wall: Epoch + m.w.now + m.wallOffset}
}

// Now implements node.Clock.
func (c *clock) Now() event.Time { return (*machine)(c).time() }

// Wake implements node.Clock.
func (c *clock) Wake(at int64) {
	m := (*machine)(c)
	if at == 0 {
		m.wakes++
		m.wakeAt = 0
		return
	}
	scale := million + m.w.plan.Drift(m.index)
	ticks := max(at-1, 0)
	when := m.bootAt + ticks/scale*million + (ticks%scale*million+scale-1)/scale
	when = max(when, m.w.now)
	if when == m.wakeAt {
		return
	}
	m.wakes++
	m.wakeAt = when
	m.pushLife(sched.Event{At: when, Kind: evWake, N: m.wakes})
}
