package tcp

import (
	"sync"

	"github.com/gobwas/ws"
)

// pingsMax bounds the pings of a client that wait for their answer; of more the oldest are never answered (RFC 6455, 5.5.3).
const pingsMax = 16

// pings are what a client sent to be answered. The reader does not answer them itself: a client that writes and does not read
// would keep it from reading, and so itself from writing and from ever reading again.
type pings struct {
	mu        sync.Mutex
	waiting   [][]byte
	answering bool // somebody is about to answer what waits
}

// add takes a ping and reports whether somebody has to begin to answer.
func (p *pings) add(payload []byte) (begin bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == pingsMax {
		p.waiting = append(p.waiting[:0], p.waiting[1:]...)
	}
	p.waiting = append(p.waiting, payload)
	begin = !p.answering
	p.answering = true
	return begin
}

// next takes the oldest; false says that there is none, and that whoever answers has ended.
func (p *pings) next() ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.answering = false
		return nil, false
	}
	payload := p.waiting[0]
	p.waiting = append(p.waiting[:0], p.waiting[1:]...)
	return payload, true
}

// answerPings answers what waits, once nobody else writes.
func (f *framed) answerPings() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writePongs()
}

// writePongs answers what waits; f.mu is held. After the last frame nothing is answered.
func (f *framed) writePongs() {
	for {
		payload, ok := f.pings.next()
		if !ok {
			return
		}
		if !f.ended {
			// A failure shows at the next write, and at the reader.
			_ = f.writeFrame(ws.Header{Fin: true, OpCode: ws.OpPong}, payload)
		}
	}
}
