package world

import (
	"fmt"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/stream"
	"weir/node/replica"
)

// blind checks that the digest of a stream sees its consumers: two copies of the state, one of which loses a consumer,
// must differ. The comparison of replicas is worth what the digest is worth.
func (w *World) blind(r *replica.Replica) {
	m, ok := r.Machine().(*stream.Machine)
	if !ok || len(m.Consumers()) == 0 {
		return
	}
	last := m.Consumers()[len(m.Consumers())-1]
	with, err := w.afterCommand(m, &command.Command{Kind: command.DeleteConsumer, Name: []byte("no such consumer")})
	without, err2 := w.afterCommand(m, &command.Command{Kind: command.DeleteConsumer, Name: []byte(last.Config().Name)})
	if err != nil || err2 != nil {
		w.violate("sections", "group %d: the sections of its state make no state: %v", r.Group(), err)
		return
	}
	if with == without {
		w.violate("digest-blind", "group %d: the digest is the same with and without the consumer %s", r.Group(), last.Config().Name)
	}
}

// afterCommand is the digest of a copy of a state that one more command was applied to.
func (w *World) afterCommand(m *stream.Machine, c *command.Command) (uint64, error) {
	c2 := stream.New(stream.Options{
		Account: m.Account(), Name: m.Name(), Config: m.Config(), ConfigVersion: m.ConfigVersion(), Created: m.Created(),
		Incarnation: m.Incarnation(), Plant: w.machines[0].config().Engine.Plant.Stream,
	})
	for _, id := range m.Sections(nil) {
		data, ok := m.AppendSection(nil, id)
		if !ok {
			continue
		}
		if err := c2.RestoreSection(id, data); err != nil {
			return 0, fmt.Errorf("section %d: %w", id, err)
		}
	}
	if err := c2.Restored(); err != nil {
		return 0, err
	}
	var out effect.List
	c2.Apply(m.Applied()+1, command.Append(command.AppendHeader(nil, m.LastTime()+1, 1), c), &out)
	return c2.Digest(), nil
}
