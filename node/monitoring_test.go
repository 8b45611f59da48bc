package node_test

import (
	"maps"
	"strings"
	"testing"

	"weir/model/jsapi"
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
