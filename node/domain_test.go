package node_test

import (
	"strings"
	"testing"

	"weir/node/engine"
)

func TestDomainIsAnotherWayToTheSameStreams(t *testing.T) {
	r := newRig(t, func(c *engine.Config) { c.JetStream.Domain = "hub" })
	r.open(1, `"headers":true,"no_responders":true,"protocol":1`)
	r.send(1, "SUB in.> 1\r\nPING\r\n")
	if got := r.read(1); !strings.Contains(got, `"domain":"hub"`) {
		t.Errorf("INFO: %s", got)
	}
	r.pub(1, "$JS.hub.API.STREAM.CREATE.KV_B", "in.x", `{"name":"KV_B","subjects":["$KV.B.>"]}`)
	if got := r.read(1); !strings.Contains(got, `"did_create":true`) {
		t.Fatalf("create: %s", got)
	}
	r.pub(1, "$JS.hub.API.$KV.B.key", "in.x", "1")
	if got := r.read(1); !strings.Contains(got, `{"stream":"KV_B","domain":"hub","seq":1}`) &&
		!strings.Contains(got, `{"stream":"KV_B","seq":1,"domain":"hub"}`) {
		t.Errorf("put: %s", got)
	}
	r.pub(1, "$JS.API.INFO", "in.x", "")
	if got := r.read(1); !strings.Contains(got, `"domain":"hub"`) || !strings.Contains(got, `"streams":1`) {
		t.Errorf("account info: %s", got)
	}
	r.pub(1, "$JS.leaf.API.INFO", "in.x", "")
	if got := r.read(1); !strings.Contains(got, "NATS/1.0 503") {
		t.Errorf("other domain: %s", got)
	}
	r.pub(1, "$JS.hub.API.DIRECT.GET.NONE", "in.x", `{"seq":1}`)
	if got := r.read(1); !strings.Contains(got, "NATS/1.0 503") {
		t.Errorf("direct get of no stream: %s", got)
	}
}
