package session

import (
	"slices"
	"strconv"

	"weir/model/subject"
	"weir/node/route"
	"weir/spec/assert"
	"weir/transport/wire"
)

// systemQueue is the queue group that servers use among themselves.
const systemQueue = "_sys_"

// subscribe adds a subscription. A sid that is in use keeps its subscription.
func (s *Session) subscribe(op *wire.Op) {
	p := s.identity.Permissions
	if string(op.Queue) == systemQueue || (p != nil && !p.MaySubscribe(op.Subject, op.Queue)) {
		text := "Permissions Violation for Subscription to " + strconv.Quote(string(op.Subject))
		if op.Queue != nil {
			text += " using queue " + strconv.Quote(string(op.Queue))
		}
		s.sendErr(text)
		return
	}
	if most := s.subscriptionsMax(); most >= 0 && int64(len(s.subs)) >= most {
		s.sendErr("maximum subscriptions exceeded")
		return
	}
	if s.bySid[string(op.Sid)] == nil {
		if !subject.Valid(op.Subject) {
			s.sendErr("Invalid Subject")
			return
		}
		s.addSub(op)
	}
	s.acknowledge()
	s.checkPending()
}

// addSub makes a subscription of a valid operation.
func (s *Session) addSub(op *wire.Op) {
	sid := string(op.Sid)
	sub := &route.Sub{Conn: s.params.ID, Receiver: s, Pattern: string(op.Subject), Queue: string(op.Queue), Sid: []byte(sid),
		Slot: len(s.subs)}
	if s.bySid == nil {
		s.bySid = make(map[string]*route.Sub)
	}
	s.bySid[sid] = sub
	s.subs = append(s.subs, sub)
	if p := s.identity.Permissions; p != nil && p.Filters(op.Subject) {
		s.filtered = true
	}
	s.table.Subscribe(sub)
}

// unsubscribe ends a subscription, now or once it has received a number of messages in all.
func (s *Session) unsubscribe(op *wire.Op) {
	s.acknowledge()
	s.checkPending()
	sub := s.bySid[string(op.Sid)]
	if sub == nil || s.reason != 0 {
		return
	}
	if most := uint64(op.Max); most > sub.Delivered {
		sub.Max = most
		return
	}
	s.removeSub(sub)
}

// removeSub ends a subscription of this session.
func (s *Session) removeSub(sub *route.Sub) {
	last := len(s.subs) - 1
	assert.True(sub.Slot <= last && s.subs[sub.Slot] == sub, "a subscription is in its slot", uint64(sub.Slot), uint64(last))
	moved := s.subs[last]
	s.subs[sub.Slot], s.subs[last] = moved, nil
	moved.Slot = sub.Slot
	s.subs = s.subs[:last]
	delete(s.bySid, string(sub.Sid))
	if sub.Lag() != route.KeepsUp {
		s.behind = slices.DeleteFunc(s.behind, func(b *route.Sub) bool { return b == sub })
	}
	s.table.Unsubscribe(sub)
}

// dropSubs ends all subscriptions, the newest first.
func (s *Session) dropSubs() {
	for len(s.subs) > 0 {
		s.removeSub(s.subs[len(s.subs)-1])
	}
	assert.True(len(s.bySid) == 0, "no sid without a subscription", uint64(len(s.bySid)))
}
