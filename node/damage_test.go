package node_test

import (
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/monitor"
)

// newRigAtRest has a stream S with a message that is on the disk only.
func newRigAtRest(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, func(c *engine.Config) { c.JetStream.CheckpointBytes = 8 << 10 })
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["s"],"allow_direct":true}`)
	r.pub(1, "s", "", strings.Repeat("x", 10<<10))
	for range 5 {
		r.sleep(10e9) // the block leaves the memory
	}
	return r
}

// TestDamagedMessageIsNotAnsweredAsAbsent spoils the bytes of a stored message.
func TestDamagedMessageIsNotAnsweredAsAbsent(t *testing.T) {
	r := newRigAtRest(t)
	r.read(1)
	for _, name := range r.disk.Files("data/groups") {
		if strings.HasSuffix(name, ".blk") {
			if err := r.disk.Damage(name, memfs.RotNoise, 4<<10); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := r.get(1, "S", "1"); !strings.Contains(got, "NATS/1.0 500") {
		t.Errorf("direct get: %.200q", got)
	}
	r.pub(1, "$JS.API.STREAM.MSG.GET.S", "in.x", `{"seq":1}`)
	if got := r.read(1); !strings.Contains(got, `"error"`) || strings.Contains(got, `"err_code":10037`) {
		t.Errorf("get: %.200q", got)
	}
}

// TestMessagesExpireByTheWallClock steps the wall clock while the timer of an age limit waits.
func TestMessagesExpireByTheWallClock(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["s"],"max_age":3600000000000}`)
	r.pub(1, "s", "in.x", "x")
	r.now.Wall += 2 * 3600e9
	for range 3 {
		r.sleep(10e9)
	}
	r.read(1)
	r.pub(1, "$JS.API.STREAM.INFO.S", "in.x", "")
	if got := r.read(1); !strings.Contains(got, `"messages":0,`) {
		t.Errorf("two hours later: %s", got)
	}
}

// TestDeletedStreamsLeaveNoSubscriptions counts what the server itself has subscribed to.
func TestDeletedStreamsLeaveNoSubscriptions(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	count := func() int {
		return r.node.Engine().Snapshot(event.Time{}, monitor.Want{}).Subscriptions.Count
	}
	before := count()
	for range 3 {
		r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["a.*","b.>"]}`)
		r.pub(1, "$JS.API.CONSUMER.CREATE.S.c", "in.x", `{"stream_name":"S","config":{"name":"c","deliver_subject":"in.d"}}`)
		if count() <= before {
			t.Fatal("the stream listens to nothing")
		}
		r.pub(1, "$JS.API.STREAM.DELETE.S", "in.x", "")
	}
	if after := count(); after != before {
		t.Errorf("%d subscriptions before, %d after the streams are gone: %s", before, after, r.read(1))
	}
}
