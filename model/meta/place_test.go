package meta

import (
	"fmt"
	"slices"
	"testing"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
)

// clusterLimits are those of an account without limits on a server of a cluster.
func clusterLimits() *jsapi.Limits {
	return &jsapi.Limits{Account: jsapi.Unlimited(), Clustered: true}
}

func clustered(t interface{ Fatalf(string, ...any) }, config jsapi.StreamConfig) *jsapi.StreamConfig {
	if err := config.Normalize(clusterLimits(), false); err != nil {
		t.Fatalf("normalize %q: %v", config.Name, err)
	}
	return &config
}

// world is a catalog with a view that the test changes.
type world struct {
	t    *testing.T
	m    *Machine
	view View
}

// newWorld registers servers 11, 12, ... named n11, n12, ... in cluster C, each with a tag of its own and one of all.
func newWorld(t *testing.T, servers int) *world {
	w := &world{t: t, m: New(), view: View{Cluster: "C"}}
	for i := range servers {
		w.view.Online = append(w.view.Online, uint64(11+i))
	}
	for _, id := range w.view.Online {
		w.register(id, fmt.Sprintf("n%d", id))
	}
	return w
}

func (w *world) register(id uint64, name string) effect.Effect {
	w.t.Helper()
	return w.apply(w.view.Register(&Server{
		ID: id, Name: name, Cluster: "C", Tags: []string{fmt.Sprintf("az:%d", id), "ALL"}, StoreMax: 1000,
	}))
}

func (w *world) apply(c command.Command) effect.Effect {
	w.t.Helper()
	return result(w.t, apply(w.m, 1, c))
}

func (w *world) create(config jsapi.StreamConfig) *jsapi.Error {
	w.t.Helper()
	return w.apply(w.view.Create("A", clustered(w.t, config), clusterLimits())).Err
}

func (w *world) update(config jsapi.StreamConfig) *jsapi.Error {
	w.t.Helper()
	return w.apply(w.view.Update("A", clustered(w.t, config), clusterLimits())).Err
}

func (w *world) must(err *jsapi.Error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("refused: %v", err)
	}
}

func (w *world) settle(name string) {
	w.t.Helper()
	s := w.m.Stream("A", name)
	if r := w.apply(Settled(s.Group, s.Placement)); !r.Flag || !w.m.Stream("A", name).IsSettled() {
		w.t.Fatalf("placement %d of %q is not settled", s.Placement, name)
	}
}

func serversOf(replicas []Replica) []uint64 {
	var ids []uint64
	for _, r := range replicas {
		ids = append(ids, r.Server)
	}
	slices.Sort(ids)
	return ids
}

func (w *world) want(name string, replicas, former []uint64) {
	w.t.Helper()
	s := w.m.Stream("A", name)
	if got := serversOf(s.Replicas); !slices.Equal(got, replicas) {
		w.t.Fatalf("%s is on %v, want %v", name, got, replicas)
	}
	if got := serversOf(s.Former); !slices.Equal(got, former) {
		w.t.Fatalf("%s leaves %v, want %v", name, got, former)
	}
}

func TestRefusalsOfPlacementSpeakLikeTheReferenceServer(t *testing.T) {
	w := newWorld(t, 3)
	w.apply(w.view.Register(&Server{ID: 20, Name: "n20", Cluster: "C", Tags: []string{tagExclude}}))
	const none = "no suitable peers for placement"
	for _, c := range []struct {
		config jsapi.StreamConfig
		want   string
	}{
		{jsapi.StreamConfig{Replicas: 5, Placement: &jsapi.Placement{Cluster: "C"}}, none + ", exclude tag set"},
		{jsapi.StreamConfig{Replicas: 3, Placement: &jsapi.Placement{Cluster: "C9"}}, none},
		{jsapi.StreamConfig{Placement: &jsapi.Placement{Tags: []string{"az:11", "az:12", "!all"}}},
			none + ", exclude tag set, tags not matched ['az:11', 'az:12']"},
		{jsapi.StreamConfig{Placement: &jsapi.Placement{Tags: []string{"!all"}}}, none + ", exclude tag set, tags excluded ['all']"},
		{jsapi.StreamConfig{Replicas: 2, MaxBytes: 1001}, none + ", exclude tag set, insufficient storage"},
	} {
		c.config.Name = "S"
		err := w.create(c.config)
		if !jsapi.CodeClusterNoPeers.Is(err) || err.Description != c.want {
			t.Errorf("%+v: got %v, want %q", c.config.Placement, err, c.want)
		}
	}
	if len(w.m.All()) != 0 || w.m.nextReplica != firstReplica || w.m.nextGroup != FirstGroup {
		t.Fatal("refused creates left something behind")
	}
}

func TestMajorityOfNewReplicasIsOnline(t *testing.T) {
	w := newWorld(t, 3)
	w.view.Online = []uint64{12, 13}
	w.must(w.create(jsapi.StreamConfig{Name: "R3", Replicas: 3}))
	w.must(w.create(jsapi.StreamConfig{Name: "R2", Replicas: 2}))
	w.want("R2", []uint64{12, 13}, nil)
	w.view.Online = []uint64{13}
	err := w.create(jsapi.StreamConfig{Name: "S", Replicas: 3})
	if !jsapi.CodeClusterNoPeers.Is(err) || err.Description != "no suitable peers for placement, peer offline" {
		t.Fatalf("three replicas with one server online: %v", err)
	}
	w.must(w.create(jsapi.StreamConfig{Name: "R1", Replicas: 1}))
	w.want("R1", []uint64{13}, nil)
}

func TestUniqueTagSpreadsReplicas(t *testing.T) {
	w := newWorld(t, 0)
	for id, zone := range []string{"z:a", "z:a", "z:b", "z:b", "other"} {
		w.apply(w.view.Register(&Server{ID: uint64(id + 1), Name: fmt.Sprint(id), Cluster: "C", Tags: []string{zone}}))
	}
	w.view.UniqueTag = "z:"
	w.must(w.create(jsapi.StreamConfig{Name: "S", Replicas: 2}))
	w.want("S", []uint64{1, 3}, nil)
	err := w.create(jsapi.StreamConfig{Name: "T", Replicas: 3})
	if !jsapi.CodeClusterNoPeers.Is(err) || err.Description != "no suitable peers for placement, server tag not unique" {
		t.Fatalf("three replicas in two zones: %v", err)
	}
	w.must(w.create(jsapi.StreamConfig{Name: "T", Replicas: 2, Placement: &jsapi.Placement{Tags: []string{"z:a"}}}))
	w.want("T", []uint64{1, 2}, nil)
}

func TestScalingKeepsMembersAndLeader(t *testing.T) {
	w := newWorld(t, 5)
	w.must(w.create(jsapi.StreamConfig{Name: "S", Replicas: 1}))
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 3}))
	s := w.m.Stream("A", "S")
	if s.Replicas[0] != s.Birth[0] || len(s.Replicas) != 3 || s.IsSettled() || s.Placement != 2 {
		t.Fatalf("grown to %+v", s)
	}
	w.settle("S")
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 5}))
	w.settle("S")
	w.want("S", []uint64{11, 12, 13, 14, 15}, nil)
	w.view.Leader, w.view.Online = 14, []uint64{11, 12, 14, 15}
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 4}))
	w.want("S", []uint64{11, 12, 14, 15}, []uint64{13})
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 1}))
	w.want("S", []uint64{14}, []uint64{11, 12, 13, 15})
	before := w.m.Stream("A", "S")
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 3})) // before the change to one is settled
	s = w.m.Stream("A", "S")
	if len(s.Replicas) != 3 || len(s.Former) != 2 || s.Placement != before.Placement+1 {
		t.Fatalf("scaled back to %+v", s)
	}
	for _, r := range s.Replicas[1:] {
		if !slices.Contains(before.Former, r) {
			t.Fatalf("%+v took the place of a replica that had not left", r)
		}
	}
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 1}))
	w.settle("S")
	w.want("S", []uint64{14}, nil)
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 3}))
	if err := w.update(jsapi.StreamConfig{Name: "S", Replicas: 2}); err != nil {
		t.Fatalf("a scale on top of a scale: %v", err)
	}
}

func TestMoveKeepsWhatFitsAndExcludesOtherChanges(t *testing.T) {
	w := newWorld(t, 5)
	first := jsapi.StreamConfig{Name: "S", Replicas: 2, Placement: &jsapi.Placement{Tags: []string{"!az:13", "!az:14", "!az:15"}}}
	w.must(w.create(first))
	w.want("S", []uint64{11, 12}, nil)
	second := jsapi.StreamConfig{Name: "S", Replicas: 2, Placement: &jsapi.Placement{Tags: []string{"!az:11", "!az:14", "!az:15"}}}
	scaled := second
	scaled.Replicas = 1
	if err := w.update(scaled); !jsapi.CodeStreamMoveAndScale.Is(err) {
		t.Fatalf("move and scale: %v", err)
	}
	w.must(w.update(second))
	w.want("S", []uint64{12, 13}, []uint64{11})
	if err := w.update(first); !jsapi.CodeStreamMoveInProgress.Is(err) {
		t.Fatalf("move during a move: %v", err)
	}
	if err := w.update(scaled); !jsapi.CodeStreamMoveInProgress.Is(err) {
		t.Fatalf("scale during a move: %v", err)
	}
	second.Description = "still possible"
	w.must(w.update(second))
	w.settle("S")
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 1, Placement: second.Placement}))
	if err := w.update(jsapi.StreamConfig{Name: "S", Replicas: 1, Placement: first.Placement}); !jsapi.CodeStreamReconfigureInProgress.Is(err) {
		t.Fatalf("move during a scale: %v", err)
	}
	w.settle("S")
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 1})) // no placement any more is no move
	if !w.m.Stream("A", "S").IsSettled() {
		t.Fatal("giving up the placement moved the stream")
	}
}

func TestStreamOfUnreachableServersIsOffline(t *testing.T) {
	w := newWorld(t, 3)
	w.must(w.create(jsapi.StreamConfig{Name: "S", Placement: &jsapi.Placement{Tags: []string{"az:11"}}}))
	w.view.Online = []uint64{12, 13}
	if err := w.update(jsapi.StreamConfig{Name: "S", Replicas: 3}); !jsapi.CodeStreamOffline.Is(err) {
		t.Fatalf("update: %v", err)
	}
}

func TestServerOfTheSameNameTakesTheReplicasOver(t *testing.T) {
	w := newWorld(t, 3)
	w.must(w.create(jsapi.StreamConfig{Name: "S", Replicas: 3}))
	before := w.m.Stream("A", "S")
	if r := w.register(99, "n12"); !jsapi.CodeRaftGeneral.Is(r.Err) {
		t.Fatalf("a second server took the name of one that is online: %v", r.Err)
	}
	w.view.Online = []uint64{11, 13, 99}
	if r := w.register(99, "n12"); r.Err != nil || !r.Flag {
		t.Fatalf("replacement: %+v", r)
	}
	w.want("S", []uint64{11, 13, 99}, []uint64{12})
	s := w.m.Stream("A", "S")
	if fresh, _ := s.Member(99); fresh.ID <= before.Replicas[2].ID || s.IsSettled() || !slices.Equal(s.Birth, before.Birth) {
		t.Fatalf("replaced: %+v", s)
	}
	if !w.m.Server(12).Removed || w.m.ServerNamed("n12").ID != 99 || !slices.Equal(w.m.Removed(), []uint64{12}) {
		t.Fatal("the former server is not removed")
	}
	if r := w.register(12, "n12"); !jsapi.CodeClusterServerNotMember.Is(r.Err) {
		t.Fatalf("the former server came back: %v", r.Err)
	}
	if r := w.register(13, "n13"); r.Err != nil || r.Flag {
		t.Fatalf("a server that says nothing new: %+v", r)
	}
}

func TestRemovalMovesReplicasAsFarAsThereIsRoom(t *testing.T) {
	w := newWorld(t, 4)
	w.must(w.create(jsapi.StreamConfig{Name: "R3", Replicas: 3, Placement: &jsapi.Placement{Tags: []string{"all"}}}))
	w.must(w.create(jsapi.StreamConfig{Name: "R1", Placement: &jsapi.Placement{Tags: []string{"az:12"}}}))
	w.want("R3", []uint64{11, 12, 13}, nil)
	w.must(w.apply(w.view.Remove(12)).Err)
	w.want("R3", []uint64{11, 13, 14}, []uint64{12})
	w.want("R1", []uint64{12}, nil) // nowhere else to go: its data are there
	w.must(w.apply(w.view.Remove(13)).Err)
	w.want("R3", []uint64{11, 14}, []uint64{12, 13})
	if err := w.apply(w.view.Remove(13)).Err; !jsapi.CodeClusterServerNotMember.Is(err) {
		t.Fatalf("removed twice: %v", err)
	}
	w.settle("R3")
	w.register(21, "n21")
	w.want("R3", []uint64{11, 14, 21}, nil)
	w.must(w.apply(w.view.Remove(11)).Err)
	w.must(w.apply(w.view.Remove(14)).Err)
	if err := w.apply(w.view.Remove(21)).Err; !jsapi.CodeRaftGeneral.Is(err) {
		t.Fatalf("the last server was removed: %v", err)
	}
}

func TestRepairWaitsForServersThatAreThere(t *testing.T) {
	w := newWorld(t, 4)
	w.must(w.create(jsapi.StreamConfig{Name: "S", Replicas: 3}))
	w.want("S", []uint64{11, 12, 13}, nil)
	w.view.Online = []uint64{11, 12}
	w.must(w.apply(w.view.Remove(13)).Err)
	w.want("S", []uint64{11, 12}, []uint64{13})
	w.register(14, "n14")
	w.want("S", []uint64{11, 12, 14}, []uint64{13})
}

func TestSettlingMakesRoomForWhatIsMissing(t *testing.T) {
	w := newWorld(t, 4)
	w.must(w.create(jsapi.StreamConfig{Name: "S", Replicas: 4}))
	w.view.Leader = 12
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 3}))
	w.want("S", []uint64{11, 12, 13}, []uint64{14})
	w.must(w.apply(w.view.Remove(11)).Err)
	w.want("S", []uint64{12, 13}, []uint64{11, 14})
	s := w.m.Stream("A", "S")
	effects := apply(w.m, 1, Settled(s.Group, s.Placement))
	w.want("S", []uint64{12, 13, 14}, nil)
	var kinds []effect.Kind
	for _, f := range effects {
		kinds = append(kinds, f.Kind)
	}
	if want := []effect.Kind{effect.GroupSettled, effect.GroupPlaced, effect.Result}; !slices.Equal(kinds, want) {
		t.Fatalf("effects %v, want %v", kinds, want)
	}
	former, fresh := s.Former, w.m.Stream("A", "S").Replicas[2]
	if slices.Contains(former, fresh) {
		t.Fatalf("the former replica %+v came back", fresh)
	}
}

func TestShrinkingKeepsWhatIsSettled(t *testing.T) {
	w := newWorld(t, 5)
	w.must(w.create(jsapi.StreamConfig{Name: "S", Replicas: 1}))
	for i := range 3 { // server 11 carries more than the others
		w.must(w.create(jsapi.StreamConfig{Name: fmt.Sprint("T", i), Placement: &jsapi.Placement{Tags: []string{"az:11"}}}))
	}
	w.want("S", []uint64{11}, nil)
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 3}))
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 1}))
	if got := serversOf(w.m.Stream("A", "S").Replicas); !slices.Equal(got, []uint64{11}) {
		t.Fatalf("the replica that has the data left, %v stays", got)
	}
}

func TestDigestTellsCatalogsApart(t *testing.T) {
	seen := map[uint64]int{}
	for i, change := range []func(*Machine, *Stream, *Server){
		func(*Machine, *Stream, *Server) {},
		func(m *Machine, _ *Stream, _ *Server) { m.nextReplica++ },
		func(m *Machine, _ *Stream, _ *Server) { m.registrations++ },
		func(m *Machine, _ *Stream, _ *Server) { m.nextGroup++ },
		func(_ *Machine, s *Stream, _ *Server) { s.Placement++ },
		func(_ *Machine, s *Stream, _ *Server) { s.Settled++ },
		func(_ *Machine, s *Stream, _ *Server) { s.Moving = true },
		func(_ *Machine, s *Stream, _ *Server) { s.Replicas = s.Replicas[:2] },
		func(_ *Machine, s *Stream, _ *Server) { s.Birth = s.Birth[:2] },
		func(_ *Machine, s *Stream, _ *Server) { s.Former = []Replica{{ID: 99, Server: 99}} },
		func(_ *Machine, s *Stream, _ *Server) { s.BirthJSON = []byte("{}") },
		func(_ *Machine, _ *Stream, s *Server) { s.Removed = true },
		func(_ *Machine, _ *Stream, s *Server) { s.Tags = nil },
		func(_ *Machine, _ *Stream, s *Server) { s.Replica++ },
	} {
		w := newWorld(t, 3)
		w.must(w.create(jsapi.StreamConfig{Name: "S", Replicas: 3}))
		old := w.m.Stream("A", "S")
		stream, server := *old, *w.m.Server(12)
		change(w.m, &stream, &server)
		w.m.replace(old, &stream)
		w.m.putServer(&server)
		digest := w.m.Digest()
		if other, ok := seen[digest]; ok {
			t.Fatalf("changes %d and %d have one digest", other, i)
		}
		seen[digest] = i
	}
}

func TestPeerRemoval(t *testing.T) {
	w := newWorld(t, 3)
	w.must(w.create(jsapi.StreamConfig{Name: "S", Replicas: 2}))
	s := w.m.Stream("A", "S")
	if err := w.apply(w.view.TakeOff(s, 13)).Err; !jsapi.CodeClusterPeerNotMember.Is(err) {
		t.Fatalf("a server that has no replica: %v", err)
	}
	w.must(w.apply(w.view.TakeOff(s, 11)).Err)
	w.want("S", []uint64{12, 13}, []uint64{11})
	for _, server := range []uint64{11, 12} {
		if err := w.apply(w.view.TakeOff(s, server)).Err; !jsapi.CodePeerRemap.Is(err) {
			t.Fatalf("server %d with no spare one: %v", server, err)
		}
	}
}

func TestDamagedReplicaIsReplacedWhereItIs(t *testing.T) {
	w := newWorld(t, 3)
	w.must(w.create(jsapi.StreamConfig{Name: "R1"}))
	w.must(w.create(jsapi.StreamConfig{Name: "R3", Replicas: 3}))
	single, s := w.m.Stream("A", "R1"), w.m.Stream("A", "R3")
	if err := w.apply(w.view.Replace(single, single.Replicas[0].ID)).Err; !jsapi.CodeClusterPeerNotMember.Is(err) {
		t.Fatalf("the only replica was replaced: %v", err)
	}
	damaged := s.Replicas[1]
	w.must(w.apply(w.view.Replace(s, damaged.ID)).Err)
	next := w.m.Stream("A", "R3")
	if fresh := next.Replicas[1]; fresh.Server != damaged.Server || fresh.ID <= s.Replicas[2].ID || next.IsSettled() || len(next.Former) != 0 {
		t.Fatalf("replaced: %+v", next)
	}
	if err := w.apply(w.view.Replace(s, damaged.ID)).Err; !jsapi.CodeClusterPeerNotMember.Is(err) {
		t.Fatalf("replaced twice: %v", err)
	}
}

func TestOlderReportsSettleNothing(t *testing.T) {
	w := newWorld(t, 3)
	w.must(w.create(jsapi.StreamConfig{Name: "S", Replicas: 3}))
	s := w.m.Stream("A", "S")
	w.view.Leader = 11
	w.must(w.update(jsapi.StreamConfig{Name: "S", Replicas: 1}))
	for _, c := range []command.Command{Settled(s.Group, s.Placement), Settled(s.Group+1, 2)} {
		if r := w.apply(c); r.Err != nil || r.Flag {
			t.Fatalf("%+v settled something: %+v", c, r)
		}
	}
	w.want("S", []uint64{11}, []uint64{12, 13})
	for _, server := range []uint64{11, 12, 13} {
		if r, ok := w.m.Stream("A", "S").On(server); !ok || r.Server != server {
			t.Fatalf("server %d would drop its replica", server)
		}
	}
}

func TestFirstServerAdoptsTheStreamsFromBefore(t *testing.T) {
	m := New()
	apply(m, 1, Create("A", normalised(t, jsapi.StreamConfig{Name: "S"}), limitsOf(jsapi.Unlimited())))
	if s := m.Stream("A", "S"); len(s.Replicas) != 0 || !s.IsSettled() {
		t.Fatalf("a catalog without servers placed %+v", s)
	}
	apply(m, 2, new(View).Register(&Server{ID: 5, Name: "n5"}))
	s := m.Stream("A", "S")
	want := []Replica{{ID: aloneReplica, Server: 5}}
	if !slices.Equal(s.Replicas, want) || !slices.Equal(s.Birth, want) || !s.IsSettled() {
		t.Fatalf("adopted: %+v", s)
	}
	elsewhere := jsapi.StreamConfig{Name: "T", Placement: &jsapi.Placement{Cluster: "nowhere"}}
	if r := result(t, apply(m, 3, Create("A", normalised(t, elsewhere), limitsOf(jsapi.Unlimited())))); r.Err != nil {
		t.Fatalf("a server alone looked at the placement: %v", r.Err)
	}
}
