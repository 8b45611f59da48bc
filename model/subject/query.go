package subject

import (
	"bytes"

	"weir/spec/assert"
)

// Ascend visits all subjects >= from in ascending order until visit returns false. A nil from begins at the first.
func (t *Tree[V]) Ascend(from []byte, visit func(subject []byte, v *V) bool) {
	t.QueryFrom([]byte{anyTail}, from, visit)
}

// Query visits the subjects that match the pattern in ascending order until visit returns false. It walks only ranges
// of the tree in which subjects can match: it costs the subjects that share the pattern's literal prefix at worst, and
// skips from one candidate to the next where later tokens of the pattern are literal.
func (t *Tree[V]) Query(pattern []byte, visit func(subject []byte, v *V) bool) {
	t.QueryFrom(pattern, nil, visit)
}

// QueryFrom is Query from the first matching subject >= from on.
func (t *Tree[V]) QueryFrom(pattern, from []byte, visit func(subject []byte, v *V) bool) {
	prefix := pattern[:LiteralPrefix(pattern)]
	if len(prefix) == len(pattern) {
		if v := t.Get(pattern); v != nil && bytes.Compare(pattern, from) >= 0 {
			visit(pattern, v)
		}
		return
	}
	if bytes.Compare(from, prefix) < 0 {
		from = prefix
	}
	var key, target []byte
	leaf, i := t.seek(from)
	for leaf != nil {
		key = leaf.appendKey(key[:0], i)
		if !bytes.HasPrefix(key, prefix) {
			return
		}
		matches, skip := false, false
		matches, skip, target = advance(target[:0], key, pattern)
		if matches && !visit(key, &leaf.values[i]) {
			return
		}
		i++
		if !skip {
			// A single byte more than the key makes the smallest subject after it.
			target = append(append(target[:0], key...), 0)
		} else if i < leaf.len() {
			assert.True(bytes.Compare(target, key) > 0, "a skip goes forward", uint64(i))
			i, _ = leaf.search(target)
		}
		if i >= leaf.len() {
			leaf, i = t.seek(target)
		}
	}
}

// advance reports whether the key matches the pattern. Where it does not, and more keys after it cannot either, skip is
// true and target, appended to dst, is the smallest subject that still can.
func advance(dst, key, pattern []byte) (matches, skip bool, target []byte) {
	k, p := 0, 0
	for k <= len(key) && p <= len(pattern) {
		kEnd, pEnd := TokenEnd(key, k), TokenEnd(pattern, p)
		if isToken(pattern, p, pEnd, anyTail) {
			return true, false, dst
		}
		token := pattern[p:pEnd]
		if !isToken(pattern, p, pEnd, anyToken) && !bytes.Equal(key[k:kEnd], token) {
			skip, target = skipToken(dst, key, k, pattern[p:])
			return false, skip, target
		}
		k, p = kEnd+1, pEnd+1
	}
	if p <= len(pattern) {
		// The key is too short: the ones that continue it come next.
		return false, false, dst
	}
	if k > len(key) {
		return true, false, dst
	}
	// The key is too long, and so is everything else that begins with the tokens matched.
	dst = append(dst, key[:k-1]...)
	return false, true, append(dst, separator+1)
}

// skipToken finds the next candidate when the key's token at k differs from the literal token that the pattern begins
// with: the same leading tokens followed by the literal, or else other leading tokens.
func skipToken(dst, key []byte, k int, pattern []byte) (skip bool, target []byte) {
	token := pattern[:TokenEnd(pattern, 0)]
	target = append(append(dst, key[:k]...), token...)
	if len(token) < len(pattern) {
		target = append(target, separator)
	}
	if bytes.Compare(key, target) < 0 {
		return true, target
	}
	if k == 0 {
		// No leading tokens: nothing after the key can match. The literal prefix of the pattern ends such walks early.
		return false, dst
	}
	target = append(target[:len(dst)], key[:k-1]...)
	return true, append(target, separator+1)
}
