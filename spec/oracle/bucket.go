package oracle

import (
	"maps"
	"slices"
)

// Bucket is a key-value bucket as clients see it (ADR-8), without limits other than the length of the history.
type Bucket struct {
	// History is how many revisions of a key are kept.
	History int

	// entries are ascending by revision. last is the highest revision given.
	entries []Entry
	last    uint64
}

// Entry is one revision of a key.
type Entry struct {
	Key, Value string
	Revision   uint64
	// Op is what made the revision.
	Op Op
}

// Op is an operation on a key.
type Op uint8

// The operations that make revisions.
const (
	Put Op = iota
	Deleted
	Purged
)

// Put sets the value of the key and returns the new revision.
func (b *Bucket) Put(key, value string) uint64 { return b.append(Entry{Key: key, Value: value}) }

// Create sets the value of a key that has none. It reports whether that was so.
func (b *Bucket) Create(key, value string) (revision uint64, ok bool) {
	if _, exists := b.Get(key); exists {
		return 0, false
	}
	return b.Put(key, value), true
}

// Update sets the value of the key if its last revision is the given one, 0 for a key that has none.
func (b *Bucket) Update(key, value string, last uint64) (revision uint64, ok bool) {
	if b.lastOf(key).Revision != last {
		return 0, false
	}
	return b.Put(key, value), true
}

// Delete marks the key as deleted. With a last revision other than 0 that has to be the key's last one.
func (b *Bucket) Delete(key string, last uint64) bool {
	if last > 0 && b.lastOf(key).Revision != last {
		return false
	}
	b.append(Entry{Key: key, Op: Deleted})
	return true
}

// Purge removes the revisions of the key and leaves a mark.
func (b *Bucket) Purge(key string) {
	b.entries = slices.DeleteFunc(b.entries, func(e Entry) bool { return e.Key == key })
	b.append(Entry{Key: key, Op: Purged})
}

// Get returns the value of the key, and reports whether it has one.
func (b *Bucket) Get(key string) (Entry, bool) {
	e := b.lastOf(key)
	return e, e.Revision > 0 && e.Op == Put
}

// GetRevision returns a value that the key had, and reports whether it did and the revision is still there.
func (b *Bucket) GetRevision(key string, revision uint64) (Entry, bool) {
	for _, e := range b.entries {
		if e.Key == key && e.Revision == revision {
			return e, e.Op == Put
		}
	}
	return Entry{}, false
}

// Revisions are the kept revisions of the key, ascending.
func (b *Bucket) Revisions(key string) []Entry {
	var kept []Entry
	for _, e := range b.entries {
		if e.Key == key {
			kept = append(kept, e)
		}
	}
	return kept
}

// Keys are the keys that have a value, in order.
func (b *Bucket) Keys() []string {
	keys := map[string]bool{}
	for _, e := range b.entries {
		if _, exists := b.Get(e.Key); exists {
			keys[e.Key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

func (b *Bucket) lastOf(key string) Entry {
	kept := b.Revisions(key)
	if len(kept) == 0 {
		return Entry{}
	}
	return kept[len(kept)-1]
}

// append adds a revision and drops the oldest of the key beyond the history.
func (b *Bucket) append(e Entry) uint64 {
	b.last++
	e.Revision = b.last
	b.entries = append(b.entries, e)
	if kept := b.Revisions(e.Key); len(kept) > b.History {
		b.entries = slices.DeleteFunc(b.entries, func(old Entry) bool { return old.Revision == kept[0].Revision })
	}
	return b.last
}
