package meta

import (
	"testing"

	"pgregory.net/rapid"

	"weir/model/subject"
)

func TestClaimsAgreeWithComparingAllPairs(t *testing.T) {
	token := rapid.SampledFrom([]string{"a", "b", "*"})
	pattern := rapid.Custom(func(t *rapid.T) string {
		text := token.Draw(t, "first")
		for range rapid.IntRange(0, 3).Draw(t, "more") {
			text += "." + token.Draw(t, "token")
		}
		if rapid.IntRange(0, 3).Draw(t, "rest") == 0 {
			return text + ".>"
		}
		return text
	})
	rapid.Check(t, func(t *rapid.T) {
		var c claims
		plain := map[string]uint64{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p, group := pattern.Draw(t, "pattern"), rapid.Uint64Range(1, 3).Draw(t, "group")
			want := false
			for other, owner := range plain { // order-free: any overlap is one
				want = want || owner != group && subject.Overlaps(other, p)
			}
			if got := c.taken(p, group); got != want {
				t.Fatalf("%q for group %d beside %v: taken %v, want %v", p, group, plain, got, want)
			}
			switch {
			case plain[p] == group:
				c.drop(p, group)
				delete(plain, p)
			case !want:
				c.add(p, group)
				plain[p] = group
			}
			if c.taken(">", 0) != (len(plain) > 0) {
				t.Fatalf("%d patterns, but > is taken: %v", len(plain), len(plain) == 0)
			}
		}
		for p, group := range plain { // order-free: all of them go
			c.drop(p, group)
		}
		if len(c.root.below) != 0 {
			t.Fatalf("%d branches are left of nothing", len(c.root.below))
		}
	})
}
