package node_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/model/jsapi"
	"weir/model/meta"
	"weir/node/engine"
	"weir/node/monitor"
)

func TestAServerThatIsGoneIsShownWithTheTimeItWasSeen(t *testing.T) {
	c := newCluster(t, 3)
	c.create("S", 3)
	leader := int(c.leaderOf("S")[1] - '1')
	gone := (leader + 1) % 3
	c.kill(gone)
	c.run(60)
	var info struct{ Cluster jsapi.ClusterInfo }
	if err := json.Unmarshal([]byte(payload(c.request(leader, "$JS.API.STREAM.INFO.S", ""))), &info); err != nil {
		t.Fatal(err)
	}
	for _, p := range info.Cluster.Replicas {
		switch name := fmt.Sprintf("n%d", gone+1); {
		case p.Name != name:
		case !p.Offline:
			t.Errorf("%s is not shown as offline", name)
		case p.Active < 5*time.Second || p.Active > 10*time.Second:
			t.Errorf("%s is gone for six seconds, and is shown as seen %v ago", name, p.Active)
		}
	}
}

// payload is the body of the one message that a client was sent.
func payload(text string) string {
	_, body, _ := strings.Cut(text, "\r\n")
	return strings.TrimSuffix(body[strings.Index(body, "{"):], "\r\n")
}

func TestARemovedServerSaysSo(t *testing.T) {
	c := newClusterOf(t, 4, systemUsers(t))
	const gone = 3
	health := func() string { return string(monitor.Handle("/healthz", nil, source{c.rigs[gone]}).Body) }
	if got := health(); got != `{"status":"ok"}` {
		t.Fatalf("before: %s", got)
	}
	c.kill(gone)
	c.run(40)
	if got := c.as("sys", 0, "$JS.API.SERVER.REMOVE", `{"peer":"n4"}`); !strings.Contains(got, `"success":true`) {
		t.Fatalf("remove: %s", got)
	}
	c.restart(gone)
	c.run(40)
	if got := health(); !strings.Contains(got, "this server was removed from the JetStream cluster") {
		t.Errorf("the removed server says %s", got)
	}
}

// TestServerThatNeverLearntTheCatalogCanBeRemoved: a server whose disk was wiped joins anew and is lost before it votes. The
// others are fewer than those that founded the catalog, and one that starts to lead it then has to decide all the same.
func TestServerThatNeverLearntTheCatalogCanBeRemoved(t *testing.T) {
	c := newClusterOf(t, 3, systemUsers(t))
	c.kill(2)
	c.add(func(config *engine.Config) {
		systemUsers(t)(config)
		config.ServerName, config.Cluster.Expected = "n3", 3
	})
	c.unaware = 3 // it begins to learn the catalog, and gets no further
	c.connect(0, 3)
	c.connect(1, 3)
	c.run(40)
	c.kill(3)
	for i := range 2 {
		c.kill(i)
		c.restart(i)
	}
	c.run(40)
	if got := c.as("app", 0, "$JS.API.STREAM.CREATE.S", `{"name":"S"}`); !strings.Contains(got, `"did_create":true`) {
		t.Errorf("create: %s", got)
	}
	if got := c.as("sys", 0, "$JS.API.SERVER.REMOVE", `{"peer":"n3"}`); !strings.Contains(got, `"success":true`) {
		t.Errorf("remove: %s", got)
	}
	c.run(40)
	if members := c.rigs[0].replica(meta.Group).Members(); len(members) != 2 {
		t.Errorf("the catalog has the members %v", members)
	}
}

// streamOn makes streams until a server has one alone, stores a message in it, and returns its name, which is its subject.
func (c *cluster) streamOn(server int) string {
	c.t.Helper()
	for i := range 8 {
		name := fmt.Sprintf("S%d", i)
		got := c.as("app", 0, "$JS.API.STREAM.CREATE."+name, fmt.Sprintf(`{"name":%q,"subjects":[%q]}`, name, name))
		if !strings.Contains(got, fmt.Sprintf(`"leader":"n%d"`, server+1)) {
			continue
		}
		if got := c.as("app", 0, name, "kept"); !strings.Contains(got, `"seq":1}`) {
			c.t.Fatalf("publish: %s", got)
		}
		return name
	}
	c.t.Fatalf("no stream is placed on server n%d", server+1)
	return ""
}

// TestServerThatIsRemovedGivesUpItsStreams has the only replica of a stream on a server that is removed, be it the leader of the
// catalog: another one gets it with its messages. One that is there hears of the catalog until then; one that was removed
// while it was down hears of it again when it comes back, and no longer.
func TestServerThatIsRemovedGivesUpItsStreams(t *testing.T) {
	for gone := range 4 {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("n%d, down: %v", gone+1, down), func(t *testing.T) { removeHolder(t, gone, down) })
		}
	}
}

func removeHolder(t *testing.T, gone int, down bool) {
	c := newClusterOf(t, 4, systemUsers(t))
	name, through := c.streamOn(gone), (gone+1)%4
	if down {
		c.kill(gone)
		c.run(40)
	}
	if got := c.as("sys", through, "$JS.API.SERVER.REMOVE", fmt.Sprintf(`{"peer":"n%d"}`, gone+1)); !strings.Contains(got, `"success":true`) {
		t.Fatalf("remove: %s", got)
	}
	if down {
		c.run(400) // the catalog comes to rest
		c.restart(gone)
		c.run(100)
	}
	c.run(200)
	if got := c.members(gone); len(got) > 0 {
		t.Errorf("the removed server still has groups with so many members: %v", got)
	}
	c.kill(gone)
	c.run(40)
	if got := c.as("app", through, name, "more"); !strings.Contains(got, `"seq":2}`) {
		t.Errorf("publish afterwards: %s", got)
	}
	if members := c.rigs[through].replica(meta.Group).Members(); len(members) != 3 {
		t.Errorf("the catalog has the members %v", members)
	}
}
