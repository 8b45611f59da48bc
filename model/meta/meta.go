// Package meta is the state machine of the catalog: which streams exist, with which configuration, in which group.
//
// It promises that the whole decision about a create, an update or a delete is taken in Apply, from the state and the
// command alone, so that every replica decides alike; that a stream's group is never used for another stream again; and
// that a refused command changes nothing. The configurations in commands have been normalised by their proposer
// (jsapi.StreamConfig.Normalize), which stamps its limits into the command as well: limits are configuration of servers
// and may differ between them.
//
// It does not run groups: effects say which groups begin, follow a new configuration, or end.
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

// Stream is one entry of the catalog. It is not changed after it was handed out; an update makes a new one.
type Stream struct {
	// Account and Name identify the stream; Name is unique in the account.
	Account, Name string
	// Group is the Raft group that holds the stream. It is the incarnation too: another stream of the same name, later,
	// has another group.
	Group uint64
	// Created is the time of creation in unix nanoseconds.
	Created int64
	// Version counts configurations, from 1.
	Version uint64
	// Config is the normalised configuration.
	Config *jsapi.StreamConfig
	// JSON is the canonical form of Config.
	JSON []byte
}

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
}

// New returns an empty catalog.
func New() *Machine {
	return &Machine{
		nextGroup: FirstGroup,
		byName:    make(map[key]*Stream),
		byGroup:   make(map[uint64]*Stream),
		dirty:     make(map[uint64]struct{}),
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
	case command.Tick:
		return
	default:
		assert.Unreachable("command of another group in the meta log", uint64(c.Kind))
	}
	result := out.Add(effect.Result)
	result.Cmd, result.Group, result.Flag, result.Err = ordinal, group, changed, refused
}

// create adds a stream. Creating one that exists with the same configuration succeeds and changes nothing.
func (m *Machine) create(c *command.Command, out *effect.List) (group uint64, created bool, refused *jsapi.Error) {
	config, limits := parseProposal(c.Config)
	id := key{string(c.Account), string(c.Name)}
	if existing := m.byName[id]; existing != nil {
		if existing.Config.Equal(config) {
			return existing.Group, false, nil
		}
		return 0, false, jsapi.CodeStreamNameExist.Err()
	}
	if refused := m.checkCreate(id, config, limits); refused != nil {
		return 0, false, refused
	}
	stream := &Stream{
		Account: id.account, Name: id.name, Group: m.nextGroup, Created: m.lastTime, Version: 1,
		Config: config, JSON: config.AppendJSON(nil),
	}
	m.nextGroup++
	m.insert(stream)
	out.Add(effect.GroupCreated).Group = stream.Group
	return stream.Group, true, nil
}

func (m *Machine) update(c *command.Command, out *effect.List) (group uint64, refused *jsapi.Error) {
	config, limits := parseProposal(c.Config)
	old := m.byName[key{string(c.Account), string(c.Name)}]
	if old == nil {
		return 0, jsapi.CodeStreamNotFound.Err()
	}
	if refused := config.CheckUpdate(old.Config); refused != nil {
		return 0, refused
	}
	if refused := m.checkUpdate(old, config, limits); refused != nil {
		return 0, refused
	}
	stream := *old
	stream.Config, stream.JSON = config, config.AppendJSON(nil)
	stream.Version++
	m.remove(old)
	m.insert(&stream)
	out.Add(effect.GroupUpdated).Group = stream.Group
	return stream.Group, nil
}

func (m *Machine) delete(c *command.Command, out *effect.List) (group uint64, refused *jsapi.Error) {
	stream := m.byName[key{string(c.Account), string(c.Name)}]
	if stream == nil || c.Version != 0 && c.Version != stream.Group {
		return 0, jsapi.CodeStreamNotFound.Err()
	}
	m.remove(stream)
	out.Add(effect.GroupDeleted).Group = stream.Group
	return stream.Group, nil
}
