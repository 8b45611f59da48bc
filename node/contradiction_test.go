package node_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/model/meta"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/replica"
)

// catalogOf is the replica of the catalog on a server, and its state.
func catalogOf(r *rig) (own *replica.Replica, state *meta.Machine) {
	own = r.replica(meta.Group)
	return own, own.Machine().(*meta.Machine)
}

// TestCatalogThatContradictsTheOthersIsMended spoils the catalog in the memory of one server in turn, whoever leads: the
// servers find out which one is wrong, and that takes the state of the others, as the member that it was, while it runs.
func TestCatalogThatContradictsTheOthersIsMended(t *testing.T) {
	for victim := range 3 {
		for _, how := range []string{"in use", "at rest", "damaged on the disk as well"} {
			t.Run(fmt.Sprintf("server %d, %s", victim, how), func(t *testing.T) { contradict(t, victim, how) })
		}
	}
}

// contradict spoils a catalog. When its checkpoint is damaged as well it is fetched from the leader before anybody has said
// that it is wrong: then nothing is ended by what the leader alone has.
func contradict(t *testing.T, victim int, how string) {
	c := newClusterOf(t, 3, func(config *engine.Config) { config.JetStream.CheckpointBytes = 1 << 10 })
	create := func(name string) {
		t.Helper()
		body := fmt.Sprintf(`{"name":%q,"subjects":[%q],"num_replicas":3,"storage":"file","retention":"limits","discard":"old"}`, name, name)
		for range 20 {
			if got := c.request(0, "$JS.API.STREAM.CREATE."+name, body); strings.Contains(got, `"config"`) {
				return
			}
			c.run(20)
		}
		t.Fatalf("%s is not created", name)
	}
	for i := range 5 {
		create(fmt.Sprint("S", i))
	}
	c.run(300)
	r := c.rigs[victim]
	before, state := catalogOf(r)
	var lines []string
	for _, other := range c.rigs {
		other.logged = func(line event.LogLine) { lines = append(lines, line.Text) }
	}
	state.Spoil()
	switch how {
	case "damaged on the disk as well":
		damageGroup(t, r, "groups/1/")
	case "in use":
		for i := range 10 {
			create(fmt.Sprint("T", i))
		}
	}
	c.run(2000)
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, "The catalog of streams on this server is wrong") || !strings.Contains(text, "Data of the catalog is whole again") ||
		strings.Contains(text, "is stopped") || strings.Contains(text, "takes its place:") && strings.Contains(text, "another one") {
		t.Fatalf("the log says %q", text)
	}
	create("AFTER")
	c.run(40)
	own, state := catalogOf(r)
	if own.ID() != before.ID() || own.Broken() != nil {
		t.Errorf("replica %d has taken the place of %d: %v", own.ID(), before.ID(), own.Broken())
	}
	for i, other := range c.rigs {
		_, its := catalogOf(other)
		if its.Applied() != state.Applied() || its.Digest() != state.Digest() {
			t.Errorf("server %d has digest %x at %d, the one that was wrong %x at %d", i, its.Digest(), its.Applied(), state.Digest(), state.Applied())
		}
	}
	delete(r.out, 900)
	c.restart(victim)
	c.run(100)
	for i := range 5 {
		if got := c.request(victim, fmt.Sprint("S", i), "x"); !strings.Contains(got, `"seq":1`) {
			t.Fatalf("publish: %s", got)
		}
	}
}
