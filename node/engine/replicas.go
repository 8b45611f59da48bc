package engine

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"weir/node/replica"
)

// Send implements replica.Sink.
func (e *Engine) Send(*replica.Replica, replica.Member, *pb.Message) {}

// Role implements replica.Sink.
func (e *Engine) Role(*replica.Replica) {}

// Members implements replica.Sink.
func (e *Engine) Members(*replica.Replica) {}
