package workload

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"weir/sim/plan"
)

// Reborn is a stream that lives twice while it has a mirror. Only the administrator uses it, and gives it up after an answer
// that does not come: what was asked for may take effect at any time then.
type Reborn struct {
	load *Workload
	spec *plan.Rebirth
	// Life is the last life that is known to have begun, Sent how many messages of it were acknowledged. GivenUp says that an
	// answer did not come.
	Life, Sent int
	GivenUp    bool
	// Purged says that the mirror was purged after the second life had begun.
	Purged bool

	// Read says that the mirror was read back: the sequences that it holds, of which lives, and what it says is wrong.
	Read  bool
	Seqs  []uint64
	Lives []int
	Error string
}

// Name is the name of the stream.
func (b *Reborn) Name() string { return b.spec.Name }

func (b *Reborn) mirror() string { return "M" + b.spec.Name }

// ask sends a request and gives its answer to next, unless there is none that decides.
func (b *Reborn) ask(subject, body string, next func(*answer)) {
	c := b.load.admin()
	c.whenReady(func() {
		c.request(request{subject: subject, body: []byte(body)}, func(m *message) {
			var a answer
			if m == nil || m.status != 0 || json.Unmarshal(m.payload, &a) != nil || a.Error != nil {
				b.GivenUp = true
				return
			}
			next(&a)
		})
	})
}

func (b *Reborn) begin() {
	b.create(func() {
		body := fmt.Sprintf(`{"name":%q,"mirror":{"name":%q},"storage":"file","allow_direct":true,"num_replicas":%d}`,
			b.mirror(), b.Name(), max(b.spec.Replicas, 1))
		b.ask("$JS.API.STREAM.CREATE."+b.mirror(), body, func(*answer) { b.publish(b.spec.Count, b.rebirth) })
	})
}

// create begins a life.
func (b *Reborn) create(then func()) {
	body := fmt.Sprintf(`{"name":%q,"subjects":["%s.>"],"storage":"file","num_replicas":%d}`, b.Name(), b.Name(), max(b.spec.Replicas, 1))
	b.ask("$JS.API.STREAM.CREATE."+b.Name(), body, func(*answer) {
		b.Life, b.Sent = b.Life+1, 0
		then()
	})
}

func (b *Reborn) publish(count int, then func()) {
	if b.Sent == count {
		then()
		return
	}
	b.ask(b.Name()+".x", strconv.Itoa(b.Life), func(*answer) {
		b.Sent++
		b.publish(count, then)
	})
}

func (b *Reborn) rebirth() {
	b.ask("$JS.API.STREAM.DELETE."+b.Name(), "", func(*answer) {
		b.create(func() { b.publish(b.spec.Count+1, b.purge) })
	})
}

func (b *Reborn) purge() {
	if b.spec.PurgeMirror {
		b.ask("$JS.API.STREAM.PURGE."+b.mirror(), "", func(*answer) { b.Purged = true })
	}
}

// readReborn reads the mirrors of reborn streams back once they are at rest, and everything after them.
func (l *Workload) readReborn(i int, done *bool) {
	if i == len(l.Rebirths) || l.Rebirths[i].GivenUp {
		*done = true
		return
	}
	b := l.Rebirths[i]
	again := func() { l.later(func() { l.readReborn(i, done) }) }
	if b.Life < 2 || b.Sent <= b.spec.Count || b.spec.PurgeMirror && !b.Purged {
		again() // its life goes on
		return
	}
	l.ask(request{subject: "$JS.API.STREAM.INFO." + b.mirror()}, func(m *message) {
		var info mirrorState
		b.Error = ""
		if json.Unmarshal(m.payload, &info) != nil || info.Error != nil && !l.world.Rotten() {
			again()
			return
		}
		if info.Mirror.Error != nil {
			b.Error = info.Mirror.Error.Description
		}
		switch {
		case info.Error != nil:
			*done = true
		case info.State.Last < uint64(b.Sent) && (b.Purged || !strings.Contains(b.Error, "another one")) && !l.world.Rotten():
			again()
		default:
			b.readAll(&info, func() { l.readReborn(i+1, done) })
		}
	})
}

func (b *Reborn) readAll(info *mirrorState, done func()) {
	var reads []func(done func())
	for seq := max(info.State.First, 1); seq <= info.State.Last; seq++ {
		reads = append(reads, func(done func()) { b.readSeq(seq, done) })
	}
	inTurn(reads, func() {
		b.Read = true
		done()
	})
}

func (b *Reborn) readSeq(seq uint64, done func()) {
	ask := request{subject: "$JS.API.DIRECT.GET." + b.mirror(), body: fmt.Appendf(nil, `{"seq":%d}`, seq)}
	b.load.ask(ask, func(m *message) {
		if m.status != 0 && m.status != 404 && !b.load.world.Rotten() {
			b.load.later(func() { b.readSeq(seq, done) })
			return
		}
		if life, err := strconv.Atoi(string(m.payload)); m.status == 0 && err == nil {
			b.Seqs, b.Lives = append(b.Seqs, seq), append(b.Lives, life)
		}
		done()
	})
}
