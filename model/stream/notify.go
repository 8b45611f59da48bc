package stream

import (
	"slices"

	"weir/model/consumer"
)

// notifyStored tells the views and the consumers of a new message.
func (m *Machine) notifyStored(seq uint64, text string) {
	c := &m.consumers
	if len(c.byID) == 0 {
		return
	}
	routed := c.views.route(text)
	for _, v := range routed {
		if v.kind == ownSet {
			v.own.Add(seq)
		}
	}
	for _, list := range [...][]*view{c.views.whole, routed} {
		for _, v := range list {
			for _, e := range v.members {
				m.changing(e).Stored(&m.batch, seq)
			}
		}
	}
}

// notifyRemoved tells the views and the consumers of a message that is gone from the log. Only consumers whose filters
// have changed can have a message pending that their filters do not select.
func (m *Machine) notifyRemoved(seq uint64, text string, why consumer.Removal) {
	c := &m.consumers
	if len(c.byID) == 0 {
		return
	}
	routed := c.views.route(text)
	for _, v := range routed {
		if v.kind == ownSet {
			v.own.Remove(seq)
		}
	}
	for _, list := range [...][]*view{c.views.whole, routed} {
		for _, v := range list {
			for _, e := range v.members {
				m.changing(e).Removed(&m.batch, seq, true, why)
			}
		}
	}
	for _, e := range c.refiltered {
		if e.view.kind != wholeStream && !slices.Contains(routed, e.view) {
			m.changing(e).Removed(&m.batch, seq, false, why)
		}
	}
}

// clearViews empties the views of a stream that lost every message.
func (m *Machine) clearViews() {
	for _, v := range m.consumers.views.byKey { // order-free: each view is emptied on its own
		v.own.Clear()
	}
}

// notifyPurged tells the consumers that the stream starts at its present first sequence. The views know already.
func (m *Machine) notifyPurged() {
	first := max(m.log.first, 1)
	for _, e := range m.consumers.byID {
		m.changing(e).Purged(&m.batch, first)
	}
}
