package subject

import (
	"bytes"
	"slices"
)

// page is a sorted array of keys with values, packed for memory: what all keys share is stored once, and what is left
// of them lies end to end in one slice.
//
//	prefix "orders.eu."   text "1" "17" "2" ...   ends 1 3 4 ...   values v0 v1 v2 ...
type page[T any] struct {
	prefix []byte
	text   []byte
	// ends holds the end of each key's rest in text.
	ends   []uint32
	values []T
}

func (p *page[T]) len() int { return len(p.values) }

// rest returns the key at i without the prefix.
func (p *page[T]) rest(i int) []byte {
	lo := uint32(0)
	if i > 0 {
		lo = p.ends[i-1]
	}
	return p.text[lo:p.ends[i]]
}

// appendKey appends the key at i to dst.
func (p *page[T]) appendKey(dst []byte, i int) []byte {
	return append(append(dst, p.prefix...), p.rest(i)...)
}

// search returns the position of the key, or where it would have to be.
func (p *page[T]) search(key []byte) (int, bool) {
	if !bytes.HasPrefix(key, p.prefix) {
		if bytes.Compare(key, p.prefix) < 0 {
			return 0, false
		}
		return p.len(), false
	}
	key = key[len(p.prefix):]
	lo, hi := 0, p.len()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if bytes.Compare(p.rest(mid), key) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < p.len() && bytes.Equal(p.rest(lo), key)
}

// insert puts a key that is not there at the position that search gave.
func (p *page[T]) insert(i int, key []byte, value T) {
	if p.len() == 0 {
		p.prefix = bytes.Clone(key)
	}
	if shared := commonPrefix(p.prefix, key); shared < len(p.prefix) {
		p.shorten(shared)
	}
	rest := key[len(p.prefix):]
	at := uint32(0)
	if i > 0 {
		at = p.ends[i-1]
	}
	p.text = slices.Insert(p.text, int(at), rest...)
	p.ends = slices.Insert(p.ends, i, at)
	for k := i; k < len(p.ends); k++ {
		p.ends[k] += uint32(len(rest))
	}
	p.values = slices.Insert(p.values, i, value)
}

// shorten moves the tail of the prefix into the keys.
func (p *page[T]) shorten(keep int) {
	moved := p.prefix[keep:]
	text := make([]byte, 0, len(p.text)+len(moved)*p.len())
	for i := range p.len() {
		rest := p.rest(i)
		text = append(append(text, moved...), rest...)
	}
	for i := range p.ends {
		p.ends[i] += uint32(len(moved) * (i + 1))
	}
	p.text, p.prefix = text, bytes.Clone(p.prefix[:keep])
}

// remove takes out the key at i.
func (p *page[T]) remove(i int) {
	rest := len(p.rest(i))
	hi := int(p.ends[i])
	p.text = slices.Delete(p.text, hi-rest, hi)
	p.ends = slices.Delete(p.ends, i, i+1)
	for k := i; k < len(p.ends); k++ {
		p.ends[k] -= uint32(rest)
	}
	p.values = slices.Delete(p.values, i, i+1)
}

// part returns a page with copies of the entries [lo, hi), packed anew.
func (p *page[T]) part(lo, hi int) page[T] {
	var q page[T]
	q.take(p, lo, hi)
	return q
}

// take replaces the entries of q by copies of p's entries [lo, hi) with the longest shared prefix. lo < hi.
func (q *page[T]) take(p *page[T], lo, hi int) {
	more := commonPrefix(p.rest(lo), p.rest(hi-1))
	prefix := append(bytes.Clone(p.prefix), p.rest(lo)[:more]...)
	size := 0
	for i := lo; i < hi; i++ {
		size += len(p.rest(i)) - more
	}
	text, ends := make([]byte, 0, size), make([]uint32, 0, hi-lo)
	for i := lo; i < hi; i++ {
		text = append(text, p.rest(i)[more:]...)
		ends = append(ends, uint32(len(text)))
	}
	*q = page[T]{prefix: slices.Clip(prefix), text: text, ends: ends, values: slices.Clone(p.values[lo:hi])}
}

// join appends the entries of p, which all come after those of q.
func (q *page[T]) join(p *page[T]) {
	var key []byte
	for i := range p.len() {
		key = p.appendKey(key[:0], i)
		q.insert(q.len(), key, p.values[i])
	}
}

// commonPrefix returns the length of the longest common prefix.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
