package world

import (
	"fmt"

	"weir/disk/wal"
	"weir/model/jsapi"
	"weir/node/event"
	"weir/node/monitor"
)

// Idle reports whether the node has nothing to do on the disk.
func (w *World) Idle() bool {
	for i := range w.machine.workers {
		if w.machine.workers[i].busy() {
			return false
		}
	}
	return true
}

// Residue says what a node at rest has in its log beside its catalog and its streams on disk: what is deleted has to go
// from the log too, or it keeps old segments for ever and comes back at each start. It returns "" when there is nothing,
// and for a node that is not up or whose disk is damaged.
func (w *World) Residue() string {
	if w.machine.node == nil || w.Rotten() {
		return ""
	}
	const catalog = 1
	want := catalog
	now := event.Time{Mono: w.mono(), Wall: Epoch + w.now + w.machine.wallOffset}
	shown := w.machine.node.Engine().Snapshot(now, monitor.Want{Streams: true})
	for _, account := range shown.JetStream.Accounts {
		for i := range account.Streams {
			if account.Streams[i].Info.Config.Storage == jsapi.FileStorage {
				want++
			}
		}
	}
	found, err := wal.Scan(w.disk, Dir+"/wal", nil)
	if err != nil {
		return fmt.Sprintf("the log cannot be read: %v", err)
	}
	if have := len(found.Groups) + len(found.Damaged); have != want {
		return fmt.Sprintf("the log holds %d groups, the catalog and its streams are %d", have, want)
	}
	return ""
}
