package node_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/node/engine"
	"weir/node/event"
)

// TestFollowerThatGetsADamagedSnapshotSaysSo damages the block that a leader still appends to, which no search would reach
// for long, while a follower is away for so long that only a snapshot helps it: the follower tells the leader, which
// mends its block from another, and then all three have everything.
func TestFollowerThatGetsADamagedSnapshotSaysSo(t *testing.T) {
	c := newClusterOf(t, 3, func(config *engine.Config) {
		config.JetStream.BlockBytes, config.JetStream.CheckpointBytes = 1<<20, 8<<10
		config.Cluster.LogTailBytes = 4 << 10
	})
	c.create("S", 3)
	leader := int(c.leaderOf("S")[1] - '1')
	away, other := (leader+1)%3, (leader+2)%3
	const messages = 60
	publish := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if got := c.request(other, "S", strings.Repeat(fmt.Sprintf("%04d", i), 100)); !strings.Contains(got, fmt.Sprintf(`"seq":%d`, i+1)) {
				t.Fatalf("publish: %s", got)
			}
		}
	}
	publish(0, 20)
	c.run(50)
	c.kill(away)
	publish(20, messages)
	c.run(50)
	for _, name := range blocksOf(c.rigs[leader]) {
		if err := c.rigs[leader].disk.Damage(name, memfs.RotBit, 300); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	c.rigs[leader].logged = func(line event.LogLine) { lines = append(lines, line.Text) }
	delete(c.rigs[away].out, 900)
	c.restart(away)
	for range 2 { // long before the search for damage would have come there
		c.run(20)
		if strings.Count(c.request(other, "$JS.API.STREAM.INFO.S", ""), `"current":true`) == 2 {
			break
		}
	}
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, "finds the snapshot of") {
		t.Errorf("the leader was told nothing: %q", text)
	}
	got := c.request(other, "$JS.API.STREAM.INFO.S", "")
	if strings.Count(got, `"current":true`) != 2 || !strings.Contains(got, fmt.Sprintf(`"messages":%d,`, messages)) {
		t.Errorf("in the end: %s\nthe leader said %s", got, text)
	}
}
