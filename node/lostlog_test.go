package node_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestServerWhoseLogIsGoneIsRefilledByOthers removes every segment of a server's log: its replicas have forgotten what they
// promised, and others take their place on it.
func TestServerWhoseLogIsGoneIsRefilledByOthers(t *testing.T) {
	c := newCluster(t, 3)
	if got := c.request(0, "$JS.API.STREAM.CREATE.S", `{"name":"S","subjects":["s"],"num_replicas":3}`); strings.Contains(got, `"error"`) {
		t.Fatal(got)
	}
	for i := range 20 {
		if got := c.request(0, "s", fmt.Sprint(i)); !strings.Contains(got, `"seq"`) {
			t.Fatal(got)
		}
	}
	c.run(20)
	for i := range 3 { // one after the other, so that in the end nothing is left of the first logs
		c.kill(i)
		for _, name := range c.rigs[i].disk.Files("data/wal") {
			if strings.HasSuffix(name, ".seg") {
				if err := c.rigs[i].disk.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.rigs[i].config.Seed += 100 // as every start draws another
		delete(c.rigs[i].out, 900)
		c.restart(i)
		c.run(200)
		got := c.request((i+1)%3, "$JS.API.STREAM.INFO.S", "")
		if strings.HasPrefix(got, "PING") {
			got = c.request((i+1)%3, "$JS.API.STREAM.INFO.S", "")
		}
		if strings.Count(got, `"current":true`) != 2 || strings.Count(got, `"name":"n`) != 2 || !strings.Contains(got, `"messages":20,`) {
			t.Fatalf("after server %d lost its log: %s", i+1, got)
		}
	}
	if got := c.request(1, "s", "more"); !strings.Contains(got, `"seq":21`) {
		t.Fatal(got)
	}
}
