package node_test

import (
	"strings"
	"testing"

	"weir/node/engine"
)

func TestServerWithoutHeadersRefusesThem(t *testing.T) {
	r := newRig(t, func(c *engine.Config) { c.Limits.NoHeaders = true })
	r.open(1, `"headers":true,"protocol":1`)
	r.send(1, "PING\r\n")
	if got := r.read(1); !strings.Contains(got, `"headers":false`) {
		t.Errorf("INFO: %s", got)
	}
	r.send(1, "HPUB x 12 12\r\nNATS/1.0\r\n\r\n\r\n")
	if last := r.orders[1][len(r.orders[1])-1]; !last.Close {
		t.Error("a message with headers is taken")
	}
}
