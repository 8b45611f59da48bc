// Package meta is the state machine of the catalog: which servers there are, which streams exist, with which
// configuration, in which group, and which replicas on which servers each group shall have.
//
// It promises that the whole decision about a create, an update, a delete or a placement is taken in Apply, from the state
// and the command alone, so that every replica decides alike; that neither a stream's group nor a replica's id is ever
// used for another; that no server has two replicas of a stream; and that a refused command changes nothing. The
// configurations in commands have been normalised by their proposer (jsapi.StreamConfig.Normalize), which stamps its
// limits and what it sees of the cluster into the command as well: limits are configuration of servers and may differ
// between them.
//
// It does not run groups, and it does not know who their members are: effects say which groups begin, follow a new
// configuration or placement, or end, and the leader of a group reports when the group has followed. Until then servers
// keep what they had.
package meta

import (
	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/spec/assert"
)

// Group is the group of the catalog itself.
const Group uint64 = 1

// FirstGroup is the group of the first stream ever created. Lower numbers belong to the groups of the server itself.
const FirstGroup uint64 = 16

// StreamsMax bounds the catalog: a design load of ten thousand streams, with room.
const StreamsMax = 100_000

type key struct{ account, name string }

// Machine is the catalog. The zero value is not usable; see New. It is not safe for concurrent use.
type Machine struct {
	applied   uint64
	lastTime  int64
	nextGroup uint64
	byName    map[key]*Stream
	byGroup   map[uint64]*Stream
	order     []*Stream // ascending by account, then name
	sum       uint64    // sum of the hashes of all streams
	dirty     map[uint64]struct{}
	plant     Plant

	nextReplica   uint64
	registrations uint64
	formed        bool
	servers       map[uint64]*Server // removed ones too
	roster        []*Server          // those that are not removed, ascending by registration

	// What follows is derived from the above.
	loads  map[uint64]*load
	usages map[string]*usage
	claims map[string]*claims
	total  usage
	// mirrors are the groups of the mirrors of each stream that has any, ascending. The stream need not exist.
	mirrors map[key][]uint64
}

// New returns an empty catalog.
func New() *Machine {
	return &Machine{
		nextGroup:   FirstGroup,
		nextReplica: firstReplica,
		byName:      make(map[key]*Stream),
		byGroup:     make(map[uint64]*Stream),
		dirty:       make(map[uint64]struct{}),
		servers:     make(map[uint64]*Server),
		loads:       make(map[uint64]*load),
		usages:      make(map[string]*usage),
		claims:      make(map[string]*claims),
		mirrors:     make(map[key][]uint64),
	}
}

// Applied is the index of the last applied entry.
func (m *Machine) Applied() uint64 { return m.applied }

// LastTime is the newest timestamp applied, in unix nanoseconds.
func (m *Machine) LastTime() int64 { return m.lastTime }

// Deadline is always 0: the catalog has no timers.
func (m *Machine) Deadline() int64 { return 0 }

// Apply applies one entry and appends one Result per command, preceded by what it asks of the groups. An entry that is
// not a batch of commands is a defect: entries come from our own log.
func (m *Machine) Apply(index uint64, entry []byte, out *effect.List) {
	assert.True(index == m.applied+1, "entries are applied in order", index, m.applied)
	m.applied = index
	m.markDirty(headSection)
	if len(entry) == 0 {
		return
	}
	reader, err := command.Read(entry)
	assert.True(err == nil, "a meta entry is a batch of commands", index)
	m.lastTime = max(m.lastTime, reader.Time())
	var c command.Command
	for reader.Next(&c) {
		m.applyOne(&c, int32(reader.Ordinal()), out)
	}
	assert.True(reader.Err() == nil, "a meta entry holds whole commands", index)
}

func (m *Machine) applyOne(c *command.Command, ordinal int32, out *effect.List) {
	var group uint64
	var changed bool
	var refused *jsapi.Error
	switch c.Kind {
	case command.CreateStream:
		group, changed, refused = m.create(c, out)
	case command.UpdateStream:
		group, refused = m.update(c, out)
		changed = refused == nil
	case command.DeleteStream:
		group, refused = m.delete(c, out)
		changed = refused == nil
	case command.PlaceStream:
		group, refused = m.takeOff(c, out)
		changed = refused == nil
	case command.Settle:
		group, changed = c.Version, m.settle(c, out)
	case command.RegisterServer:
		changed, refused = m.register(c, out)
	case command.RemoveServer:
		refused = m.unregister(c, out)
		changed = refused == nil
	case command.FormCatalog:
		changed = m.form()
	case command.Tick:
		return
	default:
		assert.Unreachable("command of another group in the meta log", uint64(c.Kind))
	}
	result := out.Add(effect.Result)
	result.Cmd, result.Group, result.Flag, result.Err = ordinal, group, changed, refused
}
