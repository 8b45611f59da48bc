package node_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/disk/vfs"
	"weir/node/engine"
	"weir/node/monitor"
)

// health is what a probe of the server is answered.
func (r *rig) health() string {
	return strings.ReplaceAll(string(monitor.Handle("/healthz", nil, source{r}).Body), `\u003e`, ">")
}

const healthy = `{"status":"ok"}`

// TestCheckpointWithoutSpaceIsNotCalledLost lets the checkpoint of a stream, then of the catalog, find no space: nothing is lost
// by that, and the report says so, and ends when it has been made.
func TestCheckpointWithoutSpaceIsNotCalledLost(t *testing.T) {
	for _, what := range []string{"stream", "catalog"} {
		t.Run(what, func(t *testing.T) {
			c := newClusterOf(t, 1, func(config *engine.Config) { config.JetStream.CheckpointBytes = 4 << 10 })
			r := c.rigs[0]
			c.create("S", 1)
			r.disk.Inject(memfs.Fault{On: memfs.OpWrite, Under: "data/groups", Err: vfs.ErrNoSpace})
			want := "JetStream stream '$G > S' write error: there is no space for a checkpoint"
			if what == "stream" {
				c.request(0, "S", strings.Repeat("x", 5<<10))
			} else {
				want = "JetStream meta layer write error: there is no space for a checkpoint"
				for i := range 20 {
					c.create(fmt.Sprint("T", i), 1)
				}
			}
			if got := r.health(); !strings.Contains(got, want) || !strings.Contains(got, "nothing is lost") || strings.Contains(got, "recovered") {
				t.Errorf("without space: %s", got)
			}
			r.disk.Heal()
			c.run(400)
			if got := r.health(); got != healthy {
				t.Errorf("with space: %s", got)
			}
		})
	}
}

// TestDamagedMessagesAreReportedUntilTheyAreDeleted spoils the messages of a stream that no other server has.
func TestDamagedMessagesAreReportedUntilTheyAreDeleted(t *testing.T) {
	r := newRigAtRest(t)
	for _, name := range r.disk.Files("data/groups") {
		if strings.HasSuffix(name, ".blk") {
			if err := r.disk.Damage(name, memfs.RotNoise, 4<<10); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.get(1, "S", "1")
	if got := r.health(); !strings.Contains(got, "JetStream stream '$G > S' has damaged data") || !strings.Contains(got, "delete or purge") {
		t.Errorf("with damaged messages: %s", got)
	}
	r.pub(1, "$JS.API.STREAM.PURGE.S", "in.x", "")
	for range 10 {
		r.sleep(10e9)
	}
	if got := r.health(); got != healthy {
		t.Errorf("without them: %s", got)
	}
}

// TestStreamWhoseOnlyServerIsLostIsReportedUntilItIsDeleted wipes the server that has the only replica of a stream. Another
// one of its name takes its place and has nothing of it.
func TestStreamWhoseOnlyServerIsLostIsReportedUntilItIsDeleted(t *testing.T) {
	c := newCluster(t, 3)
	c.create("S", 1)
	lost := int(c.leaderOf("S")[1] - '1')
	asked := (lost + 1) % 3
	c.kill(lost)
	c.add(func(config *engine.Config) {
		config.ServerName, config.Cluster.Expected = fmt.Sprintf("n%d", lost+1), 3
	})
	heir := c.rigs[3]
	for i := range 3 {
		if i != lost {
			c.connect(i, 3)
		}
	}
	c.run(200)
	got := heir.health()
	for _, part := range []string{"JetStream stream '$G > S' is not current: group leader unknown", "1 of the 1 servers that have its data",
		fmt.Sprintf("n%d with the id", lost+1), "or delete the stream"} {
		if !strings.Contains(got, part) {
			t.Errorf("the server that took the place says %s, without %q", got, part)
		}
	}
	if got := c.request(asked, "$JS.API.STREAM.DELETE.S", ""); !strings.Contains(got, `"success":true`) {
		t.Errorf("delete: %s", got)
	}
	c.run(100)
	if got := heir.health(); got != healthy {
		t.Errorf("after the deletion: %s", got)
	}
	if got := c.request(asked, "$JS.API.STREAM.CREATE.S", `{"name":"S","subjects":["S"]}`); !strings.Contains(got, `"did_create":true`) {
		t.Fatalf("create: %s", got)
	}
	if got := c.request(asked, "S", "new"); !strings.Contains(got, `"seq":1`) {
		t.Errorf("publish to the stream that was created again: %s", got)
	}
}
