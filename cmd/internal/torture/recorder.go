package torture

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/linearizability/history"
	"weir/sim/workload"
	"weir/sim/world"
)

// recorder is what all clients write into. Its clock is this machine's, shifted so that the checkers of the simulator
// can compare it with the timestamps of the servers, which run on the same machine.
type recorder struct {
	base   time.Time
	offset int64 // of base behind the epoch of the checkers

	mu      sync.Mutex
	history history.History
	ids     uint64
	numbers int
	// newest is the newest sequence that any client has seen, by stream, and by stream and subject.
	newest  map[string]uint64
	seen    workload.Observations // Deliveries, Acks and States
	watches []*watch
	// creates are the operations that were a create of a key and succeeded, deletes those that ask for the deletion of one.
	creates, deletes map[uint64]bool

	wrongs []string // answers that are wrong by themselves
	counts counts
}

// counts are operations by their outcome.
type counts struct {
	ok, refused, unknown                  uint64
	deliveries, acks, unconfirmed, nacked uint64
	watched                               uint64
}

func newRecorder() *recorder {
	now := time.Now()
	return &recorder{base: now, offset: now.UnixNano() - world.Epoch, newest: map[string]uint64{}}
}

// now is the time of the history: monotonic, in nanoseconds.
func (r *recorder) now() int64 { return r.offset + int64(time.Since(r.base)) }

// since is a time of the history as seconds since the start.
func (r *recorder) since(at int64) float64 { return float64(at-r.offset) / 1e9 }

// number is a new number for a sequential client.
func (r *recorder) number() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.numbers++
	return r.numbers
}

// begin writes down a call and returns its position and its ID.
func (r *recorder) begin(rec history.Record) (int, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids++
	rec.ID, rec.Call = r.ids, r.now()
	return r.history.Begin(rec), rec.ID
}

// end writes down how a call ended at the given time; fill adds the result.
func (r *recorder) end(pos int, outcome history.Outcome, fill func(*history.Record)) {
	at := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch outcome {
	case history.Unknown:
		r.counts.unknown++
		return
	case history.OK:
		r.counts.ok++
	default:
		r.counts.refused++
	}
	rec := r.history.End(pos, outcome, at)
	if fill != nil {
		fill(rec)
	}
	r.note(rec.Stream, rec.Subject, rec.Seq, rec.Kind == history.Info || rec.ExpectLast.Set)
}

// note remembers the newest sequences. The lock is held.
func (r *recorder) note(stream, subject string, seq uint64, whole bool) {
	r.newest[stream] = max(r.newest[stream], seq)
	if !whole && subject != "" {
		r.newest[stream+" "+subject] = max(r.newest[stream+" "+subject], seq)
	}
}

// last is the newest sequence that anybody has seen in the stream, or on one of its subjects.
func (r *recorder) last(stream, subject string) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if subject != "" {
		return r.newest[stream+" "+subject]
	}
	return r.newest[stream]
}

// delivered writes down a delivery and returns its index.
func (r *recorder) delivered(d workload.Delivery) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.deliveries++
	r.seen.Deliveries = append(r.seen.Deliveries, d)
	return len(r.seen.Deliveries) - 1
}

// acking writes down an answer to a delivery that is about to be sent and returns its index.
func (r *recorder) acking(a workload.Ack) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.Kind == workload.Nacked {
		r.counts.nacked++
	}
	a.Call, a.Return = r.now(), history.Never
	r.seen.Acks = append(r.seen.Acks, a)
	return len(r.seen.Acks) - 1
}

// acked writes down whether an answer was confirmed.
func (r *recorder) acked(index int, confirmed bool) {
	at := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if confirmed {
		r.counts.acks++
		r.seen.Acks[index].Return = at
	} else {
		r.counts.unconfirmed++
	}
}

func (r *recorder) state(s workload.ConsumerState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.States = append(r.seen.States, s)
}

// watch notes a watch that was established.
func (r *recorder) watch(w *watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches = append(r.watches, w)
}

// wrongsMax bounds the wrong answers that are kept.
const wrongsMax = 100

// wrong notes an answer that is wrong by itself.
func (r *run) wrong(format string, args ...any) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if len(r.log.wrongs) < wrongsMax {
		r.log.wrongs = append(r.log.wrongs, fmt.Sprintf(format, args...))
	}
}

func (r *recorder) watched() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.watched++
}

// summary is one line about what has happened so far.
func (r *recorder) summary() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.counts
	return fmt.Sprintf("operations %d ok, %d refused, %d unknown; delivered %d, acks confirmed %d, not %d; watched %d",
		c.ok, c.refused, c.unknown, c.deliveries, c.acks, c.unconfirmed, c.watched)
}

// filler pads values.
var filler = strings.Repeat("abcdefghijklmnop", 512)

// value is what the operation with the ID stores.
func value(id uint64, padding int) []byte {
	return fmt.Appendf(nil, "#%d:%s", id, filler[:min(padding, len(filler))])
}

// valueOf is the ID of the operation that stored a value; 0 when it is none, or not whole.
func valueOf(payload []byte, marker string) uint64 {
	if marker != "" {
		payload = []byte(marker)
	}
	digits, padding, found := strings.Cut(string(payload), ":")
	if !found || len(digits) < 2 || digits[0] != '#' {
		return 0
	}
	if len(padding) > len(filler) || padding != filler[:len(padding)] {
		return 0
	}
	id, err := strconv.ParseUint(digits[1:], 10, 64)
	if err != nil {
		return 0
	}
	return id
}
