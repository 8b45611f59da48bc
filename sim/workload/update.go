package workload

import (
	"encoding/json"
	"fmt"

	"weir/linearizability/history"
	"weir/sim/plan"
	"weir/sim/world"
)

// Update is one change of a stream's configuration: another description.
type Update struct {
	// Stream is the index of the stream, Text the new description, which no other update has.
	Stream int
	Text   string
	// Call and Return bound the interval; Return is history.Never when the outcome is not known.
	Call, Return int64
	// Refused says that the server decided against it.
	Refused bool
}

// Description is what STREAM.INFO said of a stream's description.
type Description struct {
	// Stream is the index of the stream, Text its description then.
	Stream int
	Text   string
	// Call and Return bound the interval.
	Call, Return int64
}

// update changes the description of a stream, or how many replicas it has, and nothing else, so that the rules of the
// stream's history stay.
func (c *client) update(op *plan.Op) {
	l := c.load
	at := len(l.Updates)
	u := Update{Stream: op.Stream, Text: fmt.Sprintf("update %d", at+1), Call: l.world.Now(), Return: history.Never}
	l.Updates = append(l.Updates, u)
	stream := &l.plan.Streams[op.Stream]
	if op.Kind == plan.OpScale {
		l.replicas[op.Stream] = op.N
	}
	ask := request{subject: "$JS.API.STREAM.UPDATE." + stream.Name, body: l.streamConfig(op.Stream, u.Text)}
	c.request(ask, func(m *message) {
		defer c.finished()
		var answer struct {
			Error *apiError `json:"error"`
		}
		if m == nil || m.status != 0 || json.Unmarshal(m.payload, &answer) != nil || answer.Error != nil && !answer.Error.decides() {
			return
		}
		l.Updates[at].Return, l.Updates[at].Refused = l.world.Now(), answer.Error != nil
	})
}

// administer asks for what only clusters know. Whatever the answer is: nothing that clients are promised depends on it.
func (c *client) administer(op *plan.Op) {
	stream := c.load.plan.Streams[op.Stream].Name
	var ask request
	switch op.Kind {
	case plan.OpStepDown:
		ask.subject = "$JS.API.STREAM.LEADER.STEPDOWN." + stream
		if op.N > 0 {
			ask.body = fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, world.Name(op.N-1))
		}
	case plan.OpPeerRemove:
		ask.subject = "$JS.API.STREAM.PEER.REMOVE." + stream
		ask.body = fmt.Appendf(nil, `{"peer":%q}`, world.Name(op.N))
	}
	c.request(ask, func(*message) { c.finished() })
}

// operate asks for what only the operator may ask for.
func (c *client) operate(op *plan.Op) {
	ask := request{subject: "$JS.API.META.LEADER.STEPDOWN"}
	if op.N > 0 {
		ask.body = fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, world.Name(op.N-1))
	}
	system := c.load.system
	system.whenReady(func() { system.request(ask, func(*message) { c.finished() }) })
}

// Repair lets the operator remove the servers that left for good from the catalog, until that is done.
func (l *Workload) Repair(done *bool) { l.repair(l.world.Gone(), done) }

func (l *Workload) repair(names []string, done *bool) {
	if len(names) == 0 {
		*done = true
		return
	}
	again := func() { l.later(func() { l.repair(names, done) }) }
	l.system.whenReady(func() {
		ask := request{subject: "$JS.API.SERVER.REMOVE", body: fmt.Appendf(nil, `{"peer":%q}`, names[0])}
		l.system.request(ask, func(m *message) {
			var answer struct {
				Error   *apiError `json:"error"`
				Success bool      `json:"success"`
			}
			switch {
			case m == nil || m.status != 0 || json.Unmarshal(m.payload, &answer) != nil:
				again()
			case answer.Success || answer.Error != nil && answer.Error.ErrCode == noMember:
				l.repair(names[1:], done)
			default:
				again()
			}
		})
	})
}

// noMember is the error code of a server that the catalog does not know, or no longer.
const noMember = 10044
