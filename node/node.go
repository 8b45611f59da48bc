// Package node is one server: it joins the pure engine with its storage and runs both against a clock, a network and a
// disk.
//
// The three interfaces have a real implementation each (node/host for time and scheduling, transport/tcp, disk/osfs)
// and a simulated one each in sim; New is the same for both. The node promises to hand outputs over in the order in
// which they arose, and to read the clock once per batch of inputs. It is not safe for concurrent use: the owner calls
// Step from one place at a time.
package node

import (
	"errors"
	"fmt"

	"weir/disk/vfs"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/storage"
)

// Clock tells the time.
type Clock interface {
	// Now is the present time.
	Now() event.Time
	// Wake asks for a Woke input once the monotone time is at or after at. A later call replaces an earlier one.
	Wake(at int64)
}

// Network carries bytes to clients.
type Network interface {
	// Send takes what leaves for connections. It owns the bytes, not the slice of elements.
	Send(out []event.ConnOut)
	// SendPeers takes what leaves for other servers. It owns the bytes, not the slice of elements.
	SendPeers(out []event.PeerOut)
	// Spare returns buffers that Send took and whose bytes have been written, appended to dst.
	Spare(dst [][]byte) [][]byte
}

// Worker has storage operations carried out.
type Worker interface {
	// Submit takes operations to be carried out by Storage, in order per kind of worker (event.OpKind.Log), each
	// followed by a Done input when it has a ticket. It owns what the operations refer to, not the slice.
	Submit(ops []event.Op)
}

// Env is the world of a node.
type Env struct {
	// Clock, Network and Worker are the owner's.
	Clock   Clock
	Network Network
	Worker  Worker
	// Disk is the file system that holds the data directory.
	Disk vfs.FS
	// Log receives lines for the operator; nil drops them.
	Log func(event.LogLine)
}

// Config is the configuration of a node.
type Config struct {
	// Engine is the configuration of the engine. Its Server is the identity that a new data directory gets; for one that
	// exists it is replaced by the directory's own.
	Engine engine.Config
	// Storage is how the data directory is used.
	Storage storage.Options
	// Dir is the data directory on Env.Disk; empty stands for its root.
	Dir string
}

// Node is one server.
type Node struct {
	env     Env
	engine  *engine.Engine
	storage *storage.Storage
	out     event.Outputs
	inputs  [1]event.Input
}

// PatienceMax is how many starts in a row are given up because the device does not read something, PatienceNanos the time
// between them, before what is not readable is taken for damaged (storage.Options.Patient): a server that comes back after
// a fault of its disk better waits a little than to be built anew from the others, who may have the same trouble.
const (
	PatienceMax   = 3
	PatienceNanos = int64(1e9)
)

// New opens the data directory, recovers what it holds, and starts the engine. Its first outputs are handed to env
// before New returns. Without JetStream no directory is opened.
func New(env Env, config Config) (*Node, error) {
	n := &Node{env: env}
	if config.Dir == "" {
		config.Dir = "."
	}
	var groups []event.Group
	if config.Engine.JetStream.Enabled {
		if config.Storage.NewServer == 0 {
			config.Storage.NewServer = uint64(config.Engine.Server)
		}
		var err error
		n.storage, groups, err = storage.Open(env.Disk, config.Dir, config.Storage)
		if err != nil {
			return nil, fmt.Errorf("open data directory %q: %w", config.Dir, err)
		}
		config.Engine.Hidden = n.storage.Hidden()
		if err := config.Engine.Hidden; err != nil && config.Engine.Cluster.Name == "" {
			return nil, errors.Join(fmt.Errorf("open data directory %q: %w; restore it from a copy", config.Dir, err), n.storage.Close())
		}
		config.Engine.Server = event.ServerID(n.storage.Server())
	}
	var err error
	n.engine, err = engine.New(config.Engine, groups, env.Clock.Now(), &n.out)
	if err != nil {
		if n.storage != nil {
			err = errors.Join(err, n.storage.Close())
		}
		return nil, fmt.Errorf("start from data directory %q: %w", config.Dir, err)
	}
	n.deliver()
	return n, nil
}

// Engine is the node's engine, for reading what monitoring shows; the caller does not step it.
func (n *Node) Engine() *engine.Engine { return n.engine }

// Storage carries out storage operations; it is nil without JetStream.
func (n *Node) Storage() *storage.Storage { return n.storage }

// Step takes one input and hands over what it causes.
func (n *Node) Step(in event.Input) {
	n.inputs[0] = in
	n.StepAll(n.inputs[:])
	n.inputs[0] = event.Input{}
}

// StepAll takes inputs in order, all at one time, and hands over what they cause. Whatever they propose is persisted
// together.
func (n *Node) StepAll(inputs []event.Input) {
	now := n.env.Clock.Now()
	for i := range inputs {
		n.engine.Step(now, &inputs[i], &n.out)
	}
	n.engine.Finish(now, &n.out)
	n.deliver()
}

// deliver hands the collected outputs to the world.
func (n *Node) deliver() {
	out := &n.out
	if n.env.Log != nil {
		for i := range out.Logs {
			n.env.Log(out.Logs[i])
		}
	}
	if len(out.Storage) > 0 {
		n.env.Worker.Submit(out.Storage)
	}
	if len(out.Conns) > 0 {
		n.env.Network.Send(out.Conns)
	}
	if len(out.Peers) > 0 {
		n.env.Network.SendPeers(out.Peers)
	}
	n.env.Clock.Wake(out.WakeAt)
	out.Reset()
	out.Spare = n.env.Network.Spare(out.Spare)
}
