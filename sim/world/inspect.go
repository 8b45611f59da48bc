package world

import (
	"weir/disk/wal"
)

// leaderOf is the machine whose replica leads a group, with the highest term if several think so; -1: none.
func (w *World) leaderOf(wal.GroupID) int { return -1 }

// inspect checks what holds after every step of a node.
func (w *World) inspect(*machine) {}

// countCopies checks that a majority has an entry on disk when the first replica applies it.
func (w *World) countCopies(*machine, applied, uint64) {}
