package node_test

import (
	"strings"
	"testing"
)

func TestSystemAccountAsksAboutTheServer(t *testing.T) {
	r := twoAccounts(t)
	r.open(1, `"user":"s","headers":true,"no_responders":true`)
	r.send(1, "SUB in.> 1\r\n")
	for subject, want := range map[string]string{
		"SERVER.PING":          `"statsz":{"start":`,
		"SERVER.PING.IDZ":      `{"name":"test","host":"127.0.0.1","id":"NTEST"}`,
		"SERVER.PING.VARZ":     `"data":{"server_id":"NTEST"`,
		"SERVER.NTEST.HEALTHZ": `"data":{"status":"ok","status_code":200}`,
		"SERVER.NOTHER.VARZ":   "NATS/1.0 503",
		"SERVER.PING.NONSENSE": "NATS/1.0 503",
		"ACCOUNT.A.INFO":       `"data":{"account_name":"A"`,
		"ACCOUNT.A.JSZ":        `"data":{"name":"A"`,
		"ACCOUNT.nope.JSZ":     `"data":null,"error":{"code":500,"description":"account \"nope\" not found"}`,
		"ACCOUNT.PING.STATZ":   `"account_statz":[`,
	} {
		r.pub(1, "$SYS.REQ."+subject, "in.x", "")
		if got := r.read(1); !strings.Contains(got, want) {
			t.Errorf("%s: no %s in %s", subject, want, got)
		}
	}
	r.pub(1, "$SYS.REQ.SERVER.PING.VARZ", "in.x", `{"server_name":"another"}`)
	if got := r.read(1); got != "" {
		t.Errorf("a question that is meant for another server: %s", got)
	}
}

func TestOtherAccountsAskAboutThemselvesOnly(t *testing.T) {
	r := twoAccounts(t)
	r.open(1, `"user":"b","name":"first","headers":true,"no_responders":true`)
	r.open(2, `"user":"s","name":"second","headers":true,"no_responders":true`)
	r.send(1, "SUB in.> 1\r\n")
	for _, subject := range []string{"SERVER.PING.CONNZ", "ACCOUNT.PING.CONNZ", "ACCOUNT.PING.STATZ"} {
		for _, body := range []string{"", `{"acc":"SYS","accounts":["SYS"],"state":2}`} {
			r.pub(1, "$SYS.REQ."+subject, "in.x", body)
			got := r.read(1)
			if !strings.Contains(got, `"first"`) && !strings.Contains(got, `"acc":"B"`) || strings.Contains(got, `"second"`) || strings.Contains(got, "SYS") {
				t.Errorf("%s %s: %s", subject, body, got)
			}
		}
	}
	for _, subject := range []string{"SERVER.PING", "SERVER.PING.VARZ", "SERVER.NTEST.CONNZ", "ACCOUNT.B.INFO", "ACCOUNT.SYS.CONNZ"} {
		r.pub(1, "$SYS.REQ."+subject, "in.x", "")
		if got := r.read(1); !strings.Contains(got, "NATS/1.0 503") {
			t.Errorf("%s: %s", subject, got)
		}
	}
}
