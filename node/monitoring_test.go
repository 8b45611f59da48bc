package node_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"weir/model/jsapi"
	"weir/node/auth"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/monitor"
	"weir/transport/wire"
)

func TestClosedConnectionsKeepTheirSubscriptionsForMonitoring(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"name":"n"`)
	r.send(1, "SUB a.b q 1\r\nSUB c 2\r\nUNSUB 2\r\nPUB a.b 0\r\n\r\n")
	r.node.Step(event.Input{Kind: event.Closed, Conn: 1, Reason: wire.ClientClosed})
	closed := r.node.Engine().Snapshot(r.now, monitor.Want{Closed: true}).Closed
	if len(closed) != 1 || closed[0].Subscriptions != 1 || len(closed[0].List) != 1 {
		t.Fatalf("closed connections: %+v", closed)
	}
	if got, want := closed[0].List[0], (monitor.Subscription{Subject: "a.b", Queue: "q", SID: "1", Msgs: 1}); got != want {
		t.Errorf("subscription of the closed connection: %+v, want %+v", got, want)
	}
}

func TestSubscriptionsOfClosedConnectionsAreBounded(t *testing.T) {
	r := newRig(t, nil)
	const step, steps = 200, 50
	const each = step * steps
	const conns = engine.ClosedSubsMax/each + 2
	for id := event.ConnID(1); id <= conns; id++ {
		r.open(id, `"name":"n"`)
		for i := range steps {
			var subs strings.Builder
			for j := range step {
				subs.WriteString("SUB a " + itoa(i*step+j) + "\r\n")
			}
			r.send(id, subs.String())
		}
		r.node.Step(event.Input{Kind: event.Closed, Conn: id, Reason: wire.ClientClosed})
	}
	for i, c := range r.node.Engine().Snapshot(r.now, monitor.Want{Closed: true}).Closed {
		want := each
		if i < 2 {
			want = 0
		}
		if len(c.List) != want || c.Subscriptions != each {
			t.Errorf("connection %d: %d subscriptions, %d of them listed; want %d and %d", c.ID, c.Subscriptions, len(c.List), each, want)
		}
	}
}

func TestMonitoringShowsConfigurationsAsStored(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"name":"n"`)
	r.pub(1, "$JS.API.STREAM.CREATE.S", "", `{"name":"S","subjects":["s"],"retention":"limits","storage":"memory"}`)
	r.pub(1, "$JS.API.CONSUMER.CREATE.S.c", "", `{"stream_name":"S","config":{"name":"c","ack_policy":"none"}}`)
	s := r.node.Engine().Snapshot(r.now, monitor.Want{Streams: true, Consumers: true}).JetStream.Accounts[0].Streams[0]
	for _, metadata := range []map[string]string{s.Info.Config.Metadata, s.Consumers[0].Config.Metadata} {
		if want := map[string]string{jsapi.MetadataRequiredLevel: "0"}; !maps.Equal(metadata, want) {
			t.Errorf("metadata %v, want %v", metadata, want)
		}
	}
	if s.Info.Cluster == nil || s.Info.Cluster.Leader != "test" {
		t.Errorf("cluster %+v, want the server as leader", s.Info.Cluster)
	}
}

func TestAConnectionThatTheServerClosesIsLogged(t *testing.T) {
	var lines []string
	r := newRig(t, func(config *engine.Config) {
		var err error
		if config.Auth, err = auth.New(auth.Config{Users: []auth.User{{Name: "app", Password: "p", Account: "$G"}}}); err != nil {
			t.Fatal(err)
		}
		config.Limits.PendingBytes = 1000
	})
	r.logged = func(line event.LogLine) { lines = append(lines, line.Text) }
	r.open(1, `"user":"nobody","pass":"x"`)
	r.node.Step(event.Input{Kind: event.Closed, Conn: 1, Reason: wire.ClientClosed})
	r.open(2, `"user":"app","pass":"p"`)
	r.send(2, "SUB a 1\r\n")
	r.unread = true
	r.open(3, `"user":"app","pass":"p"`)
	r.pub(3, "a", "", strings.Repeat("x", 2000))
	r.node.Step(event.Input{Kind: event.Closed, Conn: 2, Reason: wire.ClientClosed})
	r.node.Step(event.Input{Kind: event.Closed, Conn: 3, Reason: wire.ClientClosed})
	want := []string{
		`127.0.0.1:5000 - cid:1 - authentication error - User "nobody"`,
		`127.0.0.1:5000 - cid:2 - "$G/user:app" - Slow Consumer Detected: MaxPending of 1000 Exceeded`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("logged:\n%s", strings.Join(lines, "\n"))
	}
}
