package node_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/node/engine"
	"weir/node/event"
)

// blocksOf lists the message blocks of streams on a server's disk.
func blocksOf(r *rig) []string {
	var blocks []string
	for _, name := range r.disk.Files("data") {
		if strings.Contains(name, "/msgs/") {
			blocks = append(blocks, name)
		}
	}
	return blocks
}

// TestDamagedBlocksAreMendedFromOthers damages every block on one server in turn: the search for damage finds it, the
// server fetches what it lacks, and serves all of it afterwards. The replica stays the member that it was.
func TestDamagedBlocksAreMendedFromOthers(t *testing.T) {
	for victim := range 3 {
		t.Run(fmt.Sprint("server ", victim), func(t *testing.T) { damageAndMend(t, victim) })
	}
}

func damageAndMend(t *testing.T, victim int) {
	c := newClusterOf(t, 3, func(config *engine.Config) {
		config.JetStream.BlockBytes, config.JetStream.CheckpointBytes = 4<<10, 8<<10
	})
	create := `{"name":"S","subjects":["s"],"num_replicas":3,"storage":"file","retention":"limits","discard":"old"}`
	if got := c.request(0, "$JS.API.STREAM.CREATE.S", create); !strings.Contains(got, `"did_create":true`) {
		t.Fatalf("create: %s", got)
	}
	const messages = 60
	for i := range messages {
		if got := c.request(i%3, "s", strings.Repeat(fmt.Sprintf("%04d", i), 100)); !strings.Contains(got, fmt.Sprintf(`"seq":%d`, i+1)) {
			t.Fatalf("publish: %s", got)
		}
	}
	c.run(300)
	r := c.rigs[victim]
	blocks := blocksOf(r)
	if len(blocks) < 3 {
		t.Fatalf("the disk has %d blocks: %v", len(blocks), r.disk.Files("data"))
	}
	for _, name := range blocks {
		if err := r.disk.Damage(name, memfs.RotBit, 300); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	r.logged = func(line event.LogLine) { lines = append(lines, line.Text) }
	c.run(2000)
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, "is damaged on the disk") || !strings.Contains(text, "is whole again") {
		t.Fatalf("the log says %q", text)
	}
	if strings.Contains(text, "is stopped") {
		t.Fatalf("the replica was given up: %q", text)
	}
	// The others go, but for one that votes: the mended server leads, and reads from its disk.
	delete(r.out, 900)
	c.restart(victim)
	c.run(40)
	name := fmt.Sprintf("n%d", victim+1)
	step := fmt.Sprintf(`{"placement":{"preferred":%q}}`, name)
	for range 20 {
		if strings.Contains(c.request(victim, "$JS.API.STREAM.INFO.S", ""), `"leader":"`+name+`"`) {
			break
		}
		c.request(victim, "$JS.API.STREAM.LEADER.STEPDOWN.S", step)
		c.run(20)
	}
	for i := range messages {
		got := c.request(victim, "$JS.API.STREAM.MSG.GET.S", fmt.Sprintf(`{"seq":%d}`, i+1))
		if !strings.Contains(got, fmt.Sprintf(`"seq":%d`, i+1)) {
			t.Fatalf("message %d of %s: %s", i+1, name, got)
		}
	}
}

// TestDamagedCatalogIsMendedFromOthers damages the checkpoint of the catalog on one server in turn, whoever leads: the search
// for damage finds it, the server fetches it from the leader while it runs, and starts from what it has then.
func TestDamagedCatalogIsMendedFromOthers(t *testing.T) {
	for victim := range 3 {
		t.Run(fmt.Sprint("server ", victim), func(t *testing.T) { damageCatalog(t, victim) })
	}
}

// damageGroup damages the files of a group.
func damageGroup(t *testing.T, r *rig, under string) {
	t.Helper()
	damaged := 0
	for _, name := range r.disk.Files("data") {
		if strings.Contains(name, under) {
			damaged++
			if err := r.disk.Damage(name, memfs.RotBit, 300); err != nil {
				t.Fatal(err)
			}
		}
	}
	if damaged == 0 {
		t.Fatalf("there is no checkpoint under %s: %v", under, r.disk.Files("data"))
	}
}

func damageCatalog(t *testing.T, victim int) {
	c := newClusterOf(t, 3, func(config *engine.Config) { config.JetStream.CheckpointBytes = 1 << 10 })
	create := func(name string) {
		t.Helper()
		body := fmt.Sprintf(`{"name":%q,"subjects":[%q],"num_replicas":3,"storage":"file","retention":"limits","discard":"old"}`, name, name)
		if got := c.request(0, "$JS.API.STREAM.CREATE."+name, body); !strings.Contains(got, `"did_create":true`) {
			t.Fatalf("create: %s", got)
		}
	}
	for i := range 10 {
		create(fmt.Sprint("S", i))
	}
	c.run(300)
	r := c.rigs[victim]
	damageGroup(t, r, "groups/1/")
	var lines []string
	r.logged = func(line event.LogLine) { lines = append(lines, line.Text) }
	c.run(2000)
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, "Data of the catalog is damaged on the disk") ||
		!strings.Contains(text, "Data of the catalog is whole again") || strings.Contains(text, "is stopped") {
		t.Fatalf("the log says %q", text)
	}
	create("AFTER")
	delete(r.out, 900)
	c.restart(victim)
	c.run(40)
	for i := range 10 {
		if got := c.request(victim, fmt.Sprint("S", i), "x"); !strings.Contains(got, `"seq":1`) {
			t.Fatalf("publish: %s", got)
		}
	}
	if text := strings.Join(lines, "\n"); strings.Contains(text, "The catalog of streams is damaged here") {
		t.Fatalf("after the restart the log says %q", text)
	}
}
