package node_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/disk/wal"
	"weir/model/meta"
	"weir/node/engine"
	"weir/node/storage"
)

// TestAFollowerWithAFullDiskComesBackByItself fills the disk of a follower while its leader takes messages: the follower says
// so, takes no more than it can keep in memory, and has everything a while after there is space again.
func TestAFollowerWithAFullDiskComesBackByItself(t *testing.T) {
	c := newClusterOf(t, 3, func(config *engine.Config) {
		config.JetStream.BlockBytes, config.JetStream.CheckpointBytes = 1<<20, 1<<20
	})
	for i, r := range c.rigs {
		c.kill(i)
		r.storage = storage.Options{ReserveBytes: 128 << 10, LogReserveBytes: 256 << 10, Log: wal.Options{SegmentBytes: 1 << 20}}
		c.restart(i)
	}
	c.run(60)
	c.create("S", 3)
	c.run(60)
	leader := int(c.leaderOf("S")[1] - '1')
	r := c.rigs[(leader+1)%3]
	r.disk.SetCapacity(r.disk.Used() + 2<<20)
	const messages, size = 300, 100 << 10 // more than is kept in memory
	for i := range messages {
		if got := c.request(leader, "S", strings.Repeat("x", size)); !strings.Contains(got, fmt.Sprintf(`"seq":%d`, i+1)) {
			t.Fatalf("publish %d: %s", i+1, got)
		}
	}
	c.run(50)
	if got := r.health(); !strings.Contains(got, "no space left on device; changes are refused until there is space") {
		t.Errorf("the server whose disk is full says %s", got)
	}
	own := r.replica(meta.FirstGroup)
	if kept := (own.LastIndex() - own.Applied().Index) * size; kept > engine.StalledBytesMax+2*engine.StalledBytesMax/8 || kept < engine.StalledBytesMax/2 {
		t.Errorf("it keeps %d bytes in memory", kept)
	}
	r.disk.SetCapacity(0)
	c.run(600)
	if got := r.health(); got != healthy {
		t.Errorf("once there is space it says %s", got)
	}
	other := c.rigs[leader].replica(meta.FirstGroup)
	if own = r.replica(meta.FirstGroup); own.Applied() != other.Applied() || own.Machine().Digest() != other.Machine().Digest() {
		t.Errorf("it has applied %v, the leader %v", own.Applied(), other.Applied())
	}
}
