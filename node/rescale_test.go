package node_test

import (
	"fmt"
	"strings"
	"testing"
)

// counted is a cluster of three with the stream S of three replicas, to which numbers are published one after the other.
type counted struct {
	*cluster
	t     *testing.T
	count int
}

func newCounted(t *testing.T) *counted {
	c := &counted{cluster: newCluster(t, 3), t: t}
	c.create("S", 3)
	return c
}

// publish publishes the next number through a server.
func (c *counted) publish(i int) {
	c.t.Helper()
	c.count++
	if got := c.request(i, "S", fmt.Sprint(c.count)); !strings.Contains(got, fmt.Sprintf(`"seq":%d`, c.count)) {
		c.t.Fatalf("message %d through n%d: %s", c.count, i+1, got)
	}
}

// restartAll restarts each server in turn, and calls then behind each restart.
func (c *counted) restartAll(then func(i int)) {
	for i := range c.rigs {
		c.kill(i)
		delete(c.rigs[i].out, 900)
		c.restart(i)
		c.run(100)
		then(i)
	}
}

// TestReplicaThatCameBackSurvivesARestart takes a stream from three replicas to one and back, so that servers have a
// second replica of it after the first, and restarts each: what it knows of the catalog then may still name the first.
func TestReplicaThatCameBackSurvivesARestart(t *testing.T) {
	c := newCounted(t)
	current := func(replicas int) {
		t.Helper()
		got := c.request(0, "$JS.API.STREAM.INFO.S", "")
		for range 20 {
			if strings.Count(got, `"current":true`) == replicas-1 && strings.Count(got, `"name":"n`) == replicas-1 {
				return
			}
			c.run(10)
			got = c.request(0, "$JS.API.STREAM.INFO.S", "")
		}
		t.Fatalf("want %d replicas: %s", replicas, got)
	}
	for range 10 {
		c.publish(0)
	}
	for round := range 3 {
		for _, replicas := range []int{1, 3} {
			got := c.request(round, "$JS.API.STREAM.UPDATE.S", fmt.Sprintf(`{"name":"S","num_replicas":%d}`, replicas))
			if strings.Contains(got, `"error"`) {
				t.Fatal(got)
			}
			current(replicas)
			c.publish(round)
		}
		c.restartAll(func(i int) {
			current(3)
			c.publish(i)
		})
	}
	for i := range c.rigs {
		if got := c.request(i, "$JS.API.STREAM.INFO.S", ""); !strings.Contains(got, fmt.Sprintf(`"messages":%d,`, c.count)) {
			t.Fatalf("through n%d, after %d messages: %s", i+1, c.count, got)
		}
	}
}

// TestScalingBackNeedsNotWaitForTheFirstScaling asks for one replica and soon for three again, at different steps of the first
// change, and restarts each server afterwards.
func TestScalingBackNeedsNotWaitForTheFirstScaling(t *testing.T) {
	c := newCounted(t)
	scale := func(replicas int) {
		t.Helper()
		got := c.request(0, "$JS.API.STREAM.UPDATE.S", fmt.Sprintf(`{"name":"S","num_replicas":%d}`, replicas))
		if !strings.Contains(got, fmt.Sprintf(`"num_replicas":%d`, replicas)) {
			t.Fatal(got)
		}
	}
	for round := range 4 {
		c.publish(0)
		scale(1)
		c.run(round) // the group has taken the more steps, the later it is
		scale(3)
		got := ""
		for range 40 {
			c.run(10)
			if got = c.request(0, "$JS.API.STREAM.INFO.S", ""); strings.Count(got, `"current":true`) == 2 && !strings.Contains(got, `"pending"`) {
				break
			}
		}
		if strings.Count(got, `"current":true`) != 2 {
			t.Fatalf("round %d: %s", round, got)
		}
		c.publish(0)
	}
	c.restartAll(c.publish)
}
