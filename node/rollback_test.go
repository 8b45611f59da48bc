package node_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/disk/wal"
	"weir/node/replica"
)

// TestServerWhoseDiskWentBackIsReplacedByItself starts a server on what its disk held a while ago, as one that lied about syncs
// leaves it after a power loss: its replicas, also that of the catalog, are told so by their leaders, and others take their
// place on it.
func TestServerWhoseDiskWentBackIsReplacedByItself(t *testing.T) {
	c := newCluster(t, 3)
	create := func(through, n int) {
		t.Helper()
		got := c.request(through, fmt.Sprintf("$JS.API.STREAM.CREATE.S%d", n), fmt.Sprintf(`{"name":"S%d","subjects":["s%d"],"num_replicas":3}`, n, n))
		if strings.Contains(got, `"error"`) {
			t.Fatal(got)
		}
	}
	create(0, 1)
	c.run(20)
	const victim = 2
	r := c.rigs[victim]
	before := r.disk.Crash(memfs.KeepAll, 0)
	had := replicaIDs(r)
	for n := 2; n < 6; n++ {
		create(0, n)
	}
	for i := range 20 {
		if got := c.request(0, "s1", fmt.Sprint(i)); !strings.Contains(got, `"seq"`) {
			t.Fatal(got)
		}
	}
	c.run(20)
	c.kill(victim)
	r.disk = before
	r.config.Seed += 100 // as every start draws another
	c.restart(victim)
	c.run(300)
	has := replicaIDs(r)
	for _, group := range []wal.GroupID{1, 16} {
		if has[group] == 0 || has[group] == had[group] {
			t.Errorf("group %d has replica %d, it had %d when the disk went back", group, has[group], had[group])
		}
	}
	r.node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) {
		if err := r.Broken(); err != nil {
			t.Errorf("the replica of group %d is broken: %v", group, err)
		}
	})
	// It votes and acknowledges again: without another one its word is needed, also after a start.
	c.kill(victim)
	c.restart(victim)
	c.run(100)
	c.kill(0)
	c.run(100)
	create(1, 7)
	if got := c.request(1, "s1", "more"); !strings.Contains(got, `"seq":21`) {
		t.Fatal(got)
	}
}

func replicaIDs(r *rig) map[wal.GroupID]uint64 {
	ids := map[wal.GroupID]uint64{}
	r.node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) { ids[group] = r.ID() })
	return ids
}
