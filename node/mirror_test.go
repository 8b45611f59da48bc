package node_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir/model/jsapi"
	"weir/node/engine"
	"weir/node/event"
	"weir/transport/peerwire"
)

// newMirrored is a server with a client, and a way to ask.
func newMirrored(t *testing.T) (r *rig, ask func(subject, body string) string) {
	t.Helper()
	r = newRig(t, nil)
	return r, r.asker(1)
}

// asker connects a client and returns how it asks.
func (r *rig) asker(id event.ConnID) func(subject, body string) string {
	r.open(id, `"headers":true,"no_responders":true`)
	r.send(id, "SUB in.> 1\r\n")
	return func(subject, body string) string {
		r.read(id)
		r.pub(id, subject, "in.x", body)
		return r.read(id)
	}
}

func infoOf(t *testing.T, answer string) *jsapi.StreamInfoResponse {
	t.Helper()
	info := new(jsapi.StreamInfoResponse)
	at := strings.Index(answer, "{")
	if at < 0 || json.Unmarshal([]byte(answer[at:]), info) != nil || info.Error != nil {
		t.Fatalf("info: %s", answer)
	}
	return info
}

func TestMirrorCopiesWhatItsFilterSelectsAndBecomesAStream(t *testing.T) {
	_, ask := newMirrored(t)
	ask("$JS.API.STREAM.CREATE.M", `{"name":"M","mirror":{"name":"O","filter_subject":"o.a"}}`)
	if info := infoOf(t, ask("$JS.API.STREAM.INFO.M", "")); info.Mirror == nil || info.Mirror.Active != -1 ||
		!jsapi.CodeStreamNotFound.Is(info.Mirror.Error) {
		t.Fatalf("a mirror of nothing says %+v", info.Mirror)
	}
	ask("$JS.API.STREAM.CREATE.O", `{"name":"O","subjects":["o.>"]}`)
	for i := range 6 {
		ask("o."+string('a'+rune(i%2)), fmt.Sprint(i))
	}
	info := infoOf(t, ask("$JS.API.STREAM.INFO.M", ""))
	if info.State.Msgs != 3 || info.State.FirstSeq != 1 || info.State.LastSeq != 5 || info.State.NumDeleted != 2 {
		t.Fatalf("the mirror holds %+v", info.State)
	}
	if m := info.Mirror; m.Error != nil || m.Lag != 0 || m.Name != "O" || m.FilterSubject != "o.a" || m.Active <= 0 {
		t.Fatalf("the mirror says %+v", m)
	}
	if got := ask("m", "x"); !strings.Contains(got, "503") {
		t.Fatalf("a mirror takes a message: %s", got)
	}
	ask("$JS.API.STREAM.UPDATE.M", `{"name":"M","subjects":["m"]}`)
	ask("o.a", "later")
	if got := ask("m", "x"); !strings.Contains(got, `"seq":6`) {
		t.Fatalf("publish to what was a mirror: %s", got)
	}
	if info := infoOf(t, ask("$JS.API.STREAM.INFO.M", "")); info.Mirror != nil || info.State.Msgs != 4 {
		t.Fatalf("what was a mirror says %+v and holds %+v", info.Mirror, info.State)
	}
}

// TestMirrorOfAMemoryStreamIsNotMixed restarts the server: the stream begins anew, the mirror on the disk does not.
func TestMirrorOfAMemoryStreamIsNotMixed(t *testing.T) {
	r, ask := newMirrored(t)
	ask("$JS.API.STREAM.CREATE.O", `{"name":"O","subjects":["o"],"storage":"memory"}`)
	ask("$JS.API.STREAM.CREATE.M", `{"name":"M","mirror":{"name":"O"}}`)
	ask("o", "1")
	ask("o", "2")
	r.restart()
	ask = r.asker(2)
	for i := range 4 {
		ask("o", fmt.Sprint(i))
	}
	info := infoOf(t, ask("$JS.API.STREAM.INFO.M", ""))
	if info.State.Msgs != 2 || info.State.LastSeq != 2 || info.Mirror.Error == nil {
		t.Fatalf("the mirror holds %+v and says %+v", info.State, info.Mirror)
	}
	ask("$JS.API.STREAM.PURGE.M", "")
	info = infoOf(t, ask("$JS.API.STREAM.INFO.M", ""))
	if info.State.Msgs != 2 || info.State.FirstSeq != 3 || info.State.LastSeq != 4 || info.Mirror.Error != nil {
		t.Fatalf("after a purge the mirror holds %+v and says %+v", info.State, info.Mirror)
	}
}

// TestFullMirrorWaitsForRoom and says so: it leaves nothing out.
func TestFullMirrorWaitsForRoom(t *testing.T) {
	_, ask := newMirrored(t)
	ask("$JS.API.STREAM.CREATE.O", `{"name":"O","subjects":["o"]}`)
	ask("$JS.API.STREAM.CREATE.M", `{"name":"M","mirror":{"name":"O"},"max_msgs":2,"discard":"new"}`)
	for i := range 5 {
		ask("o", fmt.Sprint(i))
	}
	info := infoOf(t, ask("$JS.API.STREAM.INFO.M", ""))
	if info.State.Msgs != 2 || info.State.LastSeq != 2 || !jsapi.CodeStreamStoreFailed.Is(info.Mirror.Error) {
		t.Fatalf("the full mirror holds %+v and says %+v", info.State, info.Mirror)
	}
	ask("$JS.API.STREAM.MSG.DELETE.M", `{"seq":1}`)
	if info = infoOf(t, ask("$JS.API.STREAM.INFO.M", "")); info.State.LastSeq != 3 || info.Mirror.Error == nil {
		t.Fatalf("with room for one the mirror holds %+v and says %+v", info.State, info.Mirror)
	}
	ask("$JS.API.STREAM.UPDATE.M", `{"name":"M","mirror":{"name":"O"},"max_msgs":10,"discard":"new"}`)
	if info = infoOf(t, ask("$JS.API.STREAM.INFO.M", "")); info.State.LastSeq != 5 || info.State.Msgs != 4 || info.Mirror.Error != nil {
		t.Fatalf("with room the mirror holds %+v and says %+v", info.State, info.Mirror)
	}
}

// TestMirrorReadsFromTheDiskWhatIsNotInMemory copies more than one answer takes, all of it cold.
func TestMirrorReadsFromTheDiskWhatIsNotInMemory(t *testing.T) {
	r := newRig(t, func(c *engine.Config) { c.JetStream.CacheBytes, c.JetStream.BlockBytes = 1, 64<<10 })
	ask := r.asker(1)
	ask("$JS.API.STREAM.CREATE.O", `{"name":"O","subjects":["o.*"]}`)
	const messages, each = 60, 20_000
	for i := range messages {
		ask(fmt.Sprintf("o.%d", i%3), strings.Repeat("x", each))
	}
	ask("$JS.API.STREAM.MSG.DELETE.O", `{"seq":7}`)
	ask("$JS.API.STREAM.CREATE.M", `{"name":"M","mirror":{"name":"O"}}`)
	info := infoOf(t, ask("$JS.API.STREAM.INFO.M", ""))
	if info.State.Msgs != messages-1 || info.State.LastSeq != messages || info.State.NumDeleted != 1 || info.Mirror.Lag != 0 {
		t.Fatalf("the mirror holds %+v and says %+v", info.State, info.Mirror)
	}
	if got := ask("$JS.API.STREAM.MSG.GET.M", `{"seq":41}`); !strings.Contains(got, `"subject":"o.1"`) {
		t.Fatalf("message 41: %.200s", got)
	}
}

// TestIdleMirrorsCostNoFrames counts what servers say to each other when all mirrors have everything: that they are there.
func TestIdleMirrorsCostNoFrames(t *testing.T) {
	c := newCluster(t, 3)
	c.create("O", 3)
	for i := range 4 {
		var created jsapi.StreamCreateResponse
		name := fmt.Sprintf("M%d", i)
		c.ask(0, "$JS.API.STREAM.CREATE."+name, fmt.Sprintf(`{"name":%q,"mirror":{"name":"O"},"num_replicas":%d}`, name, 1+2*(i%2)), &created)
	}
	for range 5 {
		c.request(1, "O", "x")
	}
	held := func() {
		t.Helper()
		for i := range 4 {
			info := infoOf(t, c.request(2, fmt.Sprintf("$JS.API.STREAM.INFO.M%d", i), ""))
			if info.State.Msgs != 5 || info.Mirror.Lag != 0 || info.Mirror.Error != nil {
				t.Fatalf("mirror %d holds %+v and says %+v", i, info.State, info.Mirror)
			}
		}
	}
	held()
	var created jsapi.StreamCreateResponse
	c.ask(0, "$JS.API.STREAM.CREATE.F", `{"name":"F","mirror":{"name":"O","filter_subject":"none"}}`, &created)
	if alternates := infoOf(t, c.request(0, "$JS.API.STREAM.INFO.O", "")).Alternates; len(alternates) != 6 ||
		alternates[0] != (jsapi.StreamAlternate{Name: "O", Cluster: "C"}) || alternates[4].Name != "M3" {
		t.Fatalf("alternates: %+v", alternates)
	}
	c.run(100)
	counts := map[peerwire.Kind]int{}
	for _, r := range c.rigs {
		send := r.peers
		r.peers = func(out []event.PeerOut) {
			for _, o := range out {
				for rest := o.Frames; len(rest) > 0; {
					var frame []byte
					var err error
					if frame, rest, err = peerwire.Split(rest); err != nil {
						t.Fatal(err)
					}
					counts[peerwire.KindOf(frame)]++
				}
			}
			send(out)
		}
	}
	c.run(1000)
	for kind, n := range counts { // order-free: each kind is judged on its own
		if kind == peerwire.Digest && n <= 40 {
			continue // of the catalogs, each time that a server has verified what it has of that: six streams take turns with it
		}
		if kind != peerwire.Ping && kind != peerwire.Pong {
			t.Errorf("%d frames of kind %d between idle servers", n, kind)
		}
	}
	if counts[peerwire.Ping] == 0 {
		t.Fatal("nothing was counted")
	}
	held()
}

// TestMirrorFollowsThroughLossOfEitherLeader kills each server in turn while messages come.
func TestMirrorFollowsThroughLossOfEitherLeader(t *testing.T) {
	c := newCluster(t, 3)
	c.create("O", 3)
	var created jsapi.StreamCreateResponse
	c.ask(0, "$JS.API.STREAM.CREATE.M", `{"name":"M","mirror":{"name":"O"},"num_replicas":3,"allow_direct":true}`, &created)
	sent := 0
	for i := range c.rigs {
		c.kill(i)
		c.run(40)
		j := (i + 1) % 3
		for range 4 {
			if got := c.request(j, "O", fmt.Sprint(sent)); !strings.Contains(got, fmt.Sprintf(`"seq":%d`, sent+1)) {
				t.Fatalf("publish %d: %s", sent+1, got)
			}
			sent++
		}
		c.run(30)
		if info := infoOf(t, c.request(j, "$JS.API.STREAM.INFO.M", "")); info.State.Msgs != uint64(sent) {
			t.Fatalf("without %d the mirror holds %+v of %d and says %+v", i, info.State, sent, info.Mirror)
		}
		delete(c.rigs[i].out, 900)
		c.restart(i)
		c.run(40)
	}
	for seq := 1; seq <= sent; seq++ {
		got := c.request(0, "$JS.API.DIRECT.GET.M", fmt.Sprintf(`{"seq":%d}`, seq))
		if !strings.Contains(got, fmt.Sprintf("Nats-Sequence: %d\r\n", seq)) || !strings.HasSuffix(got, fmt.Sprintf("\r\n\r\n%d\r\n", seq-1)) {
			t.Fatalf("message %d: %q", seq, got)
		}
	}
}
