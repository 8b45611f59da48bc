package workload

import (
	"encoding/json"
	"fmt"

	"weir/sim/plan"
)

// scratch is one life of a stream that only this client uses, and a second one under the same name. The client knows
// what every answer has to be: nothing of the first incarnation may be seen in the second. After an answer that does not
// come, a request may still take effect at any time; then the client gives the name up.
type scratch struct {
	client *client
	name   string
	count  int
	life   int
	sent   int
}

// answer is what the requests of a scratch stream get.
type answer struct {
	Error     *apiError   `json:"error"`
	Seq       uint64      `json:"seq"`
	Success   bool        `json:"success"`
	DidCreate bool        `json:"did_create"`
	State     streamState `json:"state"`
}

func (c *client) scratch(op *plan.Op) {
	c.load.tokens++
	s := &scratch{client: c, name: fmt.Sprintf("SCRATCH%d", c.load.tokens), count: op.N}
	s.create()
}

// ask sends a request and gives its answer to next; the scratch ends when there is none that decides.
func (s *scratch) ask(subject, body string, next func(*answer)) {
	c := s.client
	c.whenReady(func() {
		c.request(request{subject: subject, body: []byte(body)}, func(m *message) {
			var a answer
			if m == nil || m.status != 0 || json.Unmarshal(m.payload, &a) != nil || a.Error != nil && !a.Error.decides() {
				c.finished()
				return
			}
			next(&a)
		})
	})
}

// check notes a wrong answer; it reports whether the answer is right.
func (s *scratch) check(ok bool, what string, a *answer) bool {
	if ok {
		return true
	}
	l := s.client.load
	l.Wrong = append(l.Wrong, Wrong{At: l.world.Now(), Detail: fmt.Sprintf("%s, life %d, %d messages sent: %s answered seq %d, state %+v, error %+v",
		s.name, s.life, s.sent, what, a.Seq, a.State, a.Error)})
	s.client.finished()
	return false
}

func (s *scratch) create() {
	s.life, s.sent = s.life+1, 0
	replicas := max(s.client.load.plan.Streams[0].Replicas, 1)
	body := fmt.Sprintf(`{"name":%q,"subjects":["%s.>"],"storage":"file","allow_direct":true,"num_replicas":%d}`, s.name, s.name, replicas)
	s.ask("$JS.API.STREAM.CREATE."+s.name, body, func(a *answer) {
		if a.Error != nil && a.Error.ErrCode == noPeers {
			s.client.finished() // there are not enough servers at the moment
			return
		}
		if s.check(a.Error == nil && a.DidCreate && a.State.Messages == 0 && a.State.Last == 0, "create", a) {
			s.publish()
		}
	})
}

func (s *scratch) publish() {
	if s.sent == s.count {
		s.info()
		return
	}
	s.ask(s.name+".x", fmt.Sprintf("%d of life %d", s.sent, s.life), func(a *answer) {
		s.sent++
		if s.check(a.Error == nil && a.Seq == uint64(s.sent), "publish", a) {
			s.publish()
		}
	})
}

func (s *scratch) info() {
	s.ask("$JS.API.STREAM.INFO."+s.name, "", func(a *answer) {
		if s.check(a.Error == nil && a.State.Messages == uint64(s.sent) && a.State.Last == uint64(s.sent), "info", a) {
			s.remove()
		}
	})
}

func (s *scratch) remove() {
	s.ask("$JS.API.STREAM.DELETE."+s.name, "", func(a *answer) {
		if !s.check(a.Error == nil && a.Success, "delete", a) {
			return
		}
		s.client.load.world.Ended(s.name)
		s.ask("$JS.API.STREAM.INFO."+s.name, "", func(a *answer) {
			if !s.check(a.Error != nil && a.Error.ErrCode == streamNotFound, "info after delete", a) {
				return
			}
			if s.life == 1 {
				s.create()
			} else {
				s.client.finished()
			}
		})
	})
}

// noPeers is the error code of a stream that can not be placed.
const noPeers = 10005

// streamNotFound is the error code of a stream that does not exist.
const streamNotFound = 10059
