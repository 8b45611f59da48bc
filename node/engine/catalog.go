package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir/disk/checkpoint"
	"weir/disk/msgstore"
	"weir/disk/wal"
	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/model/stream"
	"weir/node/event"
	"weir/node/replica"
	"weir/spec/assert"
)

// birth is what the log keeps about a stream's group from its first append on: the catalog entry that the machine
// starts with. Replaying the group's log has to start from this one, not from the newest, or messages would be judged
// by limits that came later.
type birth struct {
	Account string          `json:"account"`
	Name    string          `json:"name"`
	Created int64           `json:"created"`
	Version uint64          `json:"version"`
	Config  json.RawMessage `json:"config"`
}

// openMeta starts the catalog from what was recovered.
func (e *Engine) openMeta() error {
	machine := meta.New()
	found := e.recovered[metaGroup]
	delete(e.recovered, metaGroup)
	if found != nil && found.Damage != nil {
		return fmt.Errorf("the catalog of streams is damaged, restore the data directory from a copy: %w", found.Damage)
	}
	g := &group{id: metaGroup}
	e.meta, e.catalog = g, machine
	if err := e.startGroup(g, machine, found, nil); err != nil {
		return fmt.Errorf("the catalog of streams can not be loaded: %w", err)
	}
	return nil
}

// startGroup restores the machine from the group's checkpoint and starts its replica on the group's log.
func (e *Engine) startGroup(g *group, machine replica.Machine, found *event.Group, initial []byte) error {
	config := replica.Config{
		Group: g.id, ID: selfID, Members: []replica.Member{{ID: selfID}}, Machine: machine, Meta: initial, Boot: e.config.Boot, Load: &e.load,
		Volatile: g.entry != nil && g.entry.Config.Storage == jsapi.MemoryStorage, Plant: e.config.Plant.Replica,
	}
	if found != nil {
		config.Log = found.Log
		config.Meta = nil
		mark, err := restore(machine, &found.Checkpoint)
		if err != nil {
			return err
		}
		config.Snapshot = mark
		if err := g.complete(); err != nil {
			return err
		}
	}
	r, err := replica.New(config)
	if err != nil {
		return err
	}
	g.replica = r
	e.wall = max(e.wall, machine.LastTime())
	e.groups[g.id] = g
	e.order = append(e.order, g)
	return r.Start(e)
}

// complete compares the machine that a checkpoint restored with the index of messages from the same checkpoint.
func (g *group) complete() error {
	if g.index == nil {
		return nil
	}
	if counted, found := g.stream.State().Msgs, g.index.Live(); counted != found {
		return fmt.Errorf("the checkpoint counts %d messages, its blocks hold %d: %w", counted, found, checkpoint.ErrCorrupt)
	}
	return nil
}

// restore loads the sections of a checkpoint into a fresh machine.
func restore(machine replica.Machine, state *checkpoint.State) (checkpoint.Mark, error) {
	if state.Index == 0 {
		return checkpoint.Mark{}, nil
	}
	for i := range state.Sections {
		section := &state.Sections[i]
		if section.ID >= event.MembersSection {
			continue
		}
		if err := machine.RestoreSection(section.ID, section.Data); err != nil {
			return checkpoint.Mark{}, fmt.Errorf("section %d of the checkpoint at index %d: %w", section.ID, state.Index, err)
		}
	}
	if err := machine.Restored(); err != nil {
		return checkpoint.Mark{}, fmt.Errorf("checkpoint at index %d: %w", state.Index, err)
	}
	machine.MarkClean()
	return checkpoint.Mark{Index: state.Index, Term: state.Term}, nil
}

// openStreams opens the group of every stream of the catalog once the catalog serves, and ends the groups of streams
// whose deletion was committed before the server stopped.
func (e *Engine) openStreams() {
	for _, entry := range e.catalog.All() {
		e.openStream(entry)
	}
	for _, id := range slices.Sorted(maps.Keys(e.recovered)) {
		e.endLog(id)
	}
	e.recovered = nil
	e.opened = true
}

// openStream starts the group of a stream of the catalog.
func (e *Engine) openStream(entry *meta.Stream) {
	g := &group{id: wal.GroupID(entry.Group), entry: entry, account: e.accountNamed[entry.Account]}
	found := e.recovered[g.id]
	delete(e.recovered, g.id)
	if entry.Config.Storage == jsapi.MemoryStorage {
		found = nil
	}
	err := e.startStream(g, found)
	if err == nil {
		return
	}
	g.damaged = err
	e.groups[g.id] = g
	e.byName[streamKey{entry.Account, entry.Name}] = g
	e.logf(event.Error, fmt.Sprintf("Stream '%s > %s' is not available, its data is left as it is: %v",
		entry.Account, entry.Name, err))
}

func (e *Engine) startStream(g *group, found *event.Group) error {
	switch {
	case g.account == nil || g.account.limits == nil:
		return errors.New("its account has no JetStream in the configuration")
	case found != nil && found.Damage != nil:
		return found.Damage
	}
	initial, first, err := e.birthOf(g.entry, found)
	if err != nil {
		return err
	}
	g.stream = stream.New(stream.Options{
		Account: g.entry.Account, Name: g.entry.Name, Config: first.config, ConfigVersion: first.version,
		Created: g.entry.Created, Incarnation: g.entry.Group, Plant: e.config.Plant.Stream,
	})
	g.index = msgstore.NewIndex(msgstore.IndexOptions{
		BlockBytes: e.config.JetStream.BlockBytes, Volatile: g.entry.Config.Storage == jsapi.MemoryStorage,
		Compress: g.entry.Config.Compression != jsapi.NoCompression,
	})
	if found != nil {
		g.index.Restore(found.NextBlock, found.Blocks)
	}
	if err := e.startGroup(g, g.stream, found, initial); err != nil {
		return err
	}
	e.byName[streamKey{g.entry.Account, g.entry.Name}] = g
	e.capture(g)
	return nil
}

type firstConfig struct {
	config  *jsapi.StreamConfig
	version uint64
}

// birthOf returns the entry that the stream's machine starts from, and its bytes for the log.
func (e *Engine) birthOf(entry *meta.Stream, found *event.Group) ([]byte, firstConfig, error) {
	if found == nil || len(found.Log.Meta) == 0 {
		b := birth{Account: entry.Account, Name: entry.Name, Created: entry.Created, Version: entry.Version, Config: entry.JSON}
		data, err := json.Marshal(&b)
		return data, firstConfig{entry.Config, entry.Version}, err
	}
	var b birth
	if err := json.Unmarshal(found.Log.Meta, &b); err != nil {
		return nil, firstConfig{}, fmt.Errorf("description of the group in the log: %w", err)
	}
	if b.Account != entry.Account || b.Name != entry.Name || b.Created != entry.Created {
		return nil, firstConfig{}, fmt.Errorf("the log holds stream '%s > %s' in the place of '%s > %s'",
			b.Account, b.Name, entry.Account, entry.Name)
	}
	config, err := jsapi.ParseStreamConfig(b.Config)
	if err != nil {
		return nil, firstConfig{}, fmt.Errorf("configuration of the stream in the log: %w", err)
	}
	return found.Log.Meta, firstConfig{config, b.Version}, nil
}

// catalogApplied carries out what an entry of the catalog asks of the groups.
func (e *Engine) catalogApplied(effects *effect.List) {
	if !e.opened {
		if e.meta.replica.Serving() {
			e.openStreams()
		}
		return
	}
	for i := range effects.Effects {
		f := &effects.Effects[i]
		switch f.Kind {
		case effect.GroupCreated:
			e.openStream(e.catalog.ByGroup(f.Group))
		case effect.GroupUpdated:
			g := e.groups[wal.GroupID(f.Group)]
			g.entry = e.catalog.ByGroup(f.Group)
			e.followCatalog(g)
		case effect.GroupDeleted:
			e.endStream(e.groups[wal.GroupID(f.Group)])
		}
	}
}

// followCatalog proposes the catalog's configuration to a stream that has an older one.
func (e *Engine) followCatalog(g *group) {
	if g.damaged != nil || !g.replica.Serving() || g.stream.ConfigVersion() >= g.entry.Version || g.following >= g.entry.Version {
		return
	}
	g.following = g.entry.Version
	g.replica.Propose(&command.Command{Kind: command.PutStream, Config: g.entry.JSON, Version: g.entry.Version}, nil)
	e.markDirty(g)
}

// endStream ends a stream whose deletion is committed.
func (e *Engine) endStream(g *group) {
	key := streamKey{g.entry.Account, g.entry.Name}
	if e.byName[key] == g {
		delete(e.byName, key)
	}
	if g.damaged == nil {
		e.release(g)
		e.desk.StreamDeleted(e.now.Mono, uint64(g.id)) // while the group can still be sent for
	}
	delete(e.groups, g.id)
	if g.damaged == nil {
		g.replica.Retire()
		e.cached -= g.cached
		e.unwritten -= g.unwritten
		for i, other := range e.order {
			if other == g {
				e.order = append(e.order[:i], e.order[i+1:]...)
				break
			}
		}
	}
	e.endLog(g.id)
}

// endLog ends a group in the log and removes its files.
func (e *Engine) endLog(id wal.GroupID) {
	assert.True(id != metaGroup, "the catalog never ends")
	e.appendOnly(wal.Write{Group: id, Drop: true})
	e.drops = append(e.drops, event.Op{Kind: event.Drop, Ticket: e.ticket(), Group: id})
}
