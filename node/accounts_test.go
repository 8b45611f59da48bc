package node_test

import (
	"strings"
	"testing"

	"weir/model/jsapi"
	"weir/node/auth"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/monitor"
)

func twoAccounts(t *testing.T) *rig {
	return newRig(t, func(c *engine.Config) {
		unlimited := jsapi.Unlimited()
		c.Accounts = []engine.Account{{Name: "B"}, {Name: "A", JetStream: &unlimited}, {Name: "C", JetStream: &unlimited}}
		var err error
		c.Auth, err = auth.New(auth.Config{Users: []auth.User{
			{Name: "a", Account: "A"}, {Name: "b", Account: "B"}, {Name: "c", Account: "C"}, {Name: "s", Account: "$SYS"},
		}})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestAccountsShareNoSubjects(t *testing.T) {
	r := twoAccounts(t)
	r.open(1, `"user":"a"`)
	r.open(2, `"user":"a"`)
	r.open(3, `"user":"b"`)
	r.send(2, "SUB > 1\r\n")
	r.send(3, "SUB > 1\r\n")
	r.pub(1, "x", "", "hello")
	if got := r.read(2); got != "MSG x 1 5\r\nhello\r\n" {
		t.Errorf("same account: got %q", got)
	}
	if got := r.read(3); got != "" {
		t.Errorf("other account: got %q", got)
	}
}

func TestAccountsShareNoStreams(t *testing.T) {
	r := twoAccounts(t)
	r.open(1, `"user":"a"`)
	r.open(2, `"user":"c"`)
	for _, conn := range []event.ConnID{1, 2} {
		r.send(conn, "SUB in.> 1\r\n")
		r.pub(conn, "$JS.API.STREAM.CREATE.S", "in.create", `{"name":"S","subjects":["s"]}`)
		if got := r.read(conn); !strings.Contains(got, `"did_create":true`) {
			t.Fatalf("create: %s", got)
		}
	}
	r.pub(1, "s", "in.ack", "1")
	r.pub(1, "s", "in.ack", "2")
	r.pub(2, "s", "in.ack", "1")
	if got := r.read(1); strings.Count(got, `{"stream":"S","seq":`) != 2 || !strings.Contains(got, `"seq":2`) {
		t.Errorf("account A: %s", got)
	}
	if got := r.read(2); strings.Count(got, `{"stream":"S","seq":1`) != 1 {
		t.Errorf("account C: %s", got)
	}
}

func TestAccountWithoutJetStreamIsToldSo(t *testing.T) {
	r := twoAccounts(t)
	r.open(1, `"user":"b","headers":true,"no_responders":true`)
	r.send(1, "SUB in.> 1\r\n")
	r.pub(1, "$JS.API.INFO", "in.info", "")
	if got := r.read(1); !strings.Contains(got, `"err_code":10039`) {
		t.Errorf("INFO: %s", got)
	}
	r.pub(1, "$JS.API.STREAM.NAMES", "in.names", "")
	if got := r.read(1); !strings.Contains(got, `stream_names_response","error":{"code":503,"err_code":10039`) {
		t.Errorf("STREAM.NAMES: %s", got)
	}
	for _, to := range []string{"$JS.API.DIRECT.GET.S", "$JS.API.CONSUMER.MSG.NEXT.S.C", "$JS.ACK.S.C.1.1.1.1.1"} {
		r.pub(1, to, "in.nobody", "")
		if got := r.read(1); !strings.Contains(got, "NATS/1.0 503") {
			t.Errorf("%s: %s", to, got)
		}
	}
	r.open(2, `"user":"s","headers":true,"no_responders":true`)
	r.send(2, "SUB in.> 1\r\n")
	for to, kind := range map[string]string{
		"INFO": "account_info_response", "STREAM.NAMES": "system_response", "DIRECT.GET.S": "system_response", "x": "system_response",
	} {
		r.pub(2, "$JS.API."+to, "in.sys", "")
		if got := r.read(2); !strings.Contains(got, kind+`","error":{"code":503,"err_code":10039`) {
			t.Errorf("system account, %s: %s", to, got)
		}
	}
	if n := r.node.Engine().Snapshot(r.now, monitor.Want{}).JetStream.APITotal; n != 0 {
		t.Errorf("%d requests of accounts without JetStream are counted", n)
	}
}

func TestPullRequestLearnsThatItsStreamIsDeleted(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.create", `{"name":"S","subjects":["s"]}`)
	r.pub(1, "$JS.API.CONSUMER.CREATE.S.C", "in.create", `{"stream_name":"S","config":{"name":"C","durable_name":"C"}}`)
	r.pub(1, "$JS.API.CONSUMER.MSG.NEXT.S.C", "in.next", `{"batch":1,"expires":10000000000}`)
	r.read(1)
	r.pub(1, "$JS.API.STREAM.DELETE.S", "in.delete", "")
	if got := r.read(1); !strings.Contains(got, "NATS/1.0 409 Consumer Deleted") || !strings.Contains(got, `"success":true`) {
		t.Errorf("got %q", got)
	}
}
