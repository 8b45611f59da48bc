// Package stream is the state machine of one stream group: the stream, its consumers, its duplicate window.
//
// It promises that Apply is total and depends on nothing but the state and the entry, so that all replicas agree; that
// a refused command changes nothing; that the indexes (sequences per subject, sequences per filter, counts) are exact at
// every applied index; and that no single command costs more than what it touches.
//
// It keeps metadata only. Bodies of messages pass through as effects; whoever carries them out stores and reads them.
// Proposing, replying and the clock are the concern of the node.
package stream

import (
	"weir/model/command"
	"weir/model/consumer"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/subject"
	"weir/spec/assert"
)

// Options describe a stream at the birth of its machine.
type Options struct {
	// Account owns the stream, Name is unique in it.
	Account, Name string
	// Config is a normalised configuration. The machine keeps it and never changes it.
	Config *jsapi.StreamConfig
	// ConfigVersion is the version of Config in the catalog. PutStream commands of versions up to it are ignored.
	ConfigVersion uint64
	// Created is when the stream was created, unix nanoseconds.
	Created int64
	// Incarnation identifies the stream among all that ever had its name.
	Incarnation uint64
	// Plant are faults to plant, none in production.
	Plant Plant
}

// Plant names faults that a simulation plants into the machine in order to prove that its checks find them.
type Plant struct {
	// LoseDedup restores a machine without its duplicate window.
	LoseDedup bool
	// LoosePerSubject lets a restored machine keep one message per subject too many.
	LoosePerSubject bool
	// ApplyTwice applies the first entry after a restart twice.
	ApplyTwice bool
	// BlindDigest leaves the consumers out of the digest.
	BlindDigest bool
	// OwnClock, when it is not nil, is the clock of the server, unix nanoseconds, by which ticks are judged instead of the
	// time in the log.
	OwnClock func() int64
	// Consumer are the faults of the consumers.
	Consumer consumer.Plant
}

// Machine is the replicated state of one stream group. It is not safe for concurrent use.
type Machine struct {
	account, name string
	incarnation   uint64
	created       int64
	config        *jsapi.StreamConfig
	configVersion uint64
	configHash    uint64
	plant         Plant

	// applied is the index of the last entry.
	applied uint64
	// clock is the largest time of any entry, unix nanoseconds.
	clock int64

	log   messages
	dedup dedupTable
	// lastMsgID is the message id of the last stored message, "" when it had none.
	lastMsgID string
	consumers consumers
	// copied is what a mirror has of the stream that it copies.
	copied Copied
	// patterns are the subjects of the configuration.
	patterns *subject.Sublist[int]
	// strays says that there may be messages under other subjects: of before an update, or of publishers that it overtook.
	strays bool
	dirty  *dirtySet

	// restoring gathers sections between RestoreSection and Restored.
	restoring *restoring
	// restored says that the machine came from sections and has not applied anything since; only plants look at it.
	restored bool

	// The rest is scratch space of one Apply.
	out     *effect.List
	batch   consumer.Batch
	cmd     command.Command
	planted effect.List
}

// New returns the machine of an empty stream.
func New(o Options) *Machine {
	assert.True(o.Config != nil, "a stream has a configuration")
	dirty := newDirtySet()
	m := &Machine{
		account: o.Account, name: o.Name, incarnation: o.Incarnation, created: o.Created,
		plant: o.Plant,
		log:   newMessages(o.Config.Storage == jsapi.FileStorage, dirty),
		dedup: newDedupTable(dirty),
		dirty: dirty,
	}
	m.consumers = newConsumers()
	m.setConfig(o.Config, o.ConfigVersion)
	m.startAt(o.Config.FirstSeq)
	return m
}

// setConfig makes config current without acting on it.
func (m *Machine) setConfig(config *jsapi.StreamConfig, version uint64) {
	m.config, m.configVersion = config, version
	m.configHash = hashText(config.AppendJSON(nil))
	m.patterns = subject.NewSublist[int]()
	for i, pattern := range config.Subjects {
		m.patterns.Insert(pattern, i)
	}
	m.dirty.add(headSection)
}

// startAt makes seq the first sequence of a stream that never held a message; 0 is the usual start.
func (m *Machine) startAt(seq uint64) {
	if seq > 0 {
		m.log.first, m.log.last = seq, seq-1
	}
}

// Apply carries out the entry at the index, which has to follow the last applied one, and appends the effects to out.
// An entry is a batch of package command, or empty. The effects alias the entry.
func (m *Machine) Apply(index uint64, entry []byte, out *effect.List) {
	assert.True(index == m.applied+1, "applied index follows the one before", index, m.applied)
	assert.True(m.restoring == nil, "no section waits for Restored", index)
	m.applied = index
	m.dirty.add(headSection)
	if len(entry) == 0 {
		return
	}
	if m.restored && m.plant.ApplyTwice {
		m.applyTwice(entry, out)
	}
	m.restored = m.restored && m.plant.LoosePerSubject
	m.applyBatch(entry, out)
}

// applyTwice is the planted fault: the first application keeps what storage hears of, its answers get lost.
func (m *Machine) applyTwice(entry []byte, out *effect.List) {
	m.restored = false
	m.planted.Reset()
	m.applyBatch(entry, &m.planted)
	for _, e := range m.planted.Effects {
		if e.Kind == effect.Store || e.Kind == effect.Forget {
			*out.Add(e.Kind) = e
		}
	}
}

func (m *Machine) applyBatch(entry []byte, out *effect.List) {
	r, err := command.Read(entry)
	assert.True(err == nil, "entry is a batch of commands", m.applied, uint64(len(entry)))
	m.clock = max(m.clock, r.Time())
	m.out = out
	m.batch = consumer.Batch{Time: m.clock, Index: m.applied, Out: out}
	for r.Next(&m.cmd) {
		m.batch.Cmd = int32(r.Ordinal())
		m.applyCommand()
	}
	assert.True(r.Err() == nil, "batch of commands is well-formed", m.applied, uint64(r.Ordinal()))
	m.out, m.batch.Out, m.cmd = nil, nil, command.Command{}
}

func (m *Machine) applyCommand() {
	c := &m.cmd
	switch c.Kind {
	case command.Publish:
		m.publish(c)
	case command.PutConsumer, command.DeleteConsumer, command.Deliver, command.Ack, command.Nak, command.Progress,
		command.Term, command.Release, command.Reset:
		m.applyConsumer(c)
	case command.Tick:
		m.tick()
	case command.Purge:
		m.purge(c)
	case command.DeleteMsg:
		m.deleteMsg(c)
	case command.PutStream:
		m.putStream(c)
	case command.Follow:
		m.follow(c)
	case command.Copy:
		m.copy(c)
	default:
		assert.Unreachable("kind of command in a stream's log", uint64(c.Kind), m.applied)
	}
}

// result adds the answer to the current command.
func (m *Machine) result() *effect.Effect {
	e := m.out.Add(effect.Result)
	e.Cmd = m.batch.Cmd
	return e
}

// refuse answers the current command with an error.
func (m *Machine) refuse(err *jsapi.Error) { m.result().Err = err }

// Applied is the index of the last applied entry.
func (m *Machine) Applied() uint64 { return m.applied }

// LastTime is the clock of the machine: the largest time of any applied entry, unix nanoseconds.
func (m *Machine) LastTime() int64 { return m.clock }

// Config is the current configuration. It is not to be changed.
func (m *Machine) Config() *jsapi.StreamConfig { return m.config }

// ConfigVersion is the catalog's version of the current configuration.
func (m *Machine) ConfigVersion() uint64 { return m.configVersion }

// Account is the name of the account that owns the stream.
func (m *Machine) Account() string { return m.account }

// Name is the name of the stream.
func (m *Machine) Name() string { return m.name }

// Created is when the stream was created, unix nanoseconds.
func (m *Machine) Created() int64 { return m.created }

// Incarnation identifies the stream among all that ever had its name.
func (m *Machine) Incarnation() uint64 { return m.incarnation }
