package memfs

import (
	"hash/crc32"
	"maps"
	"path"
	"slices"

	"weir/spec/assert"
)

// Strategy chooses which un-synced sectors and directory entries survive a crash.
type Strategy uint8

// The strategies. Sectors are those written since the last Sync of their file, in the order of the writes.
const (
	// LoseAll keeps nothing that was not synced.
	LoseAll Strategy = iota
	// KeepAll keeps everything: a killed process on a living system. What was written to files and not synced is visible
	// and still not synced: a power loss later may take it.
	KeepAll
	// Prefix keeps the first sectors up to a keyed point.
	Prefix
	// Suffix keeps the last sectors from a keyed point on: the disk reordered.
	Suffix
	// OnlyLast keeps the last sector only.
	OnlyLast
	// AllButFirst loses the first sector only.
	AllButFirst
	// Subset keeps each sector by its own coin.
	Subset
	// TornLast keeps all sectors, the last one as a mix of its new beginning and its old rest.
	TornLast
	// OlderVersion keeps for each sector a keyed one of the versions written, or the synced one.
	OlderVersion

	strategies
)

var strategyNames = [strategies]string{"lose-all", "keep-all", "prefix", "suffix", "only-last", "all-but-first", "subset", "torn-last", "older-version"}

// Strategies returns all strategies in order.
func Strategies() []Strategy {
	all := make([]Strategy, strategies)
	for i := range all {
		all[i] = Strategy(i)
	}
	return all
}

// String returns the name of the strategy.
func (s Strategy) String() string { return strategyNames[s] }

// Crash returns the disk that a power loss at this moment leaves, with no lock held and, but under KeepAll, nothing
// un-synced. The strategy decides which sectors survive; directory entries survive not at all under LoseAll, all under KeepAll, and each by its
// own coin otherwise. The disk itself does not change; faults and hooks are not taken over. The result is a pure
// function of the disk, the strategy and the key.
func (f *FS) Crash(strategy Strategy, key uint64) *FS {
	changed := map[*node]map[string]*node{}
	entries := func(d *node) map[string]*node {
		m := changed[d]
		if m == nil {
			m = maps.Clone(d.durable)
			changed[d] = m
		}
		return m
	}
	for i := range f.pending {
		op := &f.pending[i]
		if len(op.waits) == 0 || keepsName(op, strategy, key) {
			op.apply(entries)
		}
	}
	image := New(f.opts)
	image.rebuild(f.root, entries, func(name string, c *content) *content {
		survived := survive(c, survival{strategy, Hash(key, name), f.opts.SectorBytes})
		if strategy == KeepAll {
			return &content{data: survived, synced: slices.Clone(c.synced), writes: slices.Clone(c.writes), claimed: c.claimed,
				truth: slices.Clone(c.truth)}
		}
		return &content{data: slices.Clone(survived), synced: survived, truth: slices.Clone(c.truth)}
	})
	return image
}

func keepsName(op *nameOp, strategy Strategy, key uint64) bool {
	switch strategy {
	case LoseAll:
		return false
	case KeepAll:
		return true
	}
	return Hash(key, op.fromName+"\x00"+op.toName, uint64(op.kind))&1 == 1
}

// rebuild fills an empty disk with the tree below root.
func (f *FS) rebuild(root *node, entries func(*node) map[string]*node, survivor func(string, *content) *content) {
	type step struct {
		name     string
		from, to *node
	}
	stack := []step{{".", root, f.root}}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		children := entries(s.from)
		for _, base := range slices.Sorted(maps.Keys(children)) {
			child, name := children[base], path.Join(s.name, base)
			var n *node
			if child.file == nil {
				n = newDir()
				stack = append(stack, step{name, child, n})
			} else {
				n = &node{file: survivor(name, child.file)}
				n.file.bad = maps.Clone(child.file.bad)
				f.used += int64(len(n.file.data))
			}
			s.to.visible[base], s.to.durable[base] = n, n
		}
	}
}

// survival is how one file survives.
type survival struct {
	strategy Strategy
	key      uint64
	sector   int
}

// survive returns the content of a file after a crash.
func survive(c *content, s survival) []byte {
	b := slices.Clone(c.synced)
	pieces := split(c.writes, s.sector)
	n := uint64(len(pieces))
	if n == 0 {
		return b
	}
	point := Hash(s.key, "point", n) % (n + 1)
	if s.strategy == OlderVersion {
		return older(b, pieces, s.key)
	}
	for i := range pieces {
		at := uint64(i)
		keep := false
		switch s.strategy {
		case LoseAll:
		case KeepAll:
			keep = true
		case Prefix:
			keep = at < point
		case Suffix:
			keep = at >= point
		case OnlyLast:
			keep = at == n-1
		case AllButFirst:
			keep = at > 0
		case Subset:
			keep = Hash(s.key, "coin", at)&1 == 1
		case TornLast:
			keep = true
			if at == n-1 && pieces[i].bytes != nil {
				cut := Hash(s.key, "cut") % uint64(len(pieces[i].bytes)+1)
				pieces[i].bytes = pieces[i].bytes[:cut]
			}
		default:
			assert.Unreachable("survival strategy", uint64(s.strategy))
		}
		if keep {
			b = pieces[i].apply(b)
		}
	}
	return b
}

// split cuts writes into single sectors, in order.
func split(writes []write, sector int) []write {
	var pieces []write
	for _, w := range writes {
		if w.bytes == nil {
			pieces = append(pieces, w)
			continue
		}
		for lo := 0; lo < len(w.bytes); lo += sector {
			hi := min(lo+sector, len(w.bytes))
			pieces = append(pieces, write{off: w.off + int64(lo), bytes: w.bytes[lo:hi]})
		}
	}
	return pieces
}

// older applies, for each sector, the versions up to a keyed one only.
func older(b []byte, pieces []write, key uint64) []byte {
	count := map[int64]uint64{}
	for i := range pieces {
		if pieces[i].bytes != nil {
			count[pieces[i].off]++
		}
	}
	seen := map[int64]uint64{}
	for i := range pieces {
		p := &pieces[i]
		if p.bytes != nil {
			seen[p.off]++
		}
		if p.bytes == nil || seen[p.off] <= Hash(key, "version", uint64(p.off))%(count[p.off]+1) {
			b = p.apply(b)
		}
	}
	return b
}

// Hash is the keyed hash that all choices of this package and of its users come from: equal arguments, equal result on
// every machine. It is not meant to resist an adversary.
func Hash(key uint64, text string, nums ...uint64) uint64 {
	h := mix(key ^ 0x9e3779b97f4a7c15)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 0x100000001b3
	}
	h = mix(h ^ uint64(len(text)))
	for _, n := range nums {
		h = mix(h ^ mix(n+0x9e3779b97f4a7c15))
	}
	return h
}

// mix is the finalizer of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Unsynced returns how many sectors and how many directory changes a crash may lose. When both are zero every strategy
// leaves the same disk.
func (f *FS) Unsynced() (sectors, names int) {
	stack := []*node{f.root}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, child := range n.visible { // order-free: a sum
			if child.file == nil {
				stack = append(stack, child)
				continue
			}
			for i := range child.file.writes {
				sectors += max(1, len(child.file.writes[i].bytes)/f.opts.SectorBytes)
			}
		}
	}
	return sectors, len(f.pending)
}

// Digest returns a hash of the names and contents that readers see, and of the contents that a power loss leaves at
// least: equal disks have equal digests, and different ones nearly always different ones.
func (f *FS) Digest() uint64 {
	var h uint64
	for _, name := range f.Files(".") {
		c := f.lookup(name).file
		for i, data := range [...][]byte{c.data, c.synced} {
			if i == 1 && len(c.writes) == 0 {
				break // the same again
			}
			h = Hash(h, name, uint64(len(data)), uint64(crc32.Checksum(data, castagnoli)), uint64(crc32.ChecksumIEEE(data)))
		}
	}
	return h
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
