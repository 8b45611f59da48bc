package meta

import (
	"weir/model/jsapi"
	"weir/model/subject"
	"weir/spec/assert"
)

// claims are the subjects that the streams of one account capture, as a tree of tokens. No two streams capture the same
// subject, so that every pattern has one owner. Its purpose is that a new stream is not compared with all others.
type claims struct {
	root claim
}

type claim struct {
	below map[string]*claim // by token, wildcards included
	owner uint64            // group of the stream whose pattern ends here, 0: none
}

// add notes that the group captures the pattern.
func (c *claims) add(pattern string, group uint64) {
	at := &c.root
	for lo := 0; lo <= len(pattern); {
		hi := subject.TokenEnd(pattern, lo)
		next := at.below[pattern[lo:hi]]
		if next == nil {
			next = new(claim)
			if at.below == nil {
				at.below = make(map[string]*claim)
			}
			at.below[pattern[lo:hi]] = next
		}
		at, lo = next, hi+1
	}
	assert.True(at.owner == 0 || at.owner == group, "a subject belongs to one stream", at.owner, group)
	at.owner = group
}

// drop takes back what add noted, and the branches that nothing is left of.
func (c *claims) drop(pattern string, group uint64) {
	path := []*claim{&c.root}
	tokens := []string{""}
	for lo := 0; lo <= len(pattern); {
		hi := subject.TokenEnd(pattern, lo)
		next := path[len(path)-1].below[pattern[lo:hi]]
		if next == nil {
			return
		}
		path, tokens = append(path, next), append(tokens, pattern[lo:hi])
		lo = hi + 1
	}
	if last := path[len(path)-1]; last.owner == group {
		last.owner = 0
	}
	for i := len(path) - 1; i > 0 && path[i].owner == 0 && len(path[i].below) == 0; i-- {
		delete(path[i-1].below, tokens[i])
	}
}

// place is a position of a search: what is left of the pattern, and where in the tree.
type place struct {
	at *claim
	lo int // beyond the pattern's length: nothing is left; -1: everything below counts
}

// taken reports whether a subject that the pattern matches belongs to another group than self.
func (c *claims) taken(pattern string, self uint64) bool {
	open := []place{{at: &c.root}}
	for len(open) > 0 {
		p := open[len(open)-1]
		open = open[:len(open)-1]
		if (p.lo < 0 || p.lo > len(pattern)) && p.at.owner != 0 && p.at.owner != self {
			return true
		}
		if p.lo > len(pattern) {
			continue
		}
		token, next := ">", -1
		if p.lo >= 0 {
			next = subject.TokenEnd(pattern, p.lo)
			token = pattern[p.lo:next]
			next++
		}
		if rest := p.at.below[">"]; rest != nil && rest.owner != 0 && rest.owner != self {
			return true
		}
		switch token {
		case ">":
			next = -1
			fallthrough
		case "*":
			for name, below := range p.at.below { // order-free: one find is as good as another
				if name != ">" {
					open = append(open, place{below, next})
				}
			}
		default:
			for _, name := range [...]string{token, "*"} {
				if below := p.at.below[name]; below != nil {
					open = append(open, place{below, next})
				}
			}
		}
	}
	return false
}

// claimsOf returns the claims of the account.
func (m *Machine) claimsOf(account string) *claims {
	c := m.claims[account]
	if c == nil {
		c = new(claims)
		m.claims[account] = c
	}
	return c
}

// checkOverlap refuses subjects that another stream of the account than that of the group captures.
func (m *Machine) checkOverlap(account string, group uint64, config *jsapi.StreamConfig) *jsapi.Error {
	c := m.claimsOf(account)
	for _, pattern := range config.Subjects {
		if c.taken(pattern, group) {
			return jsapi.CodeStreamSubjectOverlap.Err()
		}
	}
	return nil
}
