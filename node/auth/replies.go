package auth

import "weir/spec/assert"

// RepliesMax bounds how many reply subjects a client may hold the right to publish to. The oldest goes first.
const RepliesMax = 16 << 10

// Replies are the reply subjects that a client with allow_responses may publish to at the moment.
type Replies struct {
	rights Responses
	grants map[string]grant
	// order holds the reply subjects from the oldest grant on; order[:head] is done with. A subject whose grant has
	// another number than its place here was granted again later.
	order  []numbered
	head   int
	number uint64
}

type grant struct {
	number  uint64
	atNanos int64
	used    int
}

type numbered struct {
	reply  string
	number uint64
}

// NewReplies returns no grants yet.
func NewReplies(rights Responses) *Replies {
	return &Replies{rights: rights, grants: make(map[string]grant)}
}

// Len returns how many reply subjects are held.
func (r *Replies) Len() int { return len(r.grants) }

// Grant lets the client publish to the reply subject of a message that it is given now.
func (r *Replies) Grant(reply []byte, now int64) {
	r.expire(now)
	r.number++
	subject := string(reply)
	r.grants[subject] = grant{number: r.number, atNanos: now}
	r.order = append(r.order, numbered{reply: subject, number: r.number})
	if len(r.order)-r.head > RepliesMax {
		r.dropOldest()
	}
	if r.head > len(r.order)/2 {
		n := copy(r.order, r.order[r.head:])
		clear(r.order[n:])
		r.order, r.head = r.order[:n], 0
	}
	assert.True(len(r.grants) <= len(r.order)-r.head, "every grant has a place in the order", uint64(len(r.grants)))
}

// Spend reports whether the client may publish to the subject now, and counts it.
func (r *Replies) Spend(to []byte, now int64) bool {
	g, ok := r.grants[string(to)]
	if !ok {
		return false
	}
	g.used++
	if (r.rights.Max > 0 && g.used > r.rights.Max) || r.expired(g, now) {
		delete(r.grants, string(to))
		return false
	}
	r.grants[string(to)] = g
	return true
}

func (r *Replies) expired(g grant, now int64) bool {
	return r.rights.ExpiresNanos > 0 && now-g.atNanos > r.rights.ExpiresNanos
}

// expire drops what is at the head of the order and no longer means anything.
func (r *Replies) expire(now int64) {
	for r.head < len(r.order) {
		oldest := r.order[r.head]
		g, ok := r.grants[oldest.reply]
		if ok && g.number == oldest.number && !r.expired(g, now) {
			return
		}
		r.dropOldest()
	}
}

func (r *Replies) dropOldest() {
	oldest := r.order[r.head]
	r.order[r.head] = numbered{}
	r.head++
	if g, ok := r.grants[oldest.reply]; ok && g.number == oldest.number {
		delete(r.grants, oldest.reply)
	}
}
