package node_test

import (
	"strings"
	"testing"

	"weir/node/engine"
	"weir/node/event"
)

func TestConsumersInMemoryEndWithTheProcess(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["s"]}`)
	r.pub(1, "s", "in.x", "1")
	for _, c := range []string{`{"name":"MEM","mem_storage":true}`, `{"name":"DISK"}`} {
		name, _, _ := strings.Cut(c[len(`{"name":"`):], `"`)
		r.pub(1, "$JS.API.CONSUMER.CREATE.S."+name, "in.x", `{"stream_name":"S","config":`+c+`}`)
	}
	if got := r.read(1); strings.Contains(got, "err_code") {
		t.Fatal(got)
	}
	r.restart()
	r.open(2, `"headers":true`)
	r.send(2, "SUB in.> 1\r\n")
	r.pub(2, "$JS.API.CONSUMER.NAMES.S", "in.x", "")
	if got := r.read(2); !strings.Contains(got, `"consumers":["DISK"]`) {
		t.Errorf("after the restart: %s", got)
	}
	r.pub(2, "$JS.API.STREAM.INFO.S", "in.x", "")
	if got := r.read(2); !strings.Contains(got, `"messages":1,`) {
		t.Errorf("after the restart: %s", got)
	}
}

func TestShutdownSavesWhatIsSlowToReplay(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	for _, name := range []string{"SMALL", "LARGE"} {
		r.pub(1, "$JS.API.STREAM.CREATE."+name, "in.x", `{"name":"`+name+`","subjects":["`+name+`"]}`)
	}
	r.pub(1, "SMALL", "", "1")
	r.pub(1, "LARGE", "", strings.Repeat("x", engine.ReplayBytesMin))
	r.node.Step(event.Input{Kind: event.Shutdown})
	saves := 0
	for _, op := range r.ops {
		if op.Kind == event.Save {
			saves++
		}
	}
	if saves != 1 {
		t.Errorf("%d checkpoints, want that of LARGE alone", saves)
	}
}
