package arch

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// excuseBudget is how many lines of the whole module may carry a det:ok comment.
const excuseBudget = 20

// brokenShown is how many errors of loading are worth reading.
const brokenShown = 5

var rewrite = flag.Bool("rewrite", false, "rewrite the golden file from the present findings")

func TestArchitecture(t *testing.T) {
	m := load(t, filepath.Join("..", ".."))
	for _, text := range m.broken[:min(len(m.broken), brokenShown)] {
		t.Errorf("does not load: %s", text)
	}
	for _, f := range check(m) {
		t.Error(f)
	}
}

// TestEveryRuleFindsItsBreach runs the rules over a module in which each of them is broken, and compares what they say
// with the golden file, so a rule that stops finding fails here.
func TestEveryRuleFindsItsBreach(t *testing.T) {
	m := load(t, filepath.Join("testdata", "breaches"))
	if len(m.broken) > 0 {
		t.Fatalf("the module of breaches does not load: %s", strings.Join(m.broken, "\n"))
	}
	var got strings.Builder
	for _, f := range check(m) {
		fmt.Fprintln(&got, f)
	}
	golden := filepath.Join("testdata", "breaches.golden")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("findings differ from %s; got:\n%s", golden, got.String())
	}
	for _, rule := range ruleNames {
		if !strings.Contains(got.String(), ": "+rule+": ") {
			t.Errorf("rule %q has no breach in testdata", rule)
		}
	}
}

func TestExcusesHaveABudget(t *testing.T) {
	for _, excess := range []int{0, 1} {
		text := "package x\n" + strings.Repeat("var _ = 1 //det:ok reason\n", excuseBudget+excess)
		s := parse(t, text)
		for line := range s.lines {
			s.hits[line+1] = true
		}
		r := &report{}
		checkExcuses(r, &module{sources: []*source{s}})
		if len(r.findings) != excess {
			t.Errorf("%d excuses over the budget of %d gave %v", excess, excuseBudget, r.findings)
		}
	}
}

func TestSizesAreJudgedAtTheLimit(t *testing.T) {
	for _, excess := range []int{0, 1} {
		long := parse(t, "package x\n"+strings.Repeat("\n", fileLinesMax-2+excess)+"// End.\n")
		body := parse(t, "package x\nfunc f() {\n"+strings.Repeat("\n", functionLinesMax-2+excess)+"}\n")
		for _, s := range []*source{long, body} {
			r := &report{}
			checkSizes(r, s)
			if len(r.findings) != excess {
				t.Errorf("%d lines over the limit gave %v", excess, r.findings)
			}
		}
	}
}

// parse makes a source without types out of text.
func parse(t *testing.T, text string) *source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	s := &source{name: "model/x/x.go", dir: "model/x", file: file, fset: fset}
	s.scan(text)
	return s
}

// ruleNames is every rule that check can report.
var ruleNames = []string{
	"layer", "dependency", "package-name", "forbidden-import", "forbidden-name", "concurrency", "map-order", "float",
	"test-time", "file-size", "function-size", "parameters", "doc", "unfinished", "excuse",
}

// check runs all rules and returns the findings in the order of files and lines.
func check(m *module) []finding {
	r := &report{}
	for _, s := range m.sources {
		checkLayers(r, m, s)
		checkSizes(r, s)
		checkWords(r, s)
		if s.test {
			checkTestTime(r, s)
			continue
		}
		if !isEdge(s.dir) {
			checkPurity(r, s)
			checkOrder(r, s)
		}
		checkDocs(r, s)
	}
	checkPackageDocs(r, m)
	checkExcuses(r, m)
	slices.SortStableFunc(r.findings, func(a, b finding) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return a.line - b.line
	})
	return r.findings
}

// checkExcuses refuses excuses without a reason, excuses that excuse nothing, and too many of them.
func checkExcuses(r *report, m *module) {
	count := 0
	var last finding
	for _, s := range m.sources {
		for line, reason := range s.excused {
			f := finding{name: s.name, line: line, rule: "excuse"}
			switch {
			case reason == "":
				f.text = "det:ok without a reason; say why the line is harmless"
				r.findings = append(r.findings, f)
			case !s.hits[line]:
				f.text = "det:ok on a line that breaks no rule; take the comment out"
				r.findings = append(r.findings, f)
			default:
				count++
				if f.name > last.name || f.name == last.name && f.line > last.line {
					last = f
				}
			}
		}
	}
	if count > excuseBudget {
		last.text = fmt.Sprintf("%d lines are excused, %d are allowed; make one of them unnecessary", count, excuseBudget)
		r.findings = append(r.findings, last)
	}
}
