package stream

import (
	"cmp"
	"slices"

	"weir/model/command"
	"weir/model/consumer"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/spec/assert"
)

// entry is one consumer of the stream. It is the stream as its State sees it.
type entry struct {
	machine *Machine
	id      uint64
	name    string
	state   *consumer.State
	// view are the messages that the filters select.
	view *view
	// filters is the slice of filters that view was last asked for with.
	filters []string
	// next is the view of the configuration that replaces the present one, during the update.
	next *view
	// configHash is the digest of the configuration.
	configHash uint64
	// refiltered says that the filters have changed: then messages that they do not select may be pending.
	refiltered bool
}

func (e *entry) compare(other *entry) int { return cmp.Compare(e.id, other.id) }

// consumers are the consumers of the stream and the views that serve them.
type consumers struct {
	// byID and byName hold the same entries in their two orders.
	byID, byName []*entry
	views        views
	// lastID is the last incarnation that was given to a consumer.
	lastID uint64
	// refiltered are the entries marked so, in order of their ids.
	refiltered []*entry
}

func newConsumers() consumers { return consumers{views: newViews()} }

func (c *consumers) find(id uint64) *entry {
	i, found := slices.BinarySearchFunc(c.byID, id, func(e *entry, id uint64) int { return cmp.Compare(e.id, id) })
	if !found {
		return nil
	}
	return c.byID[i]
}

func (c *consumers) findName(name string) *entry {
	i, found := c.searchName(name)
	if !found {
		return nil
	}
	return c.byName[i]
}

func (c *consumers) searchName(name string) (int, bool) {
	return slices.BinarySearchFunc(c.byName, name, func(e *entry, name string) int { return cmp.Compare(e.name, name) })
}

func (c *consumers) insert(e *entry) {
	at, found := slices.BinarySearchFunc(c.byID, e, (*entry).compare)
	assert.True(!found, "incarnation of a new consumer is new", e.id)
	c.byID = slices.Insert(c.byID, at, e)
	at, found = c.searchName(e.name)
	assert.True(!found, "name of a new consumer is new", e.id)
	c.byName = slices.Insert(c.byName, at, e)
	if e.refiltered {
		c.markRefiltered(e)
	}
}

func (c *consumers) markRefiltered(e *entry) {
	e.refiltered = true
	if at, found := slices.BinarySearchFunc(c.refiltered, e, (*entry).compare); !found {
		c.refiltered = slices.Insert(c.refiltered, at, e)
	}
}

func (c *consumers) remove(e *entry) {
	same := func(other *entry) bool { return other == e }
	c.byID = slices.DeleteFunc(c.byID, same)
	c.byName = slices.DeleteFunc(c.byName, same)
	c.refiltered = slices.DeleteFunc(c.refiltered, same)
}

// counted is the number of consumers that count against max_consumers.
func (c *consumers) counted() int {
	n := 0
	for _, e := range c.byID {
		if config := e.state.Config(); !config.Direct && !config.Sourcing {
			n++
		}
	}
	return n
}

func (m *Machine) consumersDigest() uint64 {
	h := mix(m.consumers.lastID, uint64(len(m.consumers.byID)))
	for _, e := range m.consumers.byID {
		h = mix(h, mix(e.configHash, e.state.Digest()))
	}
	return h
}

// changing returns the state of a consumer for an operation that may change it.
func (m *Machine) changing(e *entry) *consumer.State {
	m.dirty.add(consumerSection | e.id)
	return e.state
}

// applyConsumer carries out the commands that concern one consumer.
func (m *Machine) applyConsumer(c *command.Command) {
	switch c.Kind {
	case command.PutConsumer:
		m.putConsumer(c)
		return
	case command.DeleteConsumer:
		m.deleteConsumer(c)
		return
	}
	e := m.consumers.find(c.Consumer)
	if e == nil {
		m.answerGone(c)
		return
	}
	state := m.changing(e)
	delivery := consumer.Delivery{StreamSeq: c.StreamSeq, ConsumerSeq: c.ConsumerSeq, Deliveries: c.Deliveries}
	switch c.Kind {
	case command.Deliver:
		state.Deliver(&m.batch, consumer.Request{Token: c.Token, Count: c.Count, MaxBytes: c.MaxBytes})
	case command.Ack:
		state.Ack(&m.batch, delivery)
	case command.Nak:
		state.Nak(&m.batch, delivery, c.Delay)
	case command.Progress:
		state.Progress(&m.batch, delivery)
	case command.Term:
		state.Term(&m.batch, delivery, string(c.Text))
	case command.Release:
		state.Release(&m.batch, delivery)
	case command.Reset:
		m.resetConsumer(c, state)
	default:
		assert.Unreachable("kind of a consumer command", uint64(c.Kind))
	}
}

// answerGone answers a command for a consumer that does not exist any more. Acknowledgements get no reply.
func (m *Machine) answerGone(c *command.Command) {
	if c.Kind == command.Deliver {
		e := m.out.Add(effect.Delivered)
		e.Cmd, e.Consumer, e.Token, e.Stop = m.batch.Cmd, c.Consumer, c.Token, effect.StopGone
	}
	e := m.result()
	e.Consumer, e.Err = c.Consumer, jsapi.CodeConsumerNotFound.Err()
}

func (m *Machine) putConsumer(c *command.Command) {
	config, err := jsapi.ParseConsumerConfig(c.Config)
	assert.True(err == nil, "configuration of a consumer in the log is well-formed", m.applied, uint64(len(c.Config)))
	existing := m.consumers.findName(string(c.Name))
	switch {
	case existing == nil && c.Action == command.UpdateOnly:
		m.refuse(jsapi.CodeConsumerDoesNotExist.Err())
	case existing == nil:
		m.createConsumer(string(c.Name), config)
	case existing.state.Config().Equal(config):
		m.result().Consumer = existing.id
	case c.Action == command.CreateOnly:
		m.refuse(jsapi.CodeConsumerAlreadyExists.Err())
	default:
		m.updateConsumer(existing, config)
	}
}

func (m *Machine) consumerOptions() consumer.Options {
	return consumer.Options{Stream: m.name, OnePerSubject: m.config.MaxMsgsPerSubject == 1, Plant: m.plant.Consumer}
}

func (m *Machine) createConsumer(name string, config *jsapi.ConsumerConfig) {
	if limit := m.config.MaxConsumers; limit > 0 && !config.Direct && !config.Sourcing && m.consumers.counted() >= limit {
		m.refuse(jsapi.CodeMaximumConsumersLimit.Err())
		return
	}
	m.consumers.lastID++
	e := &entry{machine: m, id: m.consumers.lastID, name: name, configHash: hashText(config.AppendJSON(nil))}
	e.view = m.acquireView(config.Filters())
	e.view.join(e)
	e.state = consumer.New(consumer.Params{ID: e.id, Name: name, Config: config, Options: m.consumerOptions()}, e, m.clock)
	m.consumers.insert(e)
	m.dirty.add(consumerSection | e.id)
	created := m.out.Add(effect.ConsumerCreated)
	created.Cmd, created.Consumer, created.Text = m.batch.Cmd, e.id, name
	r := m.result()
	r.Consumer, r.Flag = e.id, true
}

func (m *Machine) updateConsumer(e *entry, config *jsapi.ConsumerConfig) {
	if err := config.CheckUpdate(e.state.Config()); err != nil {
		m.refuse(err)
		return
	}
	if !slices.Equal(config.Filters(), e.view.filters) {
		m.consumers.markRefiltered(e)
	}
	e.next = m.acquireView(config.Filters())
	m.changing(e).Update(&m.batch, config)
	e.view.leave(e)
	m.releaseView(e.view)
	e.view, e.next, e.filters = e.next, nil, nil
	e.view.join(e)
	e.configHash = hashText(config.AppendJSON(nil))
	updated := m.out.Add(effect.ConsumerUpdated)
	updated.Cmd, updated.Consumer, updated.Text = m.batch.Cmd, e.id, e.name
	m.result().Consumer = e.id
}

func (m *Machine) resetConsumer(c *command.Command, state *consumer.State) {
	seq, refused := state.Reset(&m.batch, c.StreamSeq)
	if refused != nil {
		m.refuse(refused)
		return
	}
	r := m.result()
	r.Consumer, r.Seq = c.Consumer, seq
}

func (m *Machine) deleteConsumer(c *command.Command) {
	e := m.consumers.findName(string(c.Name))
	if e == nil || c.Consumer != 0 && c.Consumer != e.id {
		m.refuse(jsapi.CodeConsumerNotFound.Err())
		return
	}
	e.view.leave(e)
	m.releaseView(e.view)
	m.consumers.remove(e)
	m.dirty.add(consumerSection | e.id)
	deleted := m.out.Add(effect.ConsumerDeleted)
	deleted.Cmd, deleted.Consumer, deleted.Text = m.batch.Cmd, e.id, e.name
	m.result().Consumer = e.id
}
