package subject

import (
	"slices"

	"weir/spec/assert"
)

const (
	// pageMax is the number of entries at which a page splits, mergeMax the number up to which neighbours merge.
	pageMax  = 64
	mergeMax = 40
	// pageTextMax bounds the bytes of a page's keys, so that long keys do not make changes slow.
	pageTextMax = 16 << 10
)

// Tree is an ordered map from literal subjects to values: a B+ tree whose pages share key prefixes, so that millions of
// subjects cost few bytes each and no pointer. The order is that of bytes. The zero value is an empty tree. A Tree is
// not safe for concurrent use.
//
// Pointers to values are valid until the next Put or Delete. Subjects passed to visits are valid during the visit only.
// The tree must not be changed during a visit: stop, change, and resume from the subject after the last one seen.
type Tree[V any] struct {
	root  *branch[V]
	count int
	// path is scratch space of changes: the way from the root to a leaf.
	path []step[V]
}

// branch is a page of separators: the key of a child is a lower bound of the child's keys. Invariants: exactly one of
// below and leaves is in use, the same on the same level everywhere; the key of a branch's first child equals the key of
// the branch in its parent, the empty one at the root.
type branch[V any] struct {
	below  page[*branch[V]]
	leaves page[*page[V]]
}

// step is one branch on the way down, and the position of the child taken.
type step[V any] struct {
	at    *branch[V]
	child int
}

// Len returns the number of subjects.
func (t *Tree[V]) Len() int { return t.count }

// Get returns the value of the subject, nil when it has none.
func (t *Tree[V]) Get(subject []byte) *V {
	leaf := t.leaf(subject)
	if leaf == nil {
		return nil
	}
	i, ok := leaf.search(subject)
	if !ok {
		return nil
	}
	return &leaf.values[i]
}

// Put sets the value of the subject, which must not be empty, and returns where the tree keeps it.
func (t *Tree[V]) Put(subject []byte, value V) *V {
	assert.True(len(subject) > 0, "subject of a tree is not empty")
	if t.root == nil {
		t.root = &branch[V]{}
		t.root.leaves.insert(0, nil, &page[V]{})
	}
	leaf := t.descend(subject)
	i, ok := leaf.search(subject)
	if ok {
		leaf.values[i] = value
		return &leaf.values[i]
	}
	leaf.insert(i, subject, value)
	t.count++
	if leaf.overfull() {
		t.split(leaf, i)
		return t.Get(subject)
	}
	return &leaf.values[i]
}

// Delete removes the subject and reports whether it was there.
func (t *Tree[V]) Delete(subject []byte) bool {
	if t.root == nil {
		return false
	}
	leaf := t.descend(subject)
	i, ok := leaf.search(subject)
	if !ok {
		return false
	}
	leaf.remove(i)
	t.count--
	assert.True(t.count >= 0, "tree count >= 0")
	if t.count == 0 {
		t.root = nil
		return true
	}
	t.thin()
	return true
}

// leaf returns the leaf that has the subject if any has.
func (t *Tree[V]) leaf(subject []byte) *page[V] {
	if t.root == nil {
		return nil
	}
	at := t.root
	for at.below.len() > 0 {
		at = at.below.values[childOf(&at.below, subject)]
	}
	return at.leaves.values[childOf(&at.leaves, subject)]
}

// descend is leaf, and records the way in path.
func (t *Tree[V]) descend(subject []byte) *page[V] {
	t.path = t.path[:0]
	at := t.root
	for at.below.len() > 0 {
		i := childOf(&at.below, subject)
		t.path = append(t.path, step[V]{at, i})
		at = at.below.values[i]
	}
	i := childOf(&at.leaves, subject)
	t.path = append(t.path, step[V]{at, i})
	return at.leaves.values[i]
}

// childOf returns the position of the child that covers the subject.
func childOf[T any](p *page[T], subject []byte) int {
	i, ok := p.search(subject)
	if ok || i == 0 {
		return i
	}
	return i - 1
}

func (p *page[T]) overfull() bool {
	return p.len() > 1 && (p.len() > pageMax || len(p.text) > pageTextMax)
}

// cutAt returns where to split an overfull page after an insertion at i. Subjects that arrive in ascending order leave
// full pages behind.
func (p *page[T]) cutAt(i int) int {
	if i == p.len()-1 {
		return i
	}
	return p.len() / 2
}

// split divides the leaf at the end of path, in which position i was filled last, and then every branch above that
// became overfull.
func (t *Tree[V]) split(leaf *page[V], i int) {
	right, separator := splitPage(leaf, i)
	last := t.path[len(t.path)-1]
	last.at.leaves.insert(last.child+1, shortest(leaf, separator), right)
	for depth := len(t.path) - 1; depth >= 0; depth-- {
		s := t.path[depth]
		twin := &branch[V]{}
		switch {
		case s.at.leaves.overfull():
			var half *page[*page[V]]
			half, separator = splitPage(&s.at.leaves, s.child+1)
			twin.leaves = *half
		case s.at.below.overfull():
			var half *page[*branch[V]]
			half, separator = splitPage(&s.at.below, s.child+1)
			twin.below = *half
		default:
			return
		}
		if depth > 0 {
			parent := t.path[depth-1]
			parent.at.below.insert(parent.child+1, separator, twin)
			continue
		}
		t.root = &branch[V]{}
		t.root.below.insert(0, nil, s.at)
		t.root.below.insert(1, separator, twin)
	}
}

// splitPage moves the upper entries of p to a new page and returns it with its first key.
func splitPage[T any](p *page[T], inserted int) (right *page[T], first []byte) {
	cut := p.cutAt(inserted)
	assert.True(cut > 0, "a split leaves something on the left", uint64(p.len()))
	upper := p.part(cut, p.len())
	p.take(p, 0, cut)
	return &upper, upper.appendKey(nil, 0)
}

// shortest returns the shortest prefix of the key that is above all keys of the page, which are below the key.
func shortest[T any](p *page[T], key []byte) []byte {
	shared := commonPrefix(p.appendKey(nil, p.len()-1), key)
	return slices.Clip(key[:shared+1])
}

// thin repairs the tree after a removal from the leaf at the end of path: an empty leaf goes, with all branches above
// that held nothing else, and small neighbours merge.
func (t *Tree[V]) thin() {
	depth := len(t.path) - 1
	last := t.path[depth]
	lost := false
	if last.at.leaves.values[last.child].len() > 0 {
		lost = mergeLeaves(&last.at.leaves, last.child)
	} else {
		for t.path[depth].at.len() == 1 {
			depth--
			assert.True(depth >= 0, "a tree with subjects has a leaf that is not empty", uint64(t.count))
		}
		t.path[depth].at.drop(t.path[depth].child)
		lost = true
	}
	for depth--; lost && depth >= 0; depth-- {
		lost = mergeBranches(&t.path[depth].at.below, t.path[depth].child)
	}
	for t.root.below.len() == 1 {
		t.root = t.root.below.values[0]
	}
}

func (at *branch[V]) len() int { return at.below.len() + at.leaves.len() }

// drop removes child i.
func (at *branch[V]) drop(i int) {
	if at.below.len() > 0 {
		dropEntry(&at.below, i)
		return
	}
	dropEntry(&at.leaves, i)
}

// dropEntry removes entry i of a branch's page. The entry that becomes first takes over the lower bound.
func dropEntry[T any](p *page[T], i int) {
	bound := p.appendKey(nil, i)
	p.remove(i)
	if i == 0 {
		value := p.values[0]
		p.remove(0)
		p.insert(0, bound, value)
	}
}

// mergeLeaves joins child i with a neighbour when both are small and reports whether it did.
func mergeLeaves[V any](parent *page[*page[V]], i int) bool {
	for left := max(i-1, 0); left <= i && left+1 < parent.len(); left++ {
		a, b := parent.values[left], parent.values[left+1]
		if a.len()+b.len() <= mergeMax && len(a.text)+len(b.text) <= pageTextMax/2 {
			a.join(b)
			parent.remove(left + 1)
			return true
		}
	}
	return false
}

// mergeBranches is mergeLeaves for branches. Joining keeps their keys, as the first key of the right one is its lower
// bound.
func mergeBranches[V any](parent *page[*branch[V]], i int) bool {
	for left := max(i-1, 0); left <= i && left+1 < parent.len(); left++ {
		a, b := parent.values[left], parent.values[left+1]
		if a.len()+b.len() <= mergeMax {
			a.below.join(&b.below)
			a.leaves.join(&b.leaves)
			parent.remove(left + 1)
			return true
		}
	}
	return false
}

// seek returns the leaf with the smallest subject >= from and its position there, nil when there is none. The result is
// valid until the tree changes.
func (t *Tree[V]) seek(from []byte) (*page[V], int) {
	if t.root == nil {
		return nil, 0
	}
	at := t.root
	// beside is the deepest branch on the way with a child after the one taken, which is next.
	var beside *branch[V]
	next := 0
	for at.below.len() > 0 {
		i := childOf(&at.below, from)
		if i+1 < at.below.len() {
			beside, next = at, i+1
		}
		at = at.below.values[i]
	}
	i := childOf(&at.leaves, from)
	leaf := at.leaves.values[i]
	if k, _ := leaf.search(from); k < leaf.len() {
		return leaf, k
	}
	// Everything in this leaf is smaller, so the answer is the first subject of the next leaf.
	if i+1 < at.leaves.len() {
		return at.leaves.values[i+1], 0
	}
	if beside == nil {
		return nil, 0
	}
	at = beside.below.values[next]
	for at.below.len() > 0 {
		at = at.below.values[0]
	}
	return at.leaves.values[0], 0
}
