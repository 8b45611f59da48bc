package node_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/disk/vfs"
	"weir/node/engine"
	"weir/node/event"
)

// TestASnapshotThatDoesNotFitIsNotFetchedAllTheTime has a server miss what the others have forgotten, and gives it no space
// for it.
func TestASnapshotThatDoesNotFitIsNotFetchedAllTheTime(t *testing.T) {
	c := newClusterOf(t, 3, func(config *engine.Config) {
		config.JetStream.BlockBytes, config.JetStream.CheckpointBytes, config.Cluster.LogTailBytes = 4<<10, 8<<10, 8<<10
	})
	c.create("S", 3)
	gone := (int(c.leaderOf("S")[1]-'1') + 1) % 3
	c.kill(gone)
	for i := range 100 {
		if got := c.request((gone+1)%3, "S", strings.Repeat("x", 1000)); !strings.Contains(got, `"seq":`) {
			t.Fatalf("publish %d: %s", i, got)
		}
	}
	c.run(100)
	r := c.rigs[gone]
	failed := 0
	r.logged = func(line event.LogLine) {
		if strings.Contains(line.Text, "can not be taken over") {
			failed++
		}
	}
	r.disk.Inject(memfs.Fault{On: memfs.OpWrite, Under: "data/groups", Err: vfs.ErrNoSpace})
	c.restart(gone)
	c.run(400)
	if failed == 0 || failed > 12 {
		t.Errorf("in 40 seconds it fails %d times", failed)
	}
	r.disk.Heal()
	c.run(200)
	got := c.request((gone+1)%3, "$JS.API.STREAM.INFO.S", "")
	if !strings.Contains(got, fmt.Sprintf(`"name":"n%d","current":true`, gone+1)) {
		t.Errorf("with space again: %s", got)
	}
}
