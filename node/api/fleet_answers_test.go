package api

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
)

func (f *fleet) mustAsk(t *testing.T, tail, body string) string {
	t.Helper()
	answer := f.ask("A", tail, body)
	if answer == "" || strings.Contains(answer, `"error"`) || strings.Contains(answer, "\n") {
		t.Fatalf("%s %s: %q", tail, body, answer)
	}
	return answer
}

// refusals are answers of a reference cluster of three servers, where S has three replicas and is led by n2, and R is on
// one of the servers.
func TestRefusalsOfAClusterAreThoseOfTheReferenceServer(t *testing.T) {
	const stepDown, removePeer = "stream_leader_stepdown_response", "stream_remove_peer_response"
	for _, c := range []struct{ account, tail, body, kind, want string }{
		{"A", "STREAM.LEADER.STEPDOWN.S", `{"placement":{"preferred":"zz"}}`, stepDown, `400 10005 preferred server "zz" not known`},
		{"A", "STREAM.LEADER.STEPDOWN.S", `{"placement":{"preferred":"n2"}}`, stepDown, `400 10005 preferred server "n2" is already leader`},
		{"A", "STREAM.LEADER.STEPDOWN.S", `{"placement":{"cluster":"x"}}`, stepDown, `400 10005 no replacement peer connected`},
		{"A", "STREAM.LEADER.STEPDOWN.S", `{"placement":{"tags":["foo"]}}`, stepDown, `400 10005 no replacement peer connected`},
		{"A", "STREAM.LEADER.STEPDOWN.S", `{"bogus":1}`, stepDown, `400 10025 invalid JSON: json: unknown field "bogus"`},
		{"A", "STREAM.LEADER.STEPDOWN.S", `{"placement":{"preferred":"n1","cluster":"x"}}`, stepDown, `success`},
		{"A", "STREAM.LEADER.STEPDOWN.S", `zzz`, stepDown, `success`},
		{"A", "STREAM.LEADER.STEPDOWN.R", ``, stepDown, `success`},
		{"A", "STREAM.LEADER.STEPDOWN.R", `{"placement":{"preferred":"zz"}}`, stepDown, `success`},
		{"A", "STREAM.LEADER.STEPDOWN.nope", ``, stepDown, `404 10059 stream not found`},
		{"A", "CONSUMER.LEADER.STEPDOWN.S.c", ``, "consumer_leader_stepdown_response", `success`},
		{"A", "CONSUMER.LEADER.STEPDOWN.S.nope", ``, "consumer_leader_stepdown_response", `404 10014 consumer not found`},
		{"A", "CONSUMER.LEADER.STEPDOWN.nope.c", ``, "consumer_leader_stepdown_response", `404 10059 stream not found`},
		{"A", "STREAM.PEER.REMOVE.S", ``, removePeer, `400 10003 bad request`},
		{"A", "STREAM.PEER.REMOVE.S", `{}`, removePeer, `400 10003 bad request`},
		{"A", "STREAM.PEER.REMOVE.S", `{"peer":"zz"}`, removePeer, `400 10040 peer not a member`},
		{"A", "STREAM.PEER.REMOVE.S", `{"peer":"n1"}`, removePeer, `503 10075 peer remap failed`},
		{"A", "STREAM.PEER.REMOVE.nope", `{"peer":"n1"}`, removePeer, `404 10059 stream not found`},
		{"A", "STREAM.PEER.EVACUATE.S", `{"peer":"n1"}`, "stream_evacuate_peer_response", `503 10075 peer remap failed`},
		{"A", "STREAM.CANCEL_MOVE.S", ``, "stream_cancel_move_response", `400 10129 stream reconfiguration not in progress`},
		{"A", "STREAM.CANCEL_MOVE.nope", ``, "stream_cancel_move_response", `404 10059 stream not found`},
		{"A", "CONSUMER.PEER.REMOVE.S.c", `{"peer":"n1"}`, "consumer_remove_peer_response", `503 10075 peer remap failed`},
		{"A", "CONSUMER.PEER.REMOVE.S.c", `{"peer":"zz"}`, "consumer_remove_peer_response", `400 10040 peer not a member`},
		{"A", "CONSUMER.PEER.REMOVE.S.c", ``, "consumer_remove_peer_response", `400 10003 bad request`},
		{"A", "CONSUMER.PEER.REMOVE.S.nope", `{"peer":"n1"}`, "consumer_remove_peer_response", `404 10014 consumer not found`},
		{"A", "CONSUMER.PEER.EVACUATE.S.c", `{"peer":"n1"}`, "consumer_evacuate_peer_response", `503 10075 peer remap failed`},
		{"A", "META.LEADER.STEPDOWN", ``, "", ``},
		{"A", "SERVER.REMOVE", `{"peer":"n1"}`, "", ``},
		{"SYS", "META.LEADER.STEPDOWN", `{"placement":{"preferred":"zz"}}`, "meta_leader_stepdown_response", `400 10005 preferred server "zz" not known`},
		{"SYS", "META.LEADER.STEPDOWN", `{"placement":{"preferred":"n1"}}`, "meta_leader_stepdown_response", `400 10005 preferred server "n1" is already leader`},
		{"SYS", "META.LEADER.STEPDOWN", `{"placement":{"tags":["zz"]}}`, "meta_leader_stepdown_response", `400 10005 no replacement peer connected`},
		{"SYS", "META.LEADER.STEPDOWN", ``, "meta_leader_stepdown_response", `success`},
		{"SYS", "SERVER.REMOVE", ``, "meta_server_remove_response", `400 10003 bad request`},
		{"SYS", "SERVER.REMOVE", `{}`, "meta_server_remove_response", `400 10003 bad request`},
		{"SYS", "SERVER.REMOVE", `{"peer":"zz"}`, "meta_server_remove_response", `400 10044 server is not a member of the cluster`},
		{"SYS", "SERVER.REMOVE", `{"peer":"n1","x":2}`, "meta_server_remove_response", `400 10025 invalid JSON: json: unknown field "x"`},
		{"SYS", "SERVER.EVACUATE", `{"peer":"zz"}`, "meta_server_evacuate_response", `400 10044 server is not a member of the cluster`},
		{"SYS", "ACCOUNT.STREAM.MOVE.A.R", `{"server":"zz"}`, "stream_update_response", `400 10044 server is not a member of the cluster`},
		{"SYS", "ACCOUNT.STREAM.MOVE.A.zz", `{"server":"zz"}`, "stream_update_response", `404 10059 stream not found`},
		{"SYS", "ACCOUNT.STREAM.CANCEL_MOVE.A.R", ``, "stream_cancel_move_response", `400 10129 stream reconfiguration not in progress`},
		{"SYS", "INFO", ``, "account_info_response", `503 10039 JetStream not enabled for account`},
		{"SYS", "STREAM.INFO.S", ``, "system_response", `503 10039 JetStream not enabled for account`},
		{"A", "STREAM.CREATE.X", `{"name":"X","num_replicas":5}`, "stream_create_response", `400 10005 no suitable peers for placement`},
		{"A", "STREAM.CREATE.X", `{"name":"X","num_replicas":6}`, "stream_create_response", `500 10052 maximum replicas is 5`},
		{"A", "STREAM.CREATE.X", `{"name":"X","placement":{"cluster":"C2"}}`, "stream_create_response", `400 10005 no suitable peers for placement`},
		{"A", "STREAM.CREATE.X", `{"name":"X","placement":{"tags":["az:9"]}}`, "stream_create_response",
			`400 10005 no suitable peers for placement, tags not matched ['az:9']`},
	} {
		f := newFleet(3)
		f.mustAsk(t, "STREAM.CREATE.S", `{"name":"S","subjects":["s.>"],"num_replicas":3}`)
		f.mustAsk(t, "STREAM.CREATE.R", `{"name":"R","subjects":["r.>"]}`)
		f.leaders[f.catalog.Stream("A", "S").Group] = 2
		f.mustAsk(t, "CONSUMER.CREATE.S.c", `{"stream_name":"S","config":{"durable_name":"c"}}`)
		answer := f.ask(c.account, c.tail, c.body)
		if c.want == "" {
			if answer != "" {
				t.Errorf("%s %s is answered: %s", c.account, c.tail, answer)
			}
			continue
		}
		var got struct {
			Type    string       `json:"type"`
			Error   *jsapi.Error `json:"error"`
			Success bool         `json:"success"`
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Errorf("%s %s %s: %q: %v", c.account, c.tail, c.body, answer, err)
			continue
		}
		outcome := "success"
		if got.Error != nil {
			outcome = fmt.Sprint(got.Error.Code, " ", got.Error.ErrCode, " ", got.Error.Description)
		}
		if got.Type != "io.nats.jetstream.api.v1."+c.kind || outcome != c.want || got.Error == nil && !got.Success {
			t.Errorf("%s %s %s\n got %s %s\nwant %s %s", c.account, c.tail, c.body, got.Type, outcome, c.kind, c.want)
		}
	}
}

func TestSuccessorIsTheOneThatTheRequestWishesFor(t *testing.T) {
	f := newFleet(3)
	f.mustAsk(t, "STREAM.CREATE.S", `{"name":"S","num_replicas":3}`)
	f.leaders[f.catalog.Stream("A", "S").Group] = 2
	for _, body := range []string{``, `{"placement":{"preferred":"n3"}}`, `{"placement":{"tags":["az:1"]}}`} {
		f.mustAsk(t, "STREAM.LEADER.STEPDOWN.S", body)
	}
	if diff := cmp.Diff([]string{"16", "16 n3", "16 n1"}, f.stepped); diff != "" {
		t.Error(diff)
	}
}

func TestAnswersAreTheSameWhoeverLeadsTheStream(t *testing.T) {
	requests := [][2]string{
		{"STREAM.CREATE.S", `{"name":"S","num_replicas":3,"metadata":{"a":"b"}}`},
		{"STREAM.UPDATE.S", `{"name":"S","num_replicas":3,"description":"d","consumer_limits":{"max_ack_pending":7}}`},
		{"STREAM.INFO.S", ``},
		{"STREAM.LIST", ``},
		{"INFO", ``},
		{"CONSUMER.CREATE.S.c", `{"stream_name":"S","config":{"durable_name":"c"}}`},
		{"CONSUMER.INFO.S.c", ``},
		{"STREAM.UPDATE.S", `{"name":"S","num_replicas":3,"consumer_limits":{"max_ack_pending":3}}`},
		{"STREAM.DELETE.S", ``},
	}
	answers := func(leader uint64, deferring bool) []string {
		f := newFleet(3)
		f.deferring = deferring
		f.leaders[16] = leader
		var got []string
		for _, r := range requests {
			got = append(got, f.ask("A", r[0], r[1]))
			if r[0] == "STREAM.CREATE.S" {
				f.deferring = false
				f.publish("S", nil, []byte("hello"))
				f.deferring = deferring
			}
		}
		// What differs is who leads, and how many requests each server has answered.
		for i := range got {
			got[i] = regexp.MustCompile(`"level":5,"total":\d+`).ReplaceAllString(got[i], `"level":5`)
			for _, name := range []string{"n1", "n2", "n3"} {
				got[i] = strings.ReplaceAll(got[i], name, "nX")
			}
		}
		return got
	}
	want := answers(1, false)
	for i, r := range requests {
		if want[i] == "" || strings.Contains(want[i], `"error"`) != (i == 7) {
			t.Errorf("%s %s: %s", r[0], r[1], want[i])
		}
	}
	for leader := uint64(1); leader <= 3; leader++ {
		for _, deferring := range []bool{false, true} {
			if diff := cmp.Diff(want, answers(leader, deferring)); diff != "" {
				t.Errorf("led by n%d: %s", leader, diff)
			}
		}
	}
}

func TestListNamesStreamsWhoseLeaderDoesNotAnswer(t *testing.T) {
	f := newFleet(3)
	f.mustAsk(t, "STREAM.CREATE.S", `{"name":"S","num_replicas":3}`)
	f.mustAsk(t, "STREAM.CREATE.T", `{"name":"T","num_replicas":3}`)
	f.leaders[f.catalog.Stream("A", "S").Group] = 2
	f.leaders[f.catalog.Stream("A", "T").Group] = 3
	f.down[3] = true
	var list jsapi.StreamListResponse
	if err := json.Unmarshal([]byte(f.mustAsk(t, "STREAM.LIST", "")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Streams) != 1 || list.Streams[0].Config.Name != "S" || len(list.Missing) != 1 || list.Missing[0] != "T" {
		t.Errorf("listed %v, missing %v", list.Streams, list.Missing)
	}
}

func TestAccountUsageCountsEveryReplica(t *testing.T) {
	f := newFleet(3)
	f.mustAsk(t, "STREAM.CREATE.S", `{"name":"S","num_replicas":3}`)
	f.mustAsk(t, "STREAM.CREATE.R", `{"name":"R","storage":"memory"}`)
	f.leaders[f.catalog.Stream("A", "S").Group] = 2
	f.publish("S", nil, []byte("hello"))
	f.publish("R", nil, []byte("hello"))
	var one, inMemory jsapi.StreamInfoResponse
	var all jsapi.AccountInfoResponse
	for _, err := range []error{
		json.Unmarshal([]byte(f.mustAsk(t, "STREAM.INFO.S", "")), &one),
		json.Unmarshal([]byte(f.mustAsk(t, "STREAM.INFO.R", "")), &inMemory), json.Unmarshal([]byte(f.mustAsk(t, "INFO", "")), &all),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if one.State.Bytes == 0 || all.Store != 3*one.State.Bytes || all.Memory != inMemory.State.Bytes || all.Streams != 2 {
		t.Errorf("streams of %d and %d bytes count %d and %d", one.State.Bytes, inMemory.State.Bytes, all.Store, all.Memory)
	}
}

// TestRequestForAStreamThatTheCatalogIsAboutToLearnOfReachesItsLeader: the barrier of the catalog shows the stream, and
// somebody else leads it.
func TestRequestForAStreamThatTheCatalogIsAboutToLearnOfReachesItsLeader(t *testing.T) {
	for _, r := range [][2]string{
		{"STREAM.INFO.S", ``}, {"STREAM.PURGE.S", ``}, {"CONSUMER.NAMES.S", ``},
		{"CONSUMER.CREATE.S.c", `{"stream_name":"S","config":{"durable_name":"c"}}`},
	} {
		f := newFleet(3)
		f.mustAsk(t, "STREAM.CREATE.S", `{"name":"S","num_replicas":3}`)
		f.leaders[f.catalog.Stream("A", "S").Group] = 3
		f.late = true
		f.mustAsk(t, r[0], r[1])
	}
}

func TestRequestsWithoutALeaderAreRefused(t *testing.T) {
	f := newFleet(3)
	f.mustAsk(t, "STREAM.CREATE.S", `{"name":"S","num_replicas":3,"allow_direct":true}`)
	f.leaders[f.catalog.Stream("A", "S").Group] = 3
	f.down[3] = true
	if got := f.ask("A", "STREAM.INFO.S", ""); !strings.Contains(got, `"err_code":10008`) || !strings.Contains(got, "stream_info_response") {
		t.Error(got)
	}
	f.down[1], f.down[2] = true, true
	if got := f.ask("A", "STREAM.INFO.S", ""); !strings.Contains(got, `"err_code":10118`) {
		t.Error(got)
	}
	if got := f.ask("A", "STREAM.NAMES", ""); !strings.Contains(got, `"err_code":10008`) {
		t.Error(got)
	}
	if outcome := f.dispatch(&Request{Account: "A", Subject: "$JS.API.DIRECT.GET.S", Reply: "_INBOX.1"}); outcome != NoResponders {
		t.Errorf("a direct get has outcome %d", outcome)
	}
}

func TestDeletionIsConfirmedLaterWhenServersAreMissing(t *testing.T) {
	f := newFleet(5)
	f.mustAsk(t, "STREAM.CREATE.S", `{"name":"S","num_replicas":3,"placement":{"tags":["!az:1","!az:2"]}}`)
	f.down[4], f.down[5] = true, true
	for range 2 {
		got := f.ask("A", "STREAM.DELETE.S", "")
		if !strings.Contains(got, `"err_code":10008`) || !strings.Contains(got, "the stream is deleted; until n4, n5 can be reached") {
			t.Fatal(got)
		}
	}
	f.down[4] = false
	if got := f.ask("A", "STREAM.DELETE.S", ""); !strings.Contains(got, `"success":true`) {
		t.Fatal(got)
	}
	if got := f.ask("A", "STREAM.DELETE.S", ""); !strings.Contains(got, `"err_code":10059`) {
		t.Fatal(got)
	}
}

// TestDeletionDoesNotWaitForServersThatAreRemoved: who removes a server says that it serves nobody any more. One that is there
// has to know all the same.
func TestDeletionDoesNotWaitForServersThatAreRemoved(t *testing.T) {
	f := newFleet(5)
	remove := func(name string) {
		if got := f.ask("SYS", "SERVER.REMOVE", fmt.Sprintf(`{"peer":%q}`, name)); !strings.Contains(got, `"success":true`) {
			t.Fatal(got)
		}
	}
	f.mustAsk(t, "STREAM.CREATE.S", `{"name":"S","num_replicas":1,"placement":{"tags":["az:5"]}}`)
	f.mustAsk(t, "STREAM.CREATE.R", `{"name":"R","subjects":["r"],"num_replicas":3,"placement":{"tags":["!az:1","!az:2"]}}`)
	f.down[4], f.down[5] = true, true
	remove("n5")
	if got := f.ask("A", "STREAM.DELETE.S", ""); !strings.Contains(got, `"success":true`) {
		t.Error(got)
	}
	if got := f.ask("A", "STREAM.DELETE.R", ""); !strings.Contains(got, "until n4 can be reached") {
		t.Error(got)
	}
	remove("n4")
	if got := f.ask("A", "STREAM.DELETE.R", ""); !strings.Contains(got, `"success":true`) {
		t.Error(got)
	}
}

// TestEvacuatedServerKeepsOnlyStreamsThatHaveNowhereToGo has P pinned to n2, and S on three of four servers.
func TestEvacuatedServerKeepsOnlyStreamsThatHaveNowhereToGo(t *testing.T) {
	f := newFleet(4)
	f.mustAsk(t, "STREAM.CREATE.S", `{"name":"S","num_replicas":3}`)
	f.mustAsk(t, "STREAM.CREATE.P", `{"name":"P","subjects":["p"],"num_replicas":1,"placement":{"tags":["az:2"]}}`)
	for _, c := range []struct {
		server, want string
	}{
		{"n2", `"err_code":10075,"description":"peer remap failed: no other server can take 1 of its streams"`},
		{"n3", `"success":true`},
		{"n3", `"success":true`}, // it has none any more
	} {
		got := f.ask("SYS", "SERVER.EVACUATE", fmt.Sprintf(`{"peer":%q}`, c.server))
		if !strings.Contains(got, c.want) || !strings.Contains(got, "meta_server_evacuate_response") {
			t.Errorf("%s: %s", c.server, got)
		}
		s := f.catalog.Stream("A", "S")
		if r, on := s.Member(uint64(c.server[1] - '0')); on || len(s.Replicas) != 3 {
			t.Errorf("%s keeps replica %v of %v", c.server, r, s.Replicas)
		}
		settled := meta.Settled(s.Group, s.Placement) // it has moved
		f.world.Propose(meta.Group, &settled, func(*effect.Effect) {})
	}
	if _, on := f.catalog.Stream("A", "P").Member(2); !on {
		t.Error("P is nowhere")
	}
}

func TestElectionsAreAdvisedInBothAccounts(t *testing.T) {
	f := newFleet(3)
	f.mustAsk(t, "STREAM.CREATE.S", `{"name":"S","num_replicas":3}`)
	group := f.catalog.Stream("A", "S").Group
	f.leaders[group] = 2
	f.mustAsk(t, "CONSUMER.CREATE.S.c", `{"stream_name":"S","config":{"durable_name":"c"}}`)
	for _, tail := range []string{"STREAM.LEADER_ELECTED.S", "CONSUMER.LEADER_ELECTED.S.c", "STREAM.QUORUM_LOST.S", "DOMAIN.LEADER_ELECTED"} {
		f.interest["$JS.EVENT.ADVISORY."+tail] = true
	}
	f.replies = nil
	f.nodes[1].api.LeaderElected(group)
	f.nodes[1].api.QuorumLost(group)
	f.nodes[0].api.LeaderElected(1)
	var got []string
	for _, p := range f.replies {
		var event struct{ Type, Account, Stream, Consumer, Leader string }
		if err := json.Unmarshal(p.body, &event); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join([]string{p.subject, event.Type, event.Account, event.Stream, event.Consumer, event.Leader}, "|"))
	}
	const subject, kind = "$JS.EVENT.ADVISORY.", "|io.nats.jetstream.advisory.v1."
	want := []string{
		subject + "STREAM.LEADER_ELECTED.S" + kind + "stream_leader_elected||S||n2",
		subject + "STREAM.LEADER_ELECTED.S" + kind + "stream_leader_elected|A|S||n2",
		subject + "CONSUMER.LEADER_ELECTED.S.c" + kind + "consumer_leader_elected||S|c|n2",
		subject + "CONSUMER.LEADER_ELECTED.S.c" + kind + "consumer_leader_elected|A|S|c|n2",
		subject + "STREAM.QUORUM_LOST.S" + kind + "stream_quorum_lost||S||",
		subject + "STREAM.QUORUM_LOST.S" + kind + "stream_quorum_lost|A|S||",
		subject + "DOMAIN.LEADER_ELECTED" + kind + "domain_leader_elected||||1" + "0000000",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
