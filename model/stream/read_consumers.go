package stream

import (
	"weir/model/consumer"
	"weir/model/jsapi"
)

// Consumers returns the states of the consumers in order of their names. The caller owns the slice, the states are for
// reading.
func (m *Machine) Consumers() []*consumer.State {
	states := make([]*consumer.State, len(m.consumers.byName))
	for i, e := range m.consumers.byName {
		states[i] = e.state
	}
	return states
}

// Consumer returns the state of the consumer with the incarnation, nil when there is none. It is for reading.
func (m *Machine) Consumer(id uint64) *consumer.State {
	if e := m.consumers.find(id); e != nil {
		return e.state
	}
	return nil
}

// ConsumerByName returns the state of the consumer with the name, nil when there is none. It is for reading.
func (m *Machine) ConsumerByName(name string) *consumer.State {
	if e := m.consumers.findName(name); e != nil {
		return e.state
	}
	return nil
}

// ConsumerInfo describes the consumer with the name as info responses show it, and reports whether it exists. What only
// the leader knows (waiting requests, bound subscriptions) and the time of the answer are left out.
func (m *Machine) ConsumerInfo(name string) (jsapi.ConsumerInfo, bool) {
	e := m.consumers.findName(name)
	if e == nil {
		return jsapi.ConsumerInfo{}, false
	}
	s := e.state
	return jsapi.ConsumerInfo{
		Stream:         m.name,
		Name:           name,
		Created:        jsapi.Time(s.Created()),
		Config:         s.Config().Shown(),
		Delivered:      sequenceInfo(s.Delivered()),
		AckFloor:       sequenceInfo(s.AckFloor()),
		NumAckPending:  s.NumAckPending(),
		NumRedelivered: s.NumRedelivered(),
		NumPending:     s.NumPending(),
	}, true
}

func sequenceInfo(p consumer.Position) jsapi.SequenceInfo {
	info := jsapi.SequenceInfo{Consumer: p.Consumer, Stream: p.Stream}
	if p.Last != 0 {
		last := jsapi.Time(p.Last)
		info.Last = &last
	}
	return info
}

// Deliverable says what a Deliver to a consumer would find.
type Deliverable struct {
	// Redeliveries are messages that are due again, New are messages that were never delivered.
	Redeliveries, New uint64
	// Blocked says that new messages wait until max_ack_pending allows more.
	Blocked bool
}

// Any reports whether a Deliver would hand out something.
func (d Deliverable) Any() bool { return d.Redeliveries > 0 || d.New > 0 && !d.Blocked }

// Deliverable returns what the consumer with the incarnation has to deliver, nothing when it does not exist.
func (m *Machine) Deliverable(id uint64) Deliverable {
	s := m.Consumer(id)
	if s == nil {
		return Deliverable{}
	}
	return Deliverable{Redeliveries: uint64(s.NumQueued()), New: s.NumPending(), Blocked: s.AtMaxAckPending()}
}
