package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// source is one Go file of the module under test.
type source struct {
	name    string // path below the module root, with slashes
	dir     string // directory of name, "" for the root
	test    bool   // name ends in _test.go
	lines   int
	file    *ast.File
	fset    *token.FileSet
	info    *types.Info    // nil for test files
	excused map[int]string // line -> reason of a det:ok comment
	ordered map[int]string // line -> why the order of a map range does not matter
	hits    map[int]bool   // excused lines that a rule asked about
}

// module is what the rules look at: every file outside testdata, with types for all but the test files.
type module struct {
	path    string // module path, the prefix of its import paths
	sources []*source
	broken  []string // errors of loading and type checking
}

// finding is one breach of a rule.
type finding struct {
	name string
	line int
	rule string
	text string // what was found, and the fix
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.name, f.line, f.rule, f.text)
}

// load reads and type-checks the module rooted at root.
func load(t *testing.T, root string) *module {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	cfg := &packages.Config{
		Dir:  root,
		Fset: fset,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedModule,
	}
	loaded, err := packages.Load(cfg, "./...")
	if err != nil {
		t.Fatalf("load packages: %v", err)
	}
	m := &module{}
	for _, p := range loaded {
		if p.Module != nil {
			m.path = p.Module.Path
		}
		for _, e := range p.Errors {
			m.broken = append(m.broken, e.Error())
		}
		for i, file := range p.Syntax {
			m.add(t, root, p.CompiledGoFiles[i], &source{file: file, fset: fset, info: p.TypesInfo})
		}
	}
	m.addTests(t, root, fset)
	slices.SortFunc(m.sources, func(a, b *source) int { return strings.Compare(a.name, b.name) })
	return m
}

// addTests parses every test file of the module, whatever its build constraints.
func (m *module) addTests(t *testing.T, root string, fset *token.FileSet) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && path != root && (base == "testdata" || strings.HasPrefix(base, ".")) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(base, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			m.broken = append(m.broken, err.Error())
			return nil
		}
		m.add(t, root, path, &source{file: file, fset: fset, test: true})
		return nil
	})
	if err != nil {
		t.Fatalf("walk %s: %v", root, err)
	}
}

func (m *module) add(t *testing.T, root, path string, s *source) {
	t.Helper()
	rel, err := filepath.Rel(root, path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return // generated outside the module, by cgo for example
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	s.name = filepath.ToSlash(rel)
	if i := strings.LastIndex(s.name, "/"); i >= 0 {
		s.dir = s.name[:i]
	}
	s.scan(string(text))
	m.sources = append(m.sources, s)
}

// scan counts the lines and collects the comments that excuse a line. A comment that stands alone speaks for the line
// below it.
func (s *source) scan(text string) {
	s.excused, s.ordered, s.hits = map[int]string{}, map[int]string{}, map[int]bool{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	s.lines = len(lines)
	for _, group := range s.file.Comments {
		for _, comment := range group.List {
			at := s.line(comment.Pos())
			if strings.HasPrefix(strings.TrimSpace(lines[at-1]), "//") {
				at++
			}
			if reason, ok := strings.CutPrefix(comment.Text, "//det:ok"); ok {
				s.excused[at] = strings.TrimSpace(reason)
			}
			if why, ok := strings.CutPrefix(comment.Text, "// order-free:"); ok {
				s.ordered[at] = strings.TrimSpace(why)
			}
		}
	}
}

func (s *source) line(pos token.Pos) int { return s.fset.Position(pos).Line }

// report collects the findings of the rules and leaves out the excused ones.
type report struct {
	findings []finding
}

func (r *report) add(s *source, pos token.Pos, rule, text string) {
	line := s.line(pos)
	if reason, ok := s.excused[line]; ok && reason != "" {
		s.hits[line] = true
		return
	}
	r.findings = append(r.findings, finding{name: s.name, line: line, rule: rule, text: text})
}
