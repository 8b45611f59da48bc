package replica

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/wal"
	"weir/model/command"
	"weir/model/effect"
	"weir/node/event"
)

// counter is a machine that counts the commands applied; every command is a message whose payload is its number.
type counter struct {
	t        *testing.T
	applied  uint64
	commands uint64
	last     []uint64 // numbers in the newest entry
	time     int64
	boot     uint64 // that proposed the newest entry
}

func (c *counter) Apply(index uint64, entry []byte, _ *effect.List) {
	c.applied, c.last = index, c.last[:0]
	if len(entry) == 0 {
		return
	}
	reader, err := command.Read(entry)
	boot := reader.Token() >> 24
	if err != nil || boot == c.boot && reader.Time() <= c.time {
		c.t.Fatalf("entry %d at time %d follows one at %d: %v", index, reader.Time(), c.time, err)
	}
	c.time, c.boot = reader.Time(), boot
	var cmd command.Command
	for reader.Next(&cmd) {
		c.last = append(c.last, binary.LittleEndian.Uint64(cmd.Payload))
		c.commands++
	}
}

func (c *counter) Applied() uint64                                   { return c.applied }
func (c *counter) LastTime() int64                                   { return c.time }
func (c *counter) Deadline() int64                                   { return 0 }
func (c *counter) Digest() uint64                                    { return c.commands }
func (c *counter) DirtySections(dst []uint64) []uint64               { return dst }
func (c *counter) AppendSection(dst []byte, _ uint64) ([]byte, bool) { return dst, false }
func (c *counter) MarkClean()                                        {}
func (c *counter) MarkDirty([]uint64)                                {}
func (c *counter) RestoreSection(uint64, []byte) error               { return nil }
func (c *counter) Restored() error                                   { return nil }

// life is one run of a process with one replica, on a log that outlives it.
type life struct {
	t       *testing.T
	rng     *rand.Rand
	replica *Replica
	machine *counter
	log     *wal.Group // what is durable
	pending []pendingWrite
	ticket  event.Ticket

	proposed uint64            // commands of this life and those recovered
	numbers  uint64            // given to commands, over all lives
	told     map[uint64]int    // how often the proposer of a command was told
	reads    map[int]*readSeen // by the order in which they were asked
}

type pendingWrite struct {
	ticket event.Ticket
	write  wal.Write
}

type readSeen struct {
	after uint64 // commands proposed before
	told  int
}

func (l *life) Undone(*Replica, *Batch) {}

func (l *life) Persist(w wal.Write) event.Ticket {
	l.ticket++
	l.pending = append(l.pending, pendingWrite{l.ticket, w})
	return l.ticket
}

// Applied holds an applied entry against what is durable, and the callers against the commands.
func (l *life) Applied(r *Replica, batch *Batch, _ *effect.List) {
	durable := uint64(0)
	if n := len(l.log.Entries); n > 0 {
		durable = l.log.Entries[n-1].Index
	}
	if l.machine.applied > durable {
		l.t.Fatalf("entry %d is applied, durable is %d", l.machine.applied, durable)
	}
	if batch == nil {
		return
	}
	if batch.Len() != len(l.machine.last) {
		l.t.Fatalf("entry %d has %d commands, its callers are %d", l.machine.applied, len(l.machine.last), batch.Len())
	}
	for i, number := range l.machine.last {
		if done := batch.Origin(int32(i)).Done; done != nil {
			done(&effect.Effect{Seq: number})
		} else if string(batch.Reply(int32(i))) != string(binary.LittleEndian.AppendUint64(nil, number)) {
			l.t.Fatalf("command %d is answered to another caller", number)
		}
	}
}

// finish makes the oldest write durable and tells the replica.
func (l *life) finish() {
	if len(l.pending) == 0 {
		return
	}
	p := l.pending[0]
	l.pending = l.pending[1:]
	l.log.Entries = append(l.log.Entries, p.write.Entries...)
	l.log.HardState, l.log.HasHardState = p.write.HardState, true
	l.replica.Persisted(p.ticket, l)
}

func (l *life) propose() {
	l.numbers++
	number := l.numbers
	l.proposed++
	text := binary.LittleEndian.AppendUint64(nil, number)
	c := command.Command{Kind: command.Publish, Subject: []byte("s"), Payload: text}
	if l.rng.IntN(2) == 0 {
		l.replica.Publish(&Published{Subject: c.Subject, Payload: c.Payload, Reply: text})
		return
	}
	l.told[number] = 0
	l.replica.Propose(&c, func(result *effect.Effect) {
		l.told[number]++
		if result != nil && result.Seq != number {
			l.t.Fatalf("command %d is answered to the caller of %d", result.Seq, number)
		}
	})
}

func (l *life) read() {
	seen := &readSeen{after: l.proposed}
	l.reads[len(l.reads)] = seen
	l.replica.Read(func(ok bool) {
		seen.told++
		if ok && l.machine.commands < seen.after {
			l.t.Fatalf("a read was answered after %d commands, %d were proposed before it", l.machine.commands, seen.after)
		}
	})
}

// end lets the replica fail and checks that nobody waits for ever, or is told twice.
func (l *life) end() {
	if l.rng.IntN(2) == 0 {
		l.replica.Fail(errors.New("the log is gone"))
	} else {
		l.replica.Retire()
	}
	for number, told := range l.told {
		if told != 1 {
			l.t.Fatalf("the proposer of command %d was told %d times", number, told)
		}
	}
	for i, seen := range l.reads {
		if seen.told != 1 {
			l.t.Fatalf("read %d was answered %d times", i, seen.told)
		}
	}
	if l.replica.Serving() {
		l.t.Fatal("a replica that ended serves")
	}
}

// TestCommandsAndReadsKeepTheirPromises drives a replica on a slow log through random commands, reads and ends, over
// several lives of the process: nothing is applied before it is durable, every caller hears of its own command, a read
// sees what was proposed before it, and the time of the batches of one life ascends.
func TestCommandsAndReadsKeepTheirPromises(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		log := &wal.Group{ID: 7}
		numbers, wall := uint64(0), int64(1_000)
		for boot := uint64(1); boot <= 3; boot++ {
			l := &life{t: t, rng: rng, log: log, machine: &counter{t: t}, numbers: numbers, told: map[uint64]int{}, reads: map[int]*readSeen{}}
			l.run(boot, &wall)
			numbers = l.numbers
		}
	}
}

func (l *life) run(boot uint64, wall *int64) {
	for _, e := range l.log.Entries { // those may be applied again, and then count as proposed before
		if reader, err := command.Read(e.Data); err == nil {
			var c command.Command
			for reader.Next(&c) {
				l.proposed++
			}
		}
	}
	var err error
	l.replica, err = New(Config{Group: 7, ID: 1, Members: []Member{{ID: 1}}, Machine: l.machine, Log: *l.log, Boot: boot, Load: &Load{}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.replica.Start(l)
	for range 20 + l.rng.IntN(60) {
		switch l.rng.IntN(8) {
		case 0, 1, 2:
			l.propose()
		case 3:
			l.read()
		case 4, 5:
			*wall += int64(l.rng.IntN(3)) // it may stand still
			l.replica.Flush(event.Time{Wall: *wall}, l)
		default:
			l.finish()
		}
	}
	l.end()
}

func (l *life) Send(_ *Replica, to Member, _ *pb.Message) { l.t.Fatalf("a message for %d", to.ID) }
func (l *life) Role(*Replica)                             {}
func (l *life) Members(*Replica)                          {}
func (l *life) Woke(*Replica)                             {}
