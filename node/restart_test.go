package node_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/disk/vfs"
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

// TestCommittedUpdateReachesItsStreamAfterARestart ends the process when the catalog has an update and the stream has not
// heard of it.
func TestCommittedUpdateReachesItsStreamAfterARestart(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["s"]}`)
	for range 3 {
		r.pub(1, "s", "in.x", "1")
	}
	r.read(1)
	request := `{"name":"S","subjects":["s","more"],"max_msgs":1}`
	ops, _, err := r.parsers[1].Feed([]byte("PUB $JS.API.STREAM.UPDATE.S in.x "+itoa(len(request))+"\r\n"+request+"\r\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.node.Step(event.Input{Kind: event.Ops, Conn: 1, Ops: ops})
	r.settleOnce()
	r.ops = nil
	if got := r.read(1); got != "" {
		t.Fatalf("answered before the stream has the update: %s", got)
	}
	r.restart()
	r.open(2, `"headers":true`)
	r.send(2, "SUB in.> 1\r\n")
	r.pub(2, "$JS.API.STREAM.INFO.S", "in.x", "")
	if got := r.read(2); !strings.Contains(got, `"subjects":["s","more"]`) || !strings.Contains(got, `"messages":1,`) {
		t.Errorf("after the restart: %s", got)
	}
	r.pub(2, "more", "in.x", "2")
	if got := r.read(2); !strings.Contains(got, `"seq":4`) {
		t.Errorf("a publish on the new subject: %s", got)
	}
}

// TestReadSeesWhatItsClientSentBefore asks right behind a publish whose acknowledgement has not come.
func TestReadSeesWhatItsClientSentBefore(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["s"],"allow_direct":true}`)
	for i, ask := range []string{"PUB $JS.API.DIRECT.GET.S.s in.x 0\r\n\r\n", "PUB $JS.API.STREAM.INFO.S in.x 0\r\n\r\n"} {
		r.read(1)
		r.send(1, "PUB s 5\r\nfresh\r\n"+ask)
		want := fmt.Sprintf("Nats-Sequence: %d", i+1)
		if i > 0 {
			want = fmt.Sprintf(`"last_seq":%d`, i+1)
		}
		if got := r.read(1); !strings.Contains(got, want) {
			t.Errorf("want %s: %s", want, got)
		}
	}
}

// TestCheckpointCoversWhatAFailedOneWasAbout lets a checkpoint fail, and restarts on the next one.
func TestCheckpointCoversWhatAFailedOneWasAbout(t *testing.T) {
	r := newRig(t, func(c *engine.Config) { c.JetStream.CheckpointBytes = 8 << 10 })
	r.open(1, `"headers":true`)
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["s"],"allow_direct":true}`)
	r.disk.Inject(memfs.Fault{On: memfs.OpWrite, Under: "data/groups", Err: vfs.ErrNoSpace})
	r.pub(1, "s", "", strings.Repeat("x", 10<<10))
	r.disk.Heal()
	for range 5 {
		r.sleep(10e9)
	}
	if r.checkpointBytes() == 0 {
		t.Fatal("no checkpoint was written once there was space")
	}
	r.restart()
	r.open(2, `"headers":true`)
	r.send(2, "SUB in.> 1\r\n")
	if got := r.get(2, "S", "1"); !strings.Contains(got, "xxx") {
		t.Errorf("the message that the first checkpoint was about: %.200q", got)
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
