package subject

import "weir/spec/assert"

// Sublist maps patterns to values and finds the values of all patterns that match a published subject. It is a trie of
// tokens, so a lookup costs one map access per token for each partial match. The zero value is not usable; see
// NewSublist. A Sublist is not safe for concurrent use, Match included, as it reuses scratch space.
type Sublist[V comparable] struct {
	root    *level[V]
	count   int
	version uint64

	// frontier and next are the partial matches of the tokens read so far, kept between calls to avoid allocation.
	frontier, next []*level[V]
}

// level is a node of the trie. values belong to the pattern that ends here.
type level[V comparable] struct {
	parent *level[V]
	// token leads from the parent to this level.
	token    string
	literals map[string]*level[V]
	// star and tail are the children for "*" and ">".
	star, tail *level[V]
	values     []V
}

// NewSublist returns an empty sublist.
func NewSublist[V comparable]() *Sublist[V] {
	return &Sublist[V]{root: &level[V]{}}
}

// Len returns the number of pairs of a pattern and a value.
func (s *Sublist[V]) Len() int { return s.count }

// Version changes with each Insert and each Remove that took effect. Caches of results compare it.
func (s *Sublist[V]) Version() uint64 { return s.version }

// Insert adds the value to the pattern, which has to be Valid. The same pair may be inserted repeatedly and then counts
// as often.
func (s *Sublist[V]) Insert(pattern string, value V) {
	assert.True(Valid(pattern), "pattern of a sublist is valid", uint64(len(pattern)))
	at := s.root
	for lo := 0; lo <= len(pattern); {
		hi := TokenEnd(pattern, lo)
		at = at.grow(pattern[lo:hi])
		lo = hi + 1
	}
	at.values = append(at.values, value)
	s.count++
	s.version++
}

// Remove takes away one occurrence of the pair and reports whether there was one. The order of the other values of the
// pattern stays.
func (s *Sublist[V]) Remove(pattern string, value V) bool {
	at := s.root
	for lo := 0; at != nil && lo <= len(pattern); {
		hi := TokenEnd(pattern, lo)
		at = at.child(pattern[lo:hi])
		lo = hi + 1
	}
	if at == nil || !at.drop(value) {
		return false
	}
	s.count--
	s.version++
	at.prune()
	assert.True(s.count >= 0, "sublist count >= 0")
	return true
}

// Match appends to dst the values of all patterns that match the subject, in an order that depends only on the patterns
// and on the order of insertion. A subject with an empty token matches nothing. Match allocates only when dst or the
// scratch space has to grow.
func (s *Sublist[V]) Match(subject []byte, dst []V) []V {
	dst, _ = s.MatchFamily(subject, dst)
	return dst
}

// MatchFamily is Match, and reports whether every subject that differs in the last token only has the same values: no
// pattern says what that token is. Inboxes are so.
func (s *Sublist[V]) MatchFamily(subject []byte, dst []V) (values []V, family bool) {
	if len(subject) == 0 || hasEmptyToken(subject, 0) {
		return dst, false
	}
	family = true
	frontier, next := append(s.frontier[:0], s.root), s.next[:0]
	for lo := 0; lo <= len(subject) && len(frontier) > 0; {
		hi := TokenEnd(subject, lo)
		token := subject[lo:hi]
		last := hi == len(subject)
		for _, at := range frontier {
			if at.tail != nil {
				dst = append(dst, at.tail.values...)
			}
			var literal *level[V]
			if len(at.literals) > 0 {
				literal = at.literals[string(token)]
				family = family && !last
			}
			for _, child := range [2]*level[V]{at.star, literal} {
				if child == nil {
					continue
				}
				if last {
					dst = append(dst, child.values...)
					continue
				}
				next = append(next, child)
			}
		}
		frontier, next = next, frontier[:0]
		lo = hi + 1
	}
	s.frontier, s.next = frontier[:0], next[:0]
	return dst, family
}

// HasMatch reports whether any pattern matches the subject.
func (s *Sublist[V]) HasMatch(subject []byte) bool {
	var room [8]V
	return len(s.Match(subject, room[:0])) > 0
}

func (at *level[V]) child(token string) *level[V] {
	switch token {
	case "*":
		return at.star
	case ">":
		return at.tail
	default:
		return at.literals[token]
	}
}

// grow returns the child for the token and makes it when it is missing.
func (at *level[V]) grow(token string) *level[V] {
	if child := at.child(token); child != nil {
		return child
	}
	// The token is cloned so that a long pattern is not kept alive by one of its tokens.
	child := &level[V]{parent: at, token: string([]byte(token))}
	switch token {
	case "*":
		at.star = child
	case ">":
		at.tail = child
	default:
		if at.literals == nil {
			at.literals = make(map[string]*level[V])
		}
		at.literals[child.token] = child
	}
	return child
}

// drop removes the first occurrence of the value.
func (at *level[V]) drop(value V) bool {
	for i, v := range at.values {
		if v == value {
			last := len(at.values) - 1
			copy(at.values[i:], at.values[i+1:])
			clear(at.values[last:])
			at.values = at.values[:last]
			return true
		}
	}
	return false
}

// prune removes the level and its ancestors as long as they are empty.
func (at *level[V]) prune() {
	for at.parent != nil && len(at.values) == 0 && len(at.literals) == 0 && at.star == nil && at.tail == nil {
		parent := at.parent
		switch at.token {
		case "*":
			parent.star = nil
		case ">":
			parent.tail = nil
		default:
			delete(parent.literals, at.token)
		}
		at = parent
	}
}
