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

// blockBytes is what the files of message blocks take, checkpointBytes what those of checkpoints take.
func (r *rig) blockBytes() int64      { return r.fileBytes("/msgs/") }
func (r *rig) checkpointBytes() int64 { return r.fileBytes("/checkpoint/") }

func (r *rig) fileBytes(in string) (bytes int64) {
	for _, name := range r.disk.Files("data/groups") {
		if strings.Contains(name, in) {
			bytes += r.disk.Size(name)
		}
	}
	return bytes
}

func (r *rig) get(id event.ConnID, stream, seq string) string {
	r.pub(id, "$JS.API.DIRECT.GET."+stream, "in.x", `{"seq":`+seq+`}`)
	return r.read(id)
}

// TestDeletedMessagesGiveTheirSpaceBack deletes messages between others that live on, so that every block is left with
// little to keep.
func TestDeletedMessagesGiveTheirSpaceBack(t *testing.T) {
	r := newRig(t, func(c *engine.Config) {
		c.JetStream.BlockBytes, c.JetStream.CheckpointBytes, c.JetStream.CacheBytes = 16<<10, 32<<10, 1<<10
	})
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["s.*"],"allow_direct":true}`)
	const messages, size, kept = 2000, 500, 10
	body := strings.Repeat("x", size)
	for i := range messages {
		subject := "s.gone"
		if i%kept == 0 {
			subject = "s.kept"
		}
		r.pub(1, subject, "", fmt.Sprint(i)+body)
	}
	full := r.blockBytes()
	r.pub(1, "$JS.API.STREAM.PURGE.S", "in.x", `{"filter":"s.gone"}`)
	for range 200 { // so much log that another checkpoint is made
		r.pub(1, "s.kept", "", body)
	}
	if left := r.blockBytes(); full < messages*size || left > 2*(messages/kept+200)*(size+64) {
		t.Errorf("files of %d bytes shrank to %d, about %d live", full, left, (messages/kept+200)*(size+64))
	}
	r.read(1)
	for range 2 {
		for i := 0; i < messages; i += kept {
			if got := r.get(1, "S", fmt.Sprint(i+1)); !strings.Contains(got, "\r\n"+fmt.Sprint(i)+body) {
				t.Fatalf("message %d: %.200q", i+1, got)
			}
		}
		r.restart()
		r.open(1, `"headers":true`)
		r.send(1, "SUB in.> 1\r\n")
	}
}

// TestFailedCheckpointIsTriedAgainAtRest lets a checkpoint fail after which nothing more is written to the stream.
func TestFailedCheckpointIsTriedAgainAtRest(t *testing.T) {
	r := newRig(t, func(c *engine.Config) { c.JetStream.CheckpointBytes = 8 << 10 })
	r.open(1, `"headers":true`)
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["s"]}`)
	r.disk.Inject(memfs.Fault{On: memfs.OpWrite, Under: "data/groups", Err: vfs.ErrNoSpace})
	r.pub(1, "s", "", strings.Repeat("x", 10<<10))
	if n := r.checkpointBytes(); n != 0 {
		t.Fatalf("a checkpoint of %d bytes was written to a full disk", n)
	}
	r.disk.Heal()
	for range 5 {
		r.now.Mono += 10e9
		r.now.Wall += 10e9
		r.node.Step(event.Input{Kind: event.Woke})
		r.settle()
	}
	if r.checkpointBytes() == 0 {
		t.Fatal("no checkpoint was written once there was space")
	}
}

// TestFullDiskIsReadAndOutlived reads while nothing can be appended, and goes on when there is space again.
func TestFullDiskIsReadAndOutlived(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["s"],"allow_direct":true}`)
	r.pub(1, "s", "in.x", "first")
	r.read(1)
	r.disk.Inject(memfs.Fault{On: memfs.OpWrite, Under: "data/wal", Err: vfs.ErrNoSpace})
	r.pub(1, "s", "in.x", "second")
	if got := r.read(1); got != "" {
		t.Fatalf("an append that did not fit was answered: %s", got)
	}
	for round := range 3 {
		r.pub(1, "s", "in.x", "third")
		if got := r.read(1); !strings.Contains(got, `"err_code":10023`) {
			t.Fatalf("a publish on a full disk was answered with %q", got)
		}
		r.pub(1, "$JS.API.STREAM.INFO.S", "in.x", "")
		if got := r.read(1); !strings.Contains(got, `"messages":1,`) {
			t.Fatalf("info in round %d: %q", round, got)
		}
		if got := r.get(1, "S", "1"); !strings.Contains(got, "first") {
			t.Fatalf("get in round %d: %q", round, got)
		}
		r.sleep(20e9)
	}
	r.disk.Heal()
	r.sleep(20e9)
	if got := r.read(1); !strings.Contains(got, `"seq":2`) {
		t.Fatalf("once there was space: %q", got)
	}
	r.pub(1, "s", "in.x", "third")
	if got := r.read(1); !strings.Contains(got, `"seq":3`) {
		t.Fatalf("a publish afterwards: %q", got)
	}
}

// sleep lets time pass and what is due happen.
func (r *rig) sleep(nanos int64) {
	r.now.Mono += nanos
	r.now.Wall += nanos
	r.node.Step(event.Input{Kind: event.Woke})
	r.settle()
}

// TestSmallWritesWaitForCompany holds back the writes of many streams with little each, and writes them with the
// checkpoint at the latest.
func TestSmallWritesWaitForCompany(t *testing.T) {
	r := newRig(t, func(c *engine.Config) { c.JetStream.CheckpointBytes = 32 << 10 })
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["s"],"allow_direct":true}`)
	r.pub(1, "s", "in.x", "first")
	if n := r.blockBytes(); n != 0 {
		t.Fatalf("%d bytes were written for one small message", n)
	}
	r.read(1)
	if got := r.get(1, "S", "1"); !strings.Contains(got, "first") {
		t.Fatalf("from memory: %q", got)
	}
	for range 40 {
		r.pub(1, "s", "in.x", strings.Repeat("x", 1<<10))
	}
	if r.checkpointBytes() == 0 || r.blockBytes() == 0 {
		t.Fatalf("a checkpoint of %d bytes, blocks of %d", r.checkpointBytes(), r.blockBytes())
	}
	r.restart()
	r.open(2, `"headers":true`)
	r.send(2, "SUB in.> 1\r\n")
	for _, seq := range []string{"1", "41"} {
		if got := r.get(2, "S", seq); !strings.Contains(got, "Nats-Sequence: "+seq) {
			t.Fatalf("message %s after a restart: %q", seq, got)
		}
	}
}

// TestStreamAtRestKeepsNoOldLog has one stream write much more than another, which is to be written to the log again now
// and then, and not into a checkpoint.
func TestStreamAtRestKeepsNoOldLog(t *testing.T) {
	r := newRig(t, func(c *engine.Config) { c.JetStream.CheckpointBytes = 8 << 10 })
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	for _, name := range []string{"REST", "BUSY"} {
		r.pub(1, "$JS.API.STREAM.CREATE."+name, "in.x", `{"name":"`+name+`","subjects":["`+name+`"],"allow_direct":true}`)
	}
	const rest = 16 // the group of the first stream
	again, saves := 0, 0
	r.submitted = func(ops []event.Op) {
		for _, op := range ops {
			if op.Kind == event.Save && op.Group == rest {
				saves++
			}
			for _, w := range op.Writes {
				if w.Group == rest && len(w.Entries) > 1 {
					again++
				}
			}
		}
	}
	for round := range 3 {
		again = 0
		r.pub(1, "REST", "in.x", fmt.Sprint("rest-", round))
		for range 100 {
			r.pub(1, "BUSY", "", strings.Repeat("x", 1<<10))
		}
		if again < 2 || saves != 0 {
			t.Fatalf("round %d: the stream at rest was written again %d times and saved %d times", round, again, saves)
		}
		r.restart()
		r.open(1, `"headers":true`)
		r.send(1, "SUB in.> 1\r\n")
		for seq := range round + 1 {
			if got := r.get(1, "REST", fmt.Sprint(seq+1)); !strings.Contains(got, fmt.Sprint("rest-", seq)) {
				t.Fatalf("round %d, message %d: %q", round, seq+1, got)
			}
		}
	}
}
