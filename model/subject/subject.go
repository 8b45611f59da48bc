// Package subject validates, matches and indexes NATS subjects.
//
// A subject is a sequence of tokens separated by '.'. In a pattern the token "*" stands for exactly one token and a
// last token ">" for one or more. A '*' or '>' inside a longer token is an ordinary byte. A literal has no wildcard
// token. Publishers may use any bytes, so a published subject can hold "*" and ">" as tokens; there they match only
// wildcards.
//
// The package promises: matching allocates nothing, all results come in an order that depends on the operations alone,
// and no function keeps the bytes it was given. It knows nothing of accounts, queue groups or permissions.
package subject

// Text is a subject as a string or as bytes.
type Text interface{ ~string | ~[]byte }

const (
	separator = '.'
	anyToken  = '*'
	anyTail   = '>'
)

// Valid reports whether s is a subject that may be subscribed to or configured: not empty, no empty token, no space,
// tab, line feed, form feed or carriage return, and ">" as a token only at the end.
func Valid[T Text](s T) bool {
	if len(s) == 0 {
		return false
	}
	sawTail := false
	for lo := 0; lo <= len(s); {
		hi := TokenEnd(s, lo)
		if hi == lo || sawTail {
			return false
		}
		for i := lo; i < hi; i++ {
			if isBlank(s[i]) {
				return false
			}
		}
		sawTail = isToken(s, lo, hi, anyTail)
		lo = hi + 1
	}
	return true
}

// ValidLiteral reports whether s is Valid and has no wildcard token.
func ValidLiteral[T Text](s T) bool { return Valid(s) && !HasWildcard(s) }

// HasWildcard reports whether a token of s is "*" or ">".
func HasWildcard[T Text](s T) bool {
	for lo := 0; lo <= len(s); {
		hi := TokenEnd(s, lo)
		if hi == lo+1 && (s[lo] == anyToken || s[lo] == anyTail) {
			return true
		}
		lo = hi + 1
	}
	return false
}

// TokenEnd returns the end of the token of s that starts at lo, so that s[lo:TokenEnd(s, lo)] is the token and the next
// one starts one byte later. A loop over all tokens is
//
//	for lo := 0; lo <= len(s); { hi := TokenEnd(s, lo); ...; lo = hi + 1 }
func TokenEnd[T Text](s T, lo int) int {
	for lo < len(s) && s[lo] != separator {
		lo++
	}
	return lo
}

// TokenCount returns the number of tokens of s, 0 for an empty s.
func TokenCount[T Text](s T) int {
	if len(s) == 0 {
		return 0
	}
	count := 1
	for i := 0; i < len(s); i++ {
		if s[i] == separator {
			count++
		}
	}
	return count
}

// Token returns the token of s with the given index (from 0), an empty one when s has fewer.
func Token[T Text](s T, index int) T {
	for lo := 0; lo <= len(s); {
		hi := TokenEnd(s, lo)
		if index == 0 {
			return s[lo:hi]
		}
		index--
		lo = hi + 1
	}
	return s[len(s):]
}

// Matches reports whether the literal (a published subject) matches the pattern. A literal with an empty token matches
// nothing. The pattern has to be Valid.
func Matches[L, P Text](literal L, pattern P) bool {
	if len(literal) == 0 {
		return false
	}
	l, p := 0, 0
	for l <= len(literal) && p <= len(pattern) {
		lEnd, pEnd := TokenEnd(literal, l), TokenEnd(pattern, p)
		if lEnd == l {
			return false
		}
		if isToken(pattern, p, pEnd, anyTail) && pEnd == len(pattern) {
			return !hasEmptyToken(literal, l)
		}
		wild := isToken(pattern, p, pEnd, anyToken)
		if !wild && string(literal[l:lEnd]) != string(pattern[p:pEnd]) {
			return false
		}
		l, p = lEnd+1, pEnd+1
	}
	return l > len(literal) && p > len(pattern)
}

// Overlaps reports whether some literal matches both patterns.
func Overlaps[A, B Text](a A, b B) bool {
	i, j := 0, 0
	for i <= len(a) && j <= len(b) {
		iEnd, jEnd := TokenEnd(a, i), TokenEnd(b, j)
		if isToken(a, i, iEnd, anyTail) || isToken(b, j, jEnd, anyTail) {
			return true
		}
		wild := isToken(a, i, iEnd, anyToken) || isToken(b, j, jEnd, anyToken)
		if !wild && string(a[i:iEnd]) != string(b[j:jEnd]) {
			return false
		}
		i, j = iEnd+1, jEnd+1
	}
	return i > len(a) && j > len(b)
}

// Subset reports whether every literal that matches a also matches b.
func Subset[A, B Text](a A, b B) bool {
	i, j := 0, 0
	for i <= len(a) && j <= len(b) {
		iEnd, jEnd := TokenEnd(a, i), TokenEnd(b, j)
		if isToken(b, j, jEnd, anyTail) {
			return true
		}
		if isToken(a, i, iEnd, anyTail) {
			return false
		}
		wild := isToken(b, j, jEnd, anyToken)
		if !wild && string(a[i:iEnd]) != string(b[j:jEnd]) {
			return false
		}
		i, j = iEnd+1, jEnd+1
	}
	return i > len(a) && j > len(b)
}

// LiteralPrefix returns the length of the longest prefix that every literal matching the pattern has: up to its first
// wildcard token, the separator before that included.
func LiteralPrefix[T Text](pattern T) int {
	for lo := 0; lo <= len(pattern); {
		hi := TokenEnd(pattern, lo)
		if isToken(pattern, lo, hi, anyToken) || isToken(pattern, lo, hi, anyTail) {
			return lo
		}
		lo = hi + 1
	}
	return len(pattern)
}

// isToken reports whether the token s[lo:hi] is exactly the byte.
func isToken[T Text](s T, lo, hi int, b byte) bool { return hi == lo+1 && s[lo] == b }

func hasEmptyToken[T Text](s T, lo int) bool {
	for lo <= len(s) {
		hi := TokenEnd(s, lo)
		if hi == lo {
			return true
		}
		lo = hi + 1
	}
	return false
}

func isBlank(b byte) bool {
	return b == ' ' || b == '\t' || b == '\n' || b == '\f' || b == '\r'
}
