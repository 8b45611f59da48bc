package memfs

import (
	"slices"
	"strings"
)

// deceived notes a write that the disk says it did, and loses or puts elsewhere.
func (c *content) deceived(p []byte, off int64) {
	if c.truth == nil {
		c.truth = slices.Clone(c.data)
	}
	c.truth = put(c.truth, off, p)
}

// Deceived reports whether the disk has said of something that it did it, and has not: what Lie does, and in files under the
// name Lose and Astray.
func (f *FS) Deceived(under string) bool {
	found := false
	f.each(func(name string, c *content) {
		found = found || c.claimed > 0 || c.truth != nil && strings.HasPrefix(name, under)
	})
	for i := range f.pending {
		found = found || len(f.pending[i].claimed) > 0
	}
	return found
}

// Undeceive makes true what the disk has said: what Sync and SyncDir said they made durable is durable, and writes that were
// lost or went astray are where they belong. Of a file with such writes everything is durable then.
func (f *FS) Undeceive() {
	f.each(func(_ string, c *content) {
		for i := range c.claimed {
			c.synced = c.writes[i].apply(c.synced)
		}
		c.writes, c.claimed = c.writes[c.claimed:], 0
		before := int64(len(c.data))
		if c.truth != nil {
			c.data, c.synced, c.writes, c.truth = c.truth, slices.Clone(c.truth), nil, nil
		}
		f.used += int64(len(c.data)) - before
	})
	for i := range f.pending {
		op := &f.pending[i]
		op.waits = slices.DeleteFunc(op.waits, func(w *node) bool { return slices.Contains(op.claimed, w) })
		op.claimed = nil
	}
	f.settle()
}

// each visits every file that readers see.
func (f *FS) each(visit func(name string, c *content)) {
	for _, name := range f.Files(".") {
		visit(name, f.lookup(name).file)
	}
}
