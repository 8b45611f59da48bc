package engine

import (
	"fmt"
	"testing"

	"weir/disk/checkpoint"
	"weir/disk/wal"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/node/event"
	"weir/node/replica"
)

// carryOut completes what an engine asks of its disk until it asks for nothing more, and returns which files it drops.
func carryOut(e *Engine, out *event.Outputs) (drops int) {
	now := event.Time{Mono: 2, Wall: 1_700_000_000_000_000_001}
	for e.Finish(now, out); len(out.Storage) > 0; e.Finish(now, out) {
		ops := out.Storage
		out.Storage = nil
		for i := range ops {
			if ops[i].Kind == event.Drop {
				drops++
			}
			if ops[i].Kind == event.Persist || ops[i].Kind == event.Drop {
				e.Step(now, &event.Input{Kind: event.Done, Done: event.Completion{Ticket: ops[i].Ticket, Kind: ops[i].Kind, Group: ops[i].Group}}, out)
			}
		}
	}
	return drops
}

// withStream is a server that has founded a catalog alone and has a stream.
func withStream(t *testing.T, out *event.Outputs) *Engine {
	t.Helper()
	e, err := founder(t, 0, 1, nil, out)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		e.tick() // founds the catalog and enters the server in it
		carryOut(e, out)
	}
	config := &jsapi.StreamConfig{Name: "S", Subjects: []string{"s"}}
	limits := &jsapi.Limits{Account: jsapi.Unlimited()}
	if err := config.Normalize(limits, false); err != nil {
		t.Fatal(err)
	}
	view := e.clusterView(0)
	create := view.Create(globalAccount, config, limits)
	e.proposeMeta(&create)
	carryOut(e, out)
	if e.catalog.Stream(globalAccount, "S") == nil || e.groups[groupID(meta.FirstGroup)] == nil {
		t.Fatal("there is no stream")
	}
	return e
}

// stateOf is a catalog of one stream at most as a checkpoint has it.
func stateOf(m *meta.Machine, term uint64) checkpoint.State {
	state := checkpoint.State{Index: m.Applied(), Term: term}
	for id := range meta.FirstGroup + 1 {
		if data, ok := m.AppendSection(nil, id); ok {
			state.Sections = append(state.Sections, checkpoint.Section{ID: id, Data: data})
		}
	}
	return state
}

// TestCatalogThatContradictsEndsNoStream mends the catalog by a snapshot of the same index: one that lacks a stream proves
// nothing about the stream.
func TestCatalogThatContradictsEndsNoStream(t *testing.T) {
	for _, agrees := range []bool{true, false} {
		t.Run(fmt.Sprintf("agrees %v", agrees), func(t *testing.T) {
			var out event.Outputs
			e := withStream(t, &out)
			own := e.meta.replica
			other := meta.New()
			if agrees {
				other = e.catalog
			}
			for other.Applied() < own.Applied().Index {
				other.Apply(other.Applied()+1, nil, &effect.List{})
			}
			installed := &event.Group{ID: metaGroup, NextBlock: 1, Checkpoint: stateOf(other, own.Applied().Term)}
			r := &receiving{group: e.meta, replica: own, repair: true}
			e.installed(r, &event.Completion{Kind: event.Install, Group: metaGroup, Installed: installed})
			drops := carryOut(e, &out)
			if drops > 0 || e.groups[groupID(meta.FirstGroup)] == nil || e.catalog.Stream(globalAccount, "S") == nil {
				t.Errorf("the stream is gone, %d groups are dropped", drops)
			}
			if own.Broken() != nil || e.meta.replica != own {
				t.Errorf("broken: %v", own.Broken())
			}
			if (e.meta.readFailed == nil) != agrees {
				t.Errorf("what is reported is %v", e.meta.readFailed)
			}
		})
	}
}

// TestCatalogGoesOnWhenASnapshotIsInstalledInPart is about a replica that learns: its log has what it promised, and its
// state is in memory.
func TestCatalogGoesOnWhenASnapshotIsInstalledInPart(t *testing.T) {
	var out event.Outputs
	e, err := founder(t, 1, 3, nil, &out)
	if err != nil {
		t.Fatal(err)
	}
	first := []replica.Member{{ID: 7, Server: uint64(townID(0))}}
	if err := e.startMeta(&metaBirth{Founder: townID(0), Replica: e.metaReplica, Members: first, Servers: 3}, nil); err != nil {
		t.Fatal(err)
	}
	carryOut(e, &out)
	own := e.meta.replica
	r := &receiving{group: e.meta, replica: own, from: townID(0), installing: true}
	e.meta.installing, e.receivings = true, []*receiving{r}
	half := fmt.Errorf("%w: group 1: %w", event.ErrHalfInstalled, wal.ErrCorrupt) // what was written can not be read
	e.installFailed(r, half)
	if own.Broken() != nil || e.meta.damaged != nil || e.meta.replica != own {
		t.Fatalf("the replica is stopped: %v", own.Broken())
	}
	if e.meta.ailing == nil || e.meta.installing || len(e.transferOp) != 1 || e.transferOp[0].Kind != event.Stage {
		t.Errorf("the snapshot is not installed again: ailing %v, orders %v", e.meta.ailing, e.transferOp)
	}
	for range 2 * failuresMax {
		e.installFailed(r, half)
	}
	if own.Broken() != nil || len(e.receivings) != 0 {
		t.Errorf("the disk is not spared: %d snapshots are received", len(e.receivings))
	}
	if r.damaged {
		t.Error("the sender is told that its snapshot is damaged")
	}
}
