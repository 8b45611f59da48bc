package subject

import (
	"math/rand"
	"strings"
	"testing"
)

func TestValidity(t *testing.T) {
	cases := []struct {
		subject        string
		valid, literal bool
	}{
		{"a", true, true}, {"a.b.c", true, true}, {"*", true, false}, {">", true, false}, {"a.*.>", true, false},
		{"a.*b.c>", true, true}, {"ü.=-_$", true, true}, {"a.>.b", false, false}, {"", false, false}, {".", false, false},
		{"a.", false, false}, {".a", false, false}, {"a..b", false, false}, {"a b", false, false}, {"a\tb", false, false},
		{"a\nb", false, false}, {"a\fb", false, false}, {"a\rb", false, false}, {">.", false, false}, {">.>", false, false},
		{"*.*", true, false}, {"a.**", true, true},
	}
	for _, c := range cases {
		if Valid(c.subject) != c.valid || Valid([]byte(c.subject)) != c.valid {
			t.Errorf("Valid(%q) != %v", c.subject, c.valid)
		}
		if ValidLiteral(c.subject) != c.literal {
			t.Errorf("ValidLiteral(%q) != %v", c.subject, c.literal)
		}
	}
}

func TestTokens(t *testing.T) {
	if TokenCount("") != 0 || TokenCount("a") != 1 || TokenCount("a.b.c") != 3 {
		t.Error("TokenCount")
	}
	for i, want := range []string{"a", "bb", "", ""} {
		if got := Token("a.bb.", i); got != want {
			t.Errorf("Token %d = %q", i, got)
		}
	}
	for pattern, want := range map[string]string{"a.b": "a.b", "a.*.c": "a.", "a.>": "a.", ">": "", "*": "", "a.b*.*": "a.b*."} {
		if got := pattern[:LiteralPrefix(pattern)]; got != want {
			t.Errorf("LiteralPrefix(%q) = %q", pattern, got)
		}
	}
}

// naiveMatches splits and compares, with a published subject's wildcards taken as ordinary tokens.
func naiveMatches(literal, pattern string) bool {
	ls, ps := strings.Split(literal, "."), strings.Split(pattern, ".")
	for _, l := range ls {
		if l == "" {
			return false
		}
	}
	for i, p := range ps {
		if p == ">" && i == len(ps)-1 {
			return len(ls) > i
		}
		if i >= len(ls) || (p != "*" && p != ls[i]) {
			return false
		}
	}
	return len(ls) == len(ps)
}

// literals returns all subjects of up to depth tokens over a small alphabet.
func literals(depth int, tokens ...string) []string {
	var all []string
	layer := []string{""}
	for range depth {
		var next []string
		for _, prefix := range layer {
			for _, token := range tokens {
				next = append(next, strings.TrimPrefix(prefix+"."+token, "."))
			}
		}
		all, layer = append(all, next...), next
	}
	return all
}

func TestMatchesOverlapsAndSubsetAgreeWithEnumeration(t *testing.T) {
	// Each pattern has at most 3 tokens over {a, b}; a third token value and a fourth position witness the rest.
	universe := literals(4, "a", "b", "c")
	var patterns []string
	for _, p := range literals(3, "a", "b", "*", ">") {
		if Valid(p) {
			patterns = append(patterns, p)
		}
	}
	for _, a := range patterns {
		for _, b := range patterns {
			overlaps, subset := false, true
			for _, l := range universe {
				inA, inB := naiveMatches(l, a), naiveMatches(l, b)
				overlaps = overlaps || (inA && inB)
				subset = subset && (!inA || inB)
			}
			if Overlaps(a, []byte(b)) != overlaps {
				t.Fatalf("Overlaps(%q, %q) != %v", a, b, overlaps)
			}
			if Subset([]byte(a), b) != subset {
				t.Fatalf("Subset(%q, %q) != %v", a, b, subset)
			}
		}
		for _, l := range append(literals(3, "a", "*", ">"), "", "a.", ".a", "a..b", "a.b.") {
			if Matches([]byte(l), a) != naiveMatches(l, a) {
				t.Fatalf("Matches(%q, %q) != %v", l, a, naiveMatches(l, a))
			}
		}
	}
}

// randomSubject draws from few short tokens, so that subjects share prefixes and collide often.
func randomSubject(r *rand.Rand, tokens []string) string {
	n := 1 + r.Intn(4)
	picked := make([]string, n)
	for i := range picked {
		picked[i] = tokens[r.Intn(len(tokens))]
	}
	return strings.Join(picked, ".")
}
