package delivery

// request is a pull request that waits, or whose last messages are on their way out.
type request struct {
	// inbox is where messages and statuses go.
	inbox []byte
	// left is how many more messages may be assigned to the request; unsent of those that were are not sent yet.
	left, unsent int
	// bytesLeft is how many more bytes may be sent when bounded.
	bytesLeft int
	bounded   bool
	// got says that at least one message was assigned.
	got bool
	// noWait ends the request when nothing is left to deliver; with expiresAt it first waits for something.
	noWait bool
	// expiresAt is when the request times out, 0 for never; heartbeatAt when the next heartbeat is due, each
	// heartbeatNanos long, 0 for none.
	expiresAt, heartbeatAt, heartbeatNanos int64
	// ended says that the request has been told, or will be told behind its messages, that nothing more comes; lost that
	// nobody listens for it any more. Neither is queued.
	ended, lost bool
}

// queue is a first-in first-out queue of requests.
type queue struct {
	items []*request
	head  int
}

func (q *queue) len() int { return len(q.items) - q.head }

// all returns the requests in their order. The slice is valid until the queue changes.
func (q *queue) all() []*request { return q.items[q.head:] }

func (q *queue) push(r *request) {
	if q.head > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, r)
}

func (q *queue) pop() *request {
	r := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return r
}

// filter keeps the requests for which keep holds, in their order.
func (q *queue) filter(keep func(*request) bool) {
	kept := q.items[:0]
	for _, r := range q.items[q.head:] {
		if keep(r) {
			kept = append(kept, r)
		}
	}
	clear(q.items[len(kept):])
	q.items, q.head = kept, 0
}

// claim returns an empty request.
func (d *Desk) claim(inbox string) *request {
	r := &request{}
	if n := len(d.spare); n > 0 {
		r, d.spare = d.spare[n-1], d.spare[:n-1]
	}
	*r = request{inbox: append(r.inbox[:0], inbox...)}
	return r
}

// spareMax bounds the requests that are kept for reuse.
const spareMax = 1024

// recycle gives a request back that is neither queued nor referred to by an outgoing message.
func (d *Desk) recycle(r *request) {
	if len(d.spare) < spareMax {
		d.spare = append(d.spare, r)
	}
}
