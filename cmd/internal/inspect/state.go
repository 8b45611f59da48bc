package inspect

import (
	"encoding/json"
	"fmt"
	"strings"

	"weir/disk/checkpoint"
	"weir/disk/wal"
	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/model/stream"
	"weir/node/event"
)

// entryTextMax bounds how much of a subject, name or configuration a line shows.
const entryTextMax = 120

// machine is what both state machines can do.
type machine interface {
	RestoreSection(id uint64, data []byte) error
	Restored() error
	Apply(index uint64, entry []byte, out *effect.List)
	Digest() uint64
}

// replay brings a fresh machine to the state that a start would arrive at. A panic of the machine is damage that no
// checksum saw: it is returned as an error.
func replay(m machine, state *checkpoint.State, g *wal.Group) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the state cannot be rebuilt: %v", v)
		}
	}()
	if state.Index > 0 {
		for i := range state.Sections {
			if s := &state.Sections[i]; s.ID < event.MembersSection {
				if err := m.RestoreSection(s.ID, s.Data); err != nil {
					return fmt.Errorf("section %x: %w", s.ID, err)
				}
			}
		}
		if err := m.Restored(); err != nil {
			return err
		}
	}
	var effects effect.List
	for i := range g.Entries {
		e := &g.Entries[i]
		if e.Index > state.Index {
			effects.Reset()
			m.Apply(e.Index, e.Data, &effects)
		}
	}
	return nil
}

// showCatalog rebuilds the catalog and prints its group.
func (l *look) showCatalog(g *wal.Group) {
	shown := l.wanted(g.ID)
	out := l.Out
	if !shown {
		l.Out = &strings.Builder{}
	}
	fmt.Fprintf(l.Out, "\ncatalog (group %x)\n", meta.Group)
	l.raft(g)
	state, err := l.checkpoint(g.ID)
	if err == nil {
		err = replay(l.catalog, &state, g)
	}
	l.Out = out
	if err != nil {
		fmt.Fprintf(l.Out, "  DAMAGE: %v\n", err)
		return
	}
	if shown {
		fmt.Fprintf(l.Out, "  streams: %d, digest %016x\n", len(l.catalog.All()), l.catalog.Digest())
	}
}

// showStream prints a stream's group and rebuilds its state.
func (l *look) showStream(g *wal.Group) {
	entry := l.title(g.ID)
	l.raft(g)
	state, sound := l.files(g.ID)
	if entry == nil || !sound {
		return
	}
	m, err := fresh(entry, g)
	if err == nil {
		err = replay(m, &state, g)
	}
	if err != nil {
		fmt.Fprintf(l.Out, "  DAMAGE: %v\n", err)
		return
	}
	s := m.State()
	fmt.Fprintf(l.Out, "  state: %d messages, %d bytes, sequences [%d,%d], %d subjects, digest %016x\n", s.Msgs, s.Bytes, s.FirstSeq,
		s.LastSeq, s.NumSubjects, m.Digest())
	for _, c := range m.Consumers() {
		if info, ok := m.ConsumerInfo(c.Name()); ok {
			fmt.Fprintf(l.Out, "    consumer %s: delivered %d (stream %d), ack floor %d (stream %d), %d await acks, %d redelivered, %d pending\n",
				info.Name, info.Delivered.Consumer, info.Delivered.Stream, info.AckFloor.Consumer, info.AckFloor.Stream,
				info.NumAckPending, info.NumRedelivered, info.NumPending)
		}
	}
}

// fresh makes the machine of a stream as it was when its log began.
func fresh(entry *meta.Stream, g *wal.Group) (*stream.Machine, error) {
	config, version := entry.Config, entry.Version
	if len(g.Meta) > 0 {
		var birth struct {
			Version uint64          `json:"version"`
			Config  json.RawMessage `json:"config"`
		}
		if err := json.Unmarshal(g.Meta, &birth); err != nil {
			return nil, fmt.Errorf("description of the group in the log: %w", err)
		}
		first, err := jsapi.ParseStreamConfig(birth.Config)
		if err != nil {
			return nil, fmt.Errorf("configuration of the stream in the log: %w", err)
		}
		config, version = first, birth.Version
	}
	return stream.New(stream.Options{
		Account: entry.Account, Name: entry.Name, Config: config, ConfigVersion: version, Created: entry.Created, Incarnation: entry.Group,
	}), nil
}

// kinds names the commands.
var kinds = map[command.Kind]string{
	command.Publish: "publish", command.PutConsumer: "put consumer", command.DeleteConsumer: "delete consumer", command.Deliver: "deliver",
	command.Ack: "ack", command.Nak: "nak", command.Progress: "progress", command.Term: "term", command.Release: "release", command.Reset: "reset",
	command.Tick: "tick", command.Purge: "purge", command.DeleteMsg: "delete message", command.PutStream: "put stream",
	command.CreateStream: "create stream", command.UpdateStream: "update stream", command.DeleteStream: "delete stream",
}

// entry prints one entry of the log and the commands in it.
func (l *look) entry(e *wal.Entry) {
	fmt.Fprintf(l.Out, "    entry %d, term %d, %d bytes", e.Index, e.Term, len(e.Data))
	switch {
	case e.Type != 0:
		fmt.Fprintln(l.Out, ": change of membership")
		return
	case len(e.Data) == 0:
		fmt.Fprintln(l.Out, ": empty, begins a term")
		return
	}
	r, err := command.Read(e.Data)
	if err != nil {
		fmt.Fprintf(l.Out, ": DAMAGE: %v\n", err)
		return
	}
	fmt.Fprintf(l.Out, ", time %s\n", stamp(r.Time()))
	var c command.Command
	for r.Next(&c) {
		fmt.Fprintf(l.Out, "      %s\n", describe(&c))
	}
	if err := r.Err(); err != nil {
		fmt.Fprintf(l.Out, "      DAMAGE: %v\n", err)
	}
}

// describe prints the fields of a command that are set.
func describe(c *command.Command) string {
	var b strings.Builder
	name := kinds[c.Kind]
	if name == "" {
		name = fmt.Sprintf("command %d", c.Kind)
	}
	b.WriteString(name)
	for _, text := range []struct {
		label string
		value []byte
	}{{"subject", c.Subject}, {"account", c.Account}, {"name", c.Name}, {"text", c.Text}, {"config", c.Config}} {
		if len(text.value) > 0 {
			fmt.Fprintf(&b, " %s %s", text.label, shorten(text.value))
		}
	}
	if c.Kind == command.Publish {
		fmt.Fprintf(&b, " header %d bytes payload %d bytes", len(c.Header), len(c.Payload))
	}
	for _, number := range []struct {
		label string
		value uint64
	}{
		{"consumer", c.Consumer}, {"stream sequence", c.StreamSeq}, {"consumer sequence", c.ConsumerSeq}, {"deliveries", c.Deliveries},
		{"token", c.Token}, {"count", c.Count}, {"max bytes", c.MaxBytes}, {"delay ns", uint64(c.Delay)}, {"keep", c.Keep}, {"version", c.Version},
	} {
		if number.value != 0 {
			fmt.Fprintf(&b, " %s %d", number.label, number.value)
		}
	}
	return b.String()
}

func shorten(text []byte) string {
	if len(text) > entryTextMax {
		return fmt.Sprintf("%q...", text[:entryTextMax])
	}
	return fmt.Sprintf("%q", text)
}
