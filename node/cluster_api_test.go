package node_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"weir/model/jsapi"
	"weir/node/auth"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/monitor"
)

// ask has a client of a server ask and decodes the answer, which must not be an error.
func (c *cluster) ask(i int, subject, body string, into any) {
	c.t.Helper()
	answer := c.request(i, subject, body)
	at := strings.Index(answer, "{")
	if at < 0 || strings.Contains(answer, `"error"`) {
		c.t.Fatalf("%s %s through %d: %s", subject, body, i, answer)
	}
	if err := json.Unmarshal([]byte(answer[at:]), into); err != nil {
		c.t.Fatalf("%s %s through %d: %s: %v", subject, body, i, answer, err)
	}
}

// leaderOf is the name of the server that leads the stream, as every server that is there says.
func (c *cluster) leaderOf(stream string) string {
	c.t.Helper()
	leader := ""
	for i := range c.rigs {
		if c.down[i] {
			continue
		}
		var info jsapi.StreamInfoResponse
		c.ask(i, "$JS.API.STREAM.INFO."+stream, "", &info)
		if info.Cluster == nil || info.Cluster.Leader == "" || leader != "" && leader != info.Cluster.Leader {
			c.t.Fatalf("n%d says that %+v leads, another said %q", i+1, info.Cluster, leader)
		}
		leader = info.Cluster.Leader
	}
	return leader
}

func (c *cluster) create(stream string, replicas int) {
	c.t.Helper()
	var created jsapi.StreamCreateResponse
	c.ask(0, "$JS.API.STREAM.CREATE."+stream, fmt.Sprintf(`{"name":%q,"num_replicas":%d}`, stream, replicas), &created)
}

func TestLeadershipGoesWhereARequestThroughAnyServerSendsIt(t *testing.T) {
	c := newCluster(t, 3)
	c.create("S", 3)
	var done jsapi.SuccessResponse
	for i := range 6 {
		to := fmt.Sprintf("n%d", i%3+1)
		if c.leaderOf("S") == to {
			continue
		}
		c.ask((i+1)%3, "$JS.API.STREAM.LEADER.STEPDOWN.S", fmt.Sprintf(`{"placement":{"preferred":%q}}`, to), &done)
		if got := c.leaderOf("S"); got != to {
			t.Errorf("%s leads, not %s", got, to)
		}
	}
	before := c.leaderOf("S")
	c.ask(0, "$JS.API.STREAM.LEADER.STEPDOWN.S", "", &done)
	if c.leaderOf("S") == before {
		t.Errorf("%s leads after it stepped down", before)
	}
}

// TestRequestsDuringAnElectionAreAnsweredAfterIt: the leader of a stream is gone, and a request that comes before there
// is another waits for that one.
func TestRequestsDuringAnElectionAreAnsweredAfterIt(t *testing.T) {
	c := newCluster(t, 3)
	c.create("S", 3)
	lead := int(c.leaderOf("S")[1] - '1')
	var info jsapi.StreamInfoResponse
	through := (lead + 1) % 3
	c.ask(through, "$JS.API.STREAM.INFO.S", "", &info) // the client is there
	c.kill(lead)
	c.ask(through, "$JS.API.STREAM.INFO.S", "", &info)
	if info.Cluster.Leader == fmt.Sprintf("n%d", lead+1) || info.Cluster.Leader == "" {
		t.Errorf("%q leads", info.Cluster.Leader)
	}
	offline := 0
	for _, p := range info.Cluster.Replicas {
		if p.Offline {
			offline++
		}
	}
	if offline != 1 || len(info.Cluster.Replicas) != 2 {
		t.Errorf("other members: %+v", info.Cluster.Replicas)
	}
}

// TestRequestsWithoutQuorumAreRefused: what waits for a leader that never comes is answered.
func TestRequestsWithoutQuorumAreRefused(t *testing.T) {
	c := newCluster(t, 3)
	c.create("S", 3)
	c.leaderOf("S")
	c.kill(1)
	c.kill(2)
	c.run(40)
	got := c.request(0, "$JS.API.STREAM.INFO.S", "")
	if !strings.Contains(got, `"err_code":10008`) || !strings.Contains(got, "stream_info_response") {
		t.Errorf("answered: %s", got)
	}
	if got := c.request(0, "$JS.API.STREAM.NAMES", ""); !strings.Contains(got, `"err_code":10008`) {
		t.Errorf("answered: %s", got)
	}
}

func TestAccountUsageIsTheSameThroughEveryServer(t *testing.T) {
	c := newCluster(t, 3)
	for i, replicas := range []int{1, 3, 2} {
		c.create(fmt.Sprintf("S%d", i), replicas)
		for range 3 {
			c.request(1, fmt.Sprintf("S%d", i), "hello")
		}
	}
	var one jsapi.StreamInfoResponse
	c.ask(0, "$JS.API.STREAM.INFO.S0", "", &one)
	for i := range c.rigs {
		var info jsapi.AccountInfoResponse
		c.ask(i, "$JS.API.INFO", "", &info)
		if info.Streams != 3 || info.Store != 6*one.State.Bytes || one.State.Msgs != 3 {
			t.Errorf("through n%d: %d streams, %d bytes; one has %+v", i+1, info.Streams, info.Store, one.State)
		}
	}
}

func TestListsThroughEveryServerShowEveryStream(t *testing.T) {
	c := newCluster(t, 3)
	for i := range 5 {
		c.create(fmt.Sprintf("S%d", i), 1+i%3)
		c.request(i%3, fmt.Sprintf("S%d", i), "hello")
	}
	for i := range c.rigs {
		var list jsapi.StreamListResponse
		c.ask(i, "$JS.API.STREAM.LIST", "", &list)
		if len(list.Streams) != 5 || len(list.Missing) > 0 {
			t.Fatalf("through n%d: %d streams, missing %v", i+1, len(list.Streams), list.Missing)
		}
		for k, s := range list.Streams {
			if s.Config.Name != fmt.Sprintf("S%d", k) || s.State.Msgs != 1 || s.Cluster.Leader == "" || len(s.Cluster.Replicas) != k%3 {
				t.Errorf("through n%d: %s has %d messages, cluster %+v", i+1, s.Config.Name, s.State.Msgs, s.Cluster)
			}
		}
	}
}

// TestUpdateIsAnsweredWithWhatItChanged: the answer comes when the stream has the configuration, whoever leads it.
func TestUpdateIsAnsweredWithWhatItChanged(t *testing.T) {
	c := newCluster(t, 3)
	c.create("S", 3)
	for i := range 6 {
		var done jsapi.SuccessResponse
		c.ask(0, "$JS.API.STREAM.LEADER.STEPDOWN.S", "", &done)
		var updated jsapi.StreamUpdateResponse
		c.ask(i%3, "$JS.API.STREAM.UPDATE.S", fmt.Sprintf(`{"name":"S","num_replicas":3,"description":"no %d"}`, i), &updated)
		if want := fmt.Sprintf("no %d", i); updated.Config.Description != want {
			t.Errorf("update to %q is answered with %q", want, updated.Config.Description)
		}
	}
}

// systemUsers adds a system account and an account of users to a configuration.
func systemUsers(t *testing.T) func(*engine.Config) {
	return func(config *engine.Config) {
		limits := jsapi.Unlimited()
		config.Accounts = []engine.Account{{Name: "APP", JetStream: &limits}, {Name: "SYS"}}
		config.SystemAccount = "SYS"
		var err error
		config.Auth, err = auth.New(auth.Config{Users: []auth.User{
			{Name: "app", Password: "p", Account: "APP"}, {Name: "sys", Password: "p", Account: "SYS"},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// as has a client of the user ask at a server and returns all answers.
func (c *cluster) as(user string, i int, subject, body string) string {
	c.t.Helper()
	r := c.rigs[i]
	id := event.ConnID(901)
	if user == "sys" {
		id = 902
	}
	if r.out[id] == nil {
		r.open(id, fmt.Sprintf(`"headers":true,"no_responders":true,"user":%q,"pass":"p"`, user))
		r.send(id, "SUB _INBOX.q.* 1\r\n")
		c.settle()
	}
	r.out[id].Reset()
	r.pub(id, subject, "_INBOX.q.1", body)
	c.settle()
	for range 60 {
		if r.out[id].Len() > 0 {
			break
		}
		c.run(1)
	}
	return r.read(id)
}

func TestEveryServerAnswersForItself(t *testing.T) {
	c := newClusterOf(t, 3, systemUsers(t))
	got := c.as("sys", 1, "$SYS.REQ.SERVER.PING", "")
	for i := range 3 {
		if n := strings.Count(got, fmt.Sprintf(`"server":{"name":"n%d","host":"127.0.0.1","id":"NTEST%d","cluster":"C"`, i+1, i+1)); n != 1 {
			t.Errorf("n%d answers %d times: %s", i+1, n, got)
		}
	}
	if n := strings.Count(got, `"active_servers":3`); n != 3 {
		t.Errorf("%d servers know of three: %s", n, got)
	}
	if got := c.as("sys", 0, "$SYS.REQ.SERVER.NTEST3.IDZ", ""); !strings.Contains(got, `"name":"n3"`) {
		t.Errorf("n3 answers: %s", got)
	}
	if got := c.as("sys", 2, "$SYS.REQ.SERVER.PING.JSZ", `{"leader_only":true}`); strings.Count(got, `"server":`) != 1 ||
		!strings.Contains(got, `"meta_cluster":{"name":"C","leader":"n`) {
		t.Errorf("the leader answers: %s", got)
	}
	if got := c.as("app", 0, "$SYS.REQ.SERVER.PING", ""); !strings.Contains(got, "503") {
		t.Errorf("an account that may not ask is told: %s", got)
	}
}

func TestARemovedServerIsReplacedByAnother(t *testing.T) {
	c := newClusterOf(t, 4, systemUsers(t))
	if got := c.as("app", 0, "$JS.API.STREAM.CREATE.S", `{"name":"S","num_replicas":3}`); !strings.Contains(got, `"did_create":true`) {
		t.Fatalf("create: %s", got)
	}
	info := c.as("app", 0, "$JS.API.STREAM.INFO.S", "")
	members := regexp.MustCompile(`"(?:leader|name)":"(n\d)"`).FindAllStringSubmatch(info, -1)
	if len(members) != 3 {
		t.Fatalf("members: %s", info)
	}
	gone := int(members[1][1][1] - '1') // one that does not lead
	c.kill(gone)
	c.run(40)
	through := (gone + 1) % 4
	body := fmt.Sprintf(`{"peer":"n%d"}`, gone+1)
	if got := c.as("sys", through, "$JS.API.SERVER.REMOVE", body); !strings.Contains(got, `"success":true`) {
		t.Fatalf("remove: %s", got)
	}
	if got := c.as("sys", through, "$JS.API.SERVER.REMOVE", body); !strings.Contains(got, `"err_code":10044`) {
		t.Errorf("removed again: %s", got)
	}
	c.run(100)
	info = c.as("app", through, "$JS.API.STREAM.INFO.S", "")
	if strings.Contains(info, fmt.Sprintf(`"name":"n%d"`, gone+1)) || strings.Count(info, `"current":true`) != 2 || strings.Contains(info, "pending\"") {
		t.Errorf("members afterwards: %s", info)
	}
}

func TestAReplicaThatIsTakenOffItsServerMovesWithItsMessages(t *testing.T) {
	c := newCluster(t, 3)
	c.create("S", 1)
	for range 10 {
		c.request(0, "S", "hello")
	}
	from := c.leaderOf("S")
	var done jsapi.SuccessResponse
	c.ask(0, "$JS.API.STREAM.PEER.REMOVE.S", fmt.Sprintf(`{"peer":%q}`, from), &done)
	c.run(100)
	if to := c.leaderOf("S"); to == from {
		t.Errorf("%s still leads", from)
	}
	var info jsapi.StreamInfoResponse
	c.ask(1, "$JS.API.STREAM.INFO.S", "", &info)
	if info.State.Msgs != 10 || len(info.Cluster.Replicas) != 0 {
		t.Errorf("state %+v, cluster %+v", info.State, info.Cluster)
	}
}

func TestHealthSaysWhatIsMissing(t *testing.T) {
	c := newCluster(t, 3)
	c.create("S", 3)
	c.run(10)
	health := func(i int) string { return string(monitor.Handle("/healthz", nil, source{c.rigs[i]}).Body) }
	for i := range c.rigs {
		if got := health(i); got != `{"status":"ok"}` {
			t.Errorf("n%d: %s", i+1, got)
		}
	}
	c.kill(1)
	c.kill(2)
	c.run(40)
	if got := health(0); !strings.Contains(got, "has not established contact with a meta leader") {
		t.Errorf("alone: %s", got)
	}
	c.restart(1)
	c.run(120) // a few elections
	if got := health(0); got != `{"status":"ok"}` {
		t.Errorf("with a majority: %s", got)
	}
}

// source shows a rig to monitoring.
type source struct{ *rig }

func (s source) Server() monitor.Server { return monitor.Server{ID: "NTEST"} }

func (s source) Snapshot(want monitor.Want) monitor.Snapshot {
	return s.node.Engine().Snapshot(s.now, want)
}

func TestAStreamWhoseServersAreGoneIsOffline(t *testing.T) {
	c := newCluster(t, 3)
	c.create("S", 1)
	on := int(c.leaderOf("S")[1] - '1')
	c.kill(on)
	c.run(40)
	if got := c.request((on+1)%3, "$JS.API.STREAM.INFO.S", ""); !strings.Contains(got, `"err_code":10118`) {
		t.Errorf("answered: %s", got)
	}
	if got := c.request((on+1)%3, "$JS.API.STREAM.NAMES", ""); !strings.Contains(got, `"streams":["S"]`) {
		t.Errorf("names: %s", got)
	}
}

func TestALeaderThatIsTakenOffItsServerHandsOver(t *testing.T) {
	c := newCluster(t, 5)
	c.create("S", 3)
	for range 10 {
		c.request(0, "S", "hello")
	}
	for range 4 {
		from := c.leaderOf("S")
		var done jsapi.SuccessResponse
		c.ask(0, "$JS.API.STREAM.PEER.REMOVE.S", fmt.Sprintf(`{"peer":%q}`, from), &done)
		c.run(100)
		var info jsapi.StreamInfoResponse
		c.ask(1, "$JS.API.STREAM.INFO.S", "", &info)
		if info.Cluster.Leader == from || len(info.Cluster.Replicas) != 2 || info.State.Msgs != 10 {
			t.Fatalf("without %s: state %+v, cluster %+v", from, info.State, info.Cluster)
		}
		for _, p := range info.Cluster.Replicas {
			if p.Name == from || !p.Current || p.Pending {
				t.Errorf("without %s: %+v", from, p)
			}
		}
	}
}

// TestAnIsolatedLeaderSaysThatItLostItsQuorum, and the next one that it leads.
func TestAnIsolatedLeaderSaysThatItLostItsQuorum(t *testing.T) {
	c := newCluster(t, 3)
	c.create("S", 3)
	lead := int(c.leaderOf("S")[1] - '1')
	other := (lead + 1) % 3
	for _, i := range []int{lead, other} {
		c.rigs[i].open(7, `"headers":true`)
		c.rigs[i].send(7, "SUB $JS.EVENT.ADVISORY.STREAM.*.S 1\r\n")
	}
	c.settle()
	for i := range c.rigs {
		if i != lead {
			c.rigs[i].node.Step(event.Input{Kind: event.PeerDown, Peer: event.ServerID(101 + lead)})
			c.rigs[lead].node.Step(event.Input{Kind: event.PeerDown, Peer: event.ServerID(101 + i)})
		}
	}
	c.run(60)
	if got := c.rigs[lead].read(7); !strings.Contains(got, "STREAM.QUORUM_LOST.S") || !strings.Contains(got, `"stream":"S"`) {
		t.Errorf("the leader said %q", got)
	}
	if got := c.rigs[other].read(7); !strings.Contains(got, "STREAM.LEADER_ELECTED.S") || strings.Contains(got, "QUORUM_LOST") {
		t.Errorf("the others said %q", got)
	}
}

// TestListDoesNotWaitForAStreamThatIsDeleted: nobody leads it any more, and nobody misses it.
func TestListDoesNotWaitForAStreamThatIsDeleted(t *testing.T) {
	c := newCluster(t, 3)
	c.create("S", 1)
	c.create("T", 1)
	var done jsapi.SuccessResponse
	c.ask(0, "$JS.API.STREAM.DELETE.S", "", &done)
	var list jsapi.StreamListResponse
	c.ask(1, "$JS.API.STREAM.LIST", "", &list)
	if len(list.Streams) != 1 || len(list.Missing) > 0 {
		t.Errorf("%d streams, missing %v", len(list.Streams), list.Missing)
	}
}
