package engine

import (
	"fmt"
	"strings"
	"testing"

	"weir/disk/wal"
	"weir/node/auth"
	"weir/node/event"
	"weir/transport/peerwire"
)

// founder starts the server with streams that stands at the place, on what its disk holds.
func founder(t *testing.T, at, expected int, recovered []event.Group, out *event.Outputs) (*Engine, error) {
	t.Helper()
	authenticator, err := auth.New(auth.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{
		ServerID: fmt.Sprintf("N%d", at), ServerName: fmt.Sprintf("n%d", at), Auth: authenticator, Seed: uint64(at), Server: townID(at),
		JetStream: JetStream{Enabled: true}, Cluster: Cluster{Name: "town", Expected: expected},
	}, recovered, event.Time{Mono: 1, Wall: 1_700_000_000_000_000_000}, out)
}

// damagedGroup is a group whose log or checkpoint can not be read.
func damagedGroup(id wal.GroupID) event.Group {
	return event.Group{ID: id, NextBlock: 1, Damage: fmt.Errorf("group %d: %w", id, wal.ErrCorrupt)}
}

// TestNoCatalogIsFoundedWhereOneWasLost lets all servers that found a catalog meet, one of which has streams and no catalog to
// say so: an empty catalog would end them.
func TestNoCatalogIsFoundedWhereOneWasLost(t *testing.T) {
	streams := event.Group{ID: 16, NextBlock: 1, Log: wal.Group{ID: 16}}
	for name, c := range map[string]struct {
		servers int
		disks   map[int][]event.Group
		founded bool
	}{
		"new servers":                         {3, nil, true},
		"a new server alone":                  {1, nil, true},
		"a server alone, damaged":             {1, map[int][]event.Group{0: {damagedGroup(metaGroup), streams}}, false},
		"a server alone without catalog":      {1, map[int][]event.Group{0: {streams}}, false},
		"the one that founds is damaged":      {3, map[int][]event.Group{0: {damagedGroup(metaGroup)}}, false},
		"another one is damaged":              {3, map[int][]event.Group{2: {damagedGroup(metaGroup), streams}}, false},
		"another one has streams, no catalog": {3, map[int][]event.Group{1: {streams}}, false},
		"all are damaged": {3, map[int][]event.Group{
			0: {damagedGroup(metaGroup)}, 1: {damagedGroup(metaGroup)}, 2: {damagedGroup(metaGroup)},
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var engines []*Engine
			var out event.Outputs
			for at := range c.servers {
				e, err := founder(t, at, c.servers, c.disks[at], &out)
				if err != nil {
					t.Fatal(err)
				}
				engines = append(engines, e)
			}
			now := event.Time{Mono: 2, Wall: 1_700_000_000_000_000_001}
			for at, e := range engines {
				for other := range engines {
					if other != at {
						hello := engines[other].Hello()
						e.Step(now, &event.Input{Kind: event.PeerUp, Peer: townID(other), Hello: &hello}, &out)
					}
				}
				e.tick()
				e.tick()
				e.Finish(now, &out)
			}
			founded := 0
			for _, e := range engines {
				if e.founder != 0 {
					founded++
				}
			}
			if want := map[bool]int{true: 1, false: 0}[c.founded]; founded != want {
				t.Errorf("%d catalogs are founded, want %d", founded, want)
			}
			for _, op := range out.Storage {
				if op.Kind == event.Drop {
					t.Errorf("the files of group %d are dropped", op.Group)
				}
			}
			told := 0
			for _, l := range out.Logs {
				if strings.Contains(l.Text, "none is founded") {
					told++
				}
			}
			if c.founded != (told == 0) || told > c.servers {
				t.Errorf("the operators of %d servers are told %d times", c.servers, told)
			}
		})
	}
}

// TestOnlyTheCatalogThatKnowsAServerTakesItsStreams lets servers without a catalog meet the leader of one: what they have on
// their disks would be ended by a catalog that has never heard of it.
func TestOnlyTheCatalogThatKnowsAServerTakesItsStreams(t *testing.T) {
	var out event.Outputs
	e := withStream(t, &out)
	known := peerwire.Hello{ID: townID(1), Name: "n1", JetStream: true, Lost: true, Unclaimed: 2, Replica: 21}
	server := serverOf(&known)
	e.register(server)
	carryOut(e, &out)
	out.Peers, out.Logs = nil, nil
	for _, c := range []struct {
		hello   peerwire.Hello
		invited bool
	}{
		{known, true},
		{peerwire.Hello{ID: townID(2), Name: "n2", JetStream: true, Lost: true, Unclaimed: 2, Replica: 22}, false},
		{peerwire.Hello{ID: townID(3), Name: "n3", JetStream: true, Lost: true, Replica: 23}, true},
		{peerwire.Hello{ID: townID(4), Name: "n4", JetStream: true, Replica: 24}, true},
	} {
		now := event.Time{Mono: 3, Wall: 1_700_000_000_000_000_003}
		e.Step(now, &event.Input{Kind: event.PeerUp, Peer: c.hello.ID, Hello: &c.hello}, &out)
		e.tick()
		e.tick()
		carryOut(e, &out)
		invited, told := false, 0
		for _, o := range out.Peers {
			for rest := o.Frames; o.To == c.hello.ID && len(rest) > 0; {
				var frame []byte
				var f peerwire.Frame
				var err error
				if frame, rest, err = peerwire.Split(rest); err == nil {
					err = peerwire.Parse(frame, &f)
				}
				if err != nil {
					t.Fatal(err)
				}
				invited = invited || f.Kind == peerwire.Join && f.Flag
			}
		}
		for _, l := range out.Logs {
			if strings.Contains(l.Text, "belongs to another JetStream cluster") {
				told++
			}
		}
		if invited != c.invited || c.invited != (told == 0) || told > 1 {
			t.Errorf("server %q: invited %v, told %d times", c.hello.Name, invited, told)
		}
		out.Peers, out.Logs = nil, nil
	}
}

// TestServerWithStreamsAndNoCatalogRefusesToStart is about a server without a cluster: there is nobody to ask.
func TestServerWithStreamsAndNoCatalogRefusesToStart(t *testing.T) {
	streams := event.Group{ID: 16, NextBlock: 1, Log: wal.Group{ID: 16}}
	for _, recovered := range [][]event.Group{{streams}, {damagedGroup(metaGroup), streams}} {
		authenticator, err := auth.New(auth.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var out event.Outputs
		_, err = New(Config{ServerID: "N", ServerName: "n", Auth: authenticator, JetStream: JetStream{Enabled: true}}, recovered, event.Time{Mono: 1}, &out)
		if err == nil || len(out.Storage) > 0 {
			t.Errorf("got %v and %d operations", err, len(out.Storage))
		}
	}
}
