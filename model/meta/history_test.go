package meta

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
)

// judge follows a random history and compares the catalog with what a plain reading of the rules allows.
type judge struct {
	t      *rapid.T
	m      *Machine
	owners map[uint64]Replica // by id, and of which group
	groups map[uint64]uint64
	next   uint64 // id of the next new server
	steps  int
}

// state is everything but the head's counters of entries.
func state(m *Machine) []byte {
	data := fmt.Appendf(nil, "%d %d %d %v ", m.nextGroup, m.nextReplica, m.registrations, m.formed)
	data = m.appendServers(data)
	for _, s := range m.All() {
		data = appendStream(data, s)
	}
	return data
}

func (j *judge) view() View {
	view := View{Cluster: "C"}
	for _, s := range j.m.Servers() {
		if rapid.IntRange(0, 5).Draw(j.t, "online") > 0 {
			view.Online = append(view.Online, s.ID)
		}
	}
	if len(view.Online) > 0 {
		view.Leader = rapid.SampledFrom(view.Online).Draw(j.t, "leader")
	}
	return view
}

func (j *judge) command(view *View) command.Command {
	names := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	server := func() uint64 { return rapid.Uint64Range(1, max(j.next, 1)).Draw(j.t, "server") }
	config := func() *jsapi.StreamConfig {
		c := jsapi.StreamConfig{Name: names.Draw(j.t, "name"), Replicas: rapid.IntRange(1, 5).Draw(j.t, "replicas"), MaxBytes: 10}
		if rapid.IntRange(0, 3).Draw(j.t, "placed") == 0 {
			c.Placement = &jsapi.Placement{Tags: []string{rapid.SampledFrom([]string{"x", "!x", "y"}).Draw(j.t, "tag")}}
		}
		return clustered(j.t, c)
	}
	stream := func() *Stream {
		if s := j.m.Stream("A", names.Draw(j.t, "name")); s != nil {
			return s
		}
		return &Stream{Account: "A", Name: "missing"}
	}
	switch rapid.IntRange(0, 13).Draw(j.t, "kind") {
	case 0, 1:
		j.next++
		name := fmt.Sprintf("n%d", rapid.IntRange(0, 6).Draw(j.t, "server name"))
		tags := []string{rapid.SampledFrom([]string{"x", "y"}).Draw(j.t, "tag")}
		return view.Register(&Server{ID: j.next, Name: name, Cluster: "C", Tags: tags, StoreMax: 40})
	case 2:
		return view.Remove(server())
	case 3:
		s := stream()
		return command.Command{Kind: command.DeleteStream, Account: []byte("A"), Name: []byte(s.Name)}
	case 4:
		return view.TakeOff(stream(), server())
	case 5, 6, 7:
		s := stream()
		return Settled(s.Group, s.Placement-uint64(rapid.IntRange(0, 4).Draw(j.t, "old")/4))
	case 8:
		s := stream()
		if len(s.Replicas) == 0 {
			return view.Replace(s, 1)
		}
		return view.Replace(s, rapid.SampledFrom(s.Replicas).Draw(j.t, "replica").ID)
	case 9:
		return Form()
	case 10, 11:
		return view.Update("A", config(), clusterLimits())
	default:
		return view.Create("A", config(), clusterLimits())
	}
}

func (j *judge) step() {
	view := j.view()
	c := j.command(&view)
	before := state(j.m)
	old := map[uint64]*Stream{}
	for _, s := range j.m.All() {
		old[s.Group] = s
	}
	counts := map[uint64]int{}
	for _, s := range j.m.Servers() {
		counts[s.ID] = j.m.Load(s.ID).Replicas
	}
	j.steps++
	effects := apply(j.m, int64(j.steps), c)
	r := effects[len(effects)-1]
	if r.Err != nil && !bytes.Equal(before, state(j.m)) {
		j.t.Fatalf("refused command %d changed something: %v", c.Kind, r.Err)
	}
	if (r.Err != nil || !r.Flag && c.Kind != command.RegisterServer) && len(effects) != 1 {
		j.t.Fatalf("command %d changed nothing and has effects", c.Kind)
	}
	j.judgeEffects(old, effects)
	for _, s := range j.m.All() {
		j.judgeStream(s, old[s.Group], &c)
	}
	j.judgeSums()
	if c.Kind == command.CreateStream {
		j.judgeCreate(&c, &view, &r, counts)
	}
}

// judgeEffects checks that every change of a placement is told, and nothing else.
func (j *judge) judgeEffects(old map[uint64]*Stream, effects []effect.Effect) {
	told := map[uint64]bool{}
	for _, f := range effects {
		if f.Kind == effect.GroupPlaced {
			told[f.Group] = true
		}
	}
	for _, s := range j.m.All() {
		if was := old[s.Group]; was != nil && told[s.Group] != (was.Placement != s.Placement) {
			j.t.Fatalf("group %d: placement %d after %d, told %v", s.Group, s.Placement, was.Placement, told[s.Group])
		}
	}
}

func (j *judge) judgeStream(s, old *Stream, c *command.Command) {
	if !distinct(s) {
		j.t.Fatalf("two replicas on one server: %+v", s)
	}
	gone := 0
	for _, r := range s.Replicas {
		if j.m.Server(r.Server).Removed {
			gone++
		}
	}
	if len(s.Replicas) == 0 || len(s.Replicas) > s.Config.Replicas || gone > 0 && gone < len(s.Replicas) {
		j.t.Fatalf("%d replicas, %d of them on removed servers, %d asked for", len(s.Replicas), gone, s.Config.Replicas)
	}
	for _, r := range slices.Concat(s.Birth, s.Replicas, s.Former) {
		if owner, ok := j.owners[r.ID]; ok && (owner != r || j.groups[r.ID] != s.Group) {
			j.t.Fatalf("replica id %d was that of %+v in group %d", r.ID, owner, j.groups[r.ID])
		}
		j.owners[r.ID], j.groups[r.ID] = r, s.Group
	}
	if s.IsSettled() && (len(s.Former) > 0 || s.Moving) {
		j.t.Fatalf("settled with former replicas: %+v", s)
	}
	if old == nil {
		return
	}
	for _, r := range slices.Concat(old.Replicas, old.Former) {
		replaced := c.Kind == command.PlaceStream && parseProposal(c.Config).Replica == r.ID && s.Placement == old.Placement+1
		if on, ok := s.On(r.Server); c.Kind != command.Settle && (!ok || on != r && !replaced) {
			j.t.Fatalf("command %d dropped replica %+v of group %d without a report", c.Kind, r, s.Group)
		}
	}
	for _, r := range old.Former {
		if slices.Contains(s.Replicas, r) && (c.Kind != command.UpdateStream || s.Config.Replicas <= len(old.Replicas)) {
			j.t.Fatalf("replica %+v came back without need", r)
		}
	}
}

// judgeSums counts again what the catalog keeps count of.
func (j *judge) judgeSums() {
	loads := map[uint64]Load{}
	var reserved int64
	for _, s := range j.m.All() {
		reserved += s.Config.MaxBytes
		for i, r := range s.Replicas {
			l := loads[r.Server]
			l.Replicas++
			l.Store += s.Config.MaxBytes
			if i == 0 {
				l.Preferred++
			}
			loads[r.Server] = l
		}
	}
	for id := range j.next + 1 {
		if got := j.m.Load(id); got != loads[id] {
			j.t.Fatalf("load of server %d is %+v, counted %+v", id, got, loads[id])
		}
	}
	if _, store := j.m.Reserved("A"); store != uint64(reserved) {
		j.t.Fatalf("reserved %d, counted %d", store, reserved)
	}
}

// judgeCreate decides by counting whether a create had to succeed, and that no better server was passed over.
func (j *judge) judgeCreate(c *command.Command, view *View, r *effect.Effect, counts map[uint64]int) {
	config := parseProposal(c.Config).Config
	var suitable, there []uint64
	for _, s := range j.m.Servers() {
		fits := s.StoreMax <= 0 || int64(counts[s.ID]*10)+config.MaxBytes <= s.StoreMax
		if p := config.Placement; p != nil {
			tag := p.Tags[0]
			fits = fits && slices.Contains(s.Tags, tag) != (tag[0] == '!') && (tag[0] != '!' || !slices.Contains(s.Tags, tag[1:]))
			if tag[0] == '!' {
				fits = fits && !slices.Contains(s.Tags, tag[1:])
			}
		}
		if fits {
			suitable = append(suitable, s.ID)
			if len(view.Online) == 0 || slices.Contains(view.Online, s.ID) {
				there = append(there, s.ID)
			}
		}
	}
	possible := len(suitable) >= config.Replicas && len(there) >= config.Replicas/2+1
	if len(j.m.Servers()) == 0 || jsapi.CodeStreamNameExist.Is(r.Err) || r.Err == nil && !r.Flag {
		return
	}
	if possible != (r.Err == nil) {
		j.t.Fatalf("%d replicas on %v of which %v are there: %v", config.Replicas, suitable, there, r.Err)
	}
	if r.Err != nil {
		return
	}
	chosen := serversOf(j.m.ByGroup(r.Group).Replicas)
	for _, server := range chosen {
		for _, other := range there {
			if !slices.Contains(chosen, other) && (!slices.Contains(there, server) || counts[other] < counts[server]) {
				j.t.Fatalf("server %d with %d replicas was chosen before %d with %d", server, counts[server], other, counts[other])
			}
		}
	}
}

func TestRandomHistoryOfClusterKeepsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := &judge{t: t, m: New(), owners: map[uint64]Replica{}, groups: map[uint64]uint64{}}
		view := View{Cluster: "C"}
		for range rapid.IntRange(1, 6).Draw(t, "servers") {
			j.next++
			apply(j.m, 0, view.Register(&Server{ID: j.next, Name: fmt.Sprintf("n%d", j.next-1), Cluster: "C", Tags: []string{"x"}, StoreMax: 40}))
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			j.step()
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				j.m = restarted(t, j.m)
			}
		}
	})
}

// restarted returns a machine made of the sections of m; it has to be the same in everything.
func restarted(t *rapid.T, m *Machine) *Machine {
	again := New()
	ids := []uint64{headSection, serversSection}
	for _, s := range m.All() {
		ids = append(ids, s.Group)
	}
	for _, id := range ids {
		data, ok := m.AppendSection(nil, id)
		if !ok {
			continue
		}
		if err := again.RestoreSection(id, data); err != nil {
			t.Fatalf("section %d: %v", id, err)
		}
	}
	if err := again.Restored(); err != nil {
		t.Fatalf("restored: %v", err)
	}
	if again.Digest() != m.Digest() || !bytes.Equal(state(again), state(m)) {
		t.Fatalf("digest %x after restore, %x before", again.Digest(), m.Digest())
	}
	if diff := cmp.Diff(m.All(), again.All(), cmpopts.EquateEmpty()) + cmp.Diff(m.Servers(), again.Servers()); diff != "" {
		t.Fatalf("restored (-want +got):\n%s", diff)
	}
	return again
}

func TestReplicasFedAlikeAreAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, two := New(), New()
		j := &judge{t: t, m: one, next: 0}
		for i := range rapid.IntRange(1, 20).Draw(t, "steps") {
			view := j.view()
			c := j.command(&view)
			apply(one, int64(i), c)
			apply(two, int64(i), c)
			if one.Digest() != two.Digest() {
				t.Fatalf("digests %x and %x after step %d", one.Digest(), two.Digest(), i)
			}
		}
	})
}

func TestCreatesAreBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New()
		view := View{Cluster: "C"}
		servers := rapid.IntRange(1, 7).Draw(t, "servers")
		for i := range servers {
			id := rapid.Uint64Range(1, 1<<40).Draw(t, "id")*8 + uint64(i)
			apply(m, 0, view.Register(&Server{ID: id, Name: fmt.Sprint(i), Cluster: "C"}))
		}
		mixed := rapid.Bool().Draw(t, "mixed")
		replicas := rapid.IntRange(1, min(servers, 5)).Draw(t, "replicas")
		for i := range rapid.IntRange(1, 40).Draw(t, "streams") {
			if mixed {
				replicas = rapid.IntRange(1, min(servers, 5)).Draw(t, "replicas")
			}
			config := clustered(t, jsapi.StreamConfig{Name: fmt.Sprint("S", i), Replicas: replicas})
			effects := apply(m, 1, view.Create("A", config, clusterLimits()))
			if err := effects[len(effects)-1].Err; err != nil {
				t.Fatalf("create: %v", err)
			}
			least, most, fewest, largest := 1<<30, 0, 1<<30, 0
			for _, s := range m.Servers() {
				l := m.Load(s.ID)
				least, most = min(least, l.Replicas), max(most, l.Replicas)
				fewest, largest = min(fewest, l.Preferred), max(largest, l.Preferred)
			}
			if most-least > 1 || largest-fewest > 2 && !mixed {
				t.Fatalf("after %d streams servers have %d to %d replicas and lead %d to %d", i+1, least, most, fewest, largest)
			}
		}
	})
}

func TestCatalogOfVersionOneIsRead(t *testing.T) {
	config := normalised(t, jsapi.StreamConfig{Name: "S"})
	head := []byte{versionAlone, 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0}
	stream := append([]byte{versionAlone, 5, 0, 0, 0, 0, 0, 0, 0, 3, 1, 'A'}, config.AppendJSON(nil)...)
	m := New()
	for id, data := range map[uint64][]byte{headSection: head, FirstGroup: stream} { // order-free: sections stand for themselves
		if err := m.RestoreSection(id, data); err != nil {
			t.Fatalf("section %d: %v", id, err)
		}
	}
	if err := m.Restored(); err != nil {
		t.Fatal(err)
	}
	s := m.Stream("A", "S")
	if m.Applied() != 7 || m.LastTime() != 9 || m.nextReplica != firstReplica || s.Created != 5 || s.Version != 3 || !s.Config.Equal(config) {
		t.Fatalf("restored %+v", s)
	}
}
