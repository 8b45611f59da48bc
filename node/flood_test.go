package node_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/node/engine"
	"weir/node/event"
	"weir/node/replica"
	"weir/transport/wire"
)

// TestFloodOfManyStreamsKeepsAppendsSmall has more gather behind a slow log than one append holds.
func TestFloodOfManyStreamsKeepsAppendsSmall(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	const streams, rounds, size = 12, 12, 1 << 20
	for i := range streams {
		name := fmt.Sprint("S", i)
		r.pub(1, "$JS.API.STREAM.CREATE."+name, "in.x", `{"name":"`+name+`","subjects":["`+name+`"]}`)
	}
	r.read(1)
	payload := make([]byte, size-100)
	for range rounds {
		var ops []wire.Op
		for i := range streams {
			ops = append(ops, wire.Op{Kind: wire.KindPub, Subject: fmt.Append(nil, "S", i), Reply: []byte("in.x"), Payload: payload})
		}
		r.node.Step(event.Input{Kind: event.Ops, Conn: 1, Ops: ops})
	}
	for len(r.ops) > 0 {
		ops := r.ops
		r.ops = nil
		for i := range ops {
			if bytes := entryBytes(&ops[i]); bytes > engine.StepBytesMax+replica.ProposedBytesMax+2*size {
				t.Fatalf("an append of %d bytes", bytes)
			}
		}
		r.ops = ops
		r.settleOnce()
	}
	if acks := strings.Count(r.read(1), `"seq":`); acks != streams*rounds {
		t.Fatalf("%d acknowledgements of %d", acks, streams*rounds)
	}
}

func entryBytes(op *event.Op) (bytes int) {
	for i := range op.Writes {
		for j := range op.Writes[i].Entries {
			bytes += len(op.Writes[i].Entries[j].Data)
		}
	}
	return bytes
}

// settleOnce carries out what is asked for at present, and wakes the node if it wants to be.
func (r *rig) settleOnce() {
	ops := r.ops
	r.ops = nil
	var inputs []event.Input
	for _, c := range r.node.Storage().Do(ops, nil) {
		inputs = append(inputs, event.Input{Kind: event.Done, Done: c})
	}
	r.node.StepAll(append(inputs, event.Input{Kind: event.Woke}))
	r.node.Step(event.Input{Kind: event.Woke})
}
