package world

import (
	"fmt"

	"weir/disk/wal"
	"weir/model/jsapi"
	"weir/node/monitor"
)

// Idle reports whether no node has anything to do on its disk.
func (w *World) Idle() bool {
	for _, m := range w.machines {
		for i := range m.workers {
			if m.node != nil && m.workers[i].busy() {
				return false
			}
		}
	}
	return true
}

// Residue says what a node at rest has in its log beside its catalog and its streams on disk: what is deleted has to go
// from the log too, or it keeps old segments for ever and comes back at each start. It returns "" when there is nothing,
// for a node that is not up or whose disk is damaged, and for a cluster, where a node need not host what the catalog holds.
func (w *World) Residue() string {
	m := w.machines[0]
	if len(w.machines) > 1 || m.node == nil || w.Rotten() {
		return ""
	}
	const catalog = 1
	want := catalog
	shown := m.node.Engine().Snapshot(m.time(), monitor.Want{Streams: true})
	for _, account := range shown.JetStream.Accounts {
		for i := range account.Streams {
			if account.Streams[i].Info.Config.Storage == jsapi.FileStorage {
				want++
			}
		}
	}
	found, err := wal.Scan(m.disk, Dir+"/wal", nil)
	if err != nil {
		return fmt.Sprintf("the log cannot be read: %v", err)
	}
	if have := len(found.Groups) + len(found.Damaged); have != want {
		return fmt.Sprintf("the log holds %d groups, the catalog and its streams are %d", have, want)
	}
	return ""
}
