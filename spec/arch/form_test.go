package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// The sizes beyond which a reader loses the thread.
const (
	fileLinesMax     = 500
	testLinesMax     = 800
	functionLinesMax = 70
	parametersMax    = 4
)

// unfinished matches words of a comment that admit that the code is not done.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b|\b(?i:for now|placeholder|not implemented|unimplemented)\b`)

func checkSizes(r *report, s *source) {
	limit := fileLinesMax
	if s.test {
		limit = testLinesMax
	}
	if s.lines > limit && !ast.IsGenerated(s.file) {
		r.add(s, s.file.Package, "file-size", fmt.Sprintf("%d lines, %d are allowed; split off a concept", s.lines, limit))
	}
	if s.test {
		return
	}
	for _, decl := range s.file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := s.line(fn.End()) - s.line(fn.Pos()) + 1; n > functionLinesMax {
			r.add(s, fn.Pos(), "function-size", fmt.Sprintf("%s has %d lines, %d are allowed; give a part of it a name",
				fn.Name.Name, n, functionLinesMax))
		}
		if n := fn.Type.Params.NumFields(); n > parametersMax {
			r.add(s, fn.Pos(), "parameters", fmt.Sprintf("%s has %d parameters, %d are allowed; make them a struct",
				fn.Name.Name, n, parametersMax))
		}
	}
}

func checkWords(r *report, s *source) {
	for _, group := range s.file.Comments {
		for _, comment := range group.List {
			if word := unfinished.FindString(comment.Text); word != "" {
				r.add(s, comment.Pos(), "unfinished", fmt.Sprintf("%q in a comment; finish it, or answer with the proper error", word))
			}
		}
	}
}

// testTimers are the functions that make a test wait for the real clock.
var testTimers = map[string]bool{"Sleep": true, "After": true, "Tick": true, "NewTimer": true, "NewTicker": true}

// checkTestTime refuses tests that wait. Tests of the edges and of the command may.
func checkTestTime(r *report, s *source) {
	if isEdge(s.dir) {
		return
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if from, ok := selector.X.(*ast.Ident); ok && from.Name == "time" && testTimers[selector.Sel.Name] {
			r.add(s, n.Pos(), "test-time", "time."+selector.Sel.Name+" in a test; drive the code with virtual time")
		}
		return true
	})
}

func checkDocs(r *report, s *source) {
	if s.file.Name.Name == "main" {
		return
	}
	for _, decl := range s.file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.IsExported() && decl.Doc == nil && exportedReceiver(decl) {
				undocumented(r, s, decl.Pos(), decl.Name.Name)
			}
		case *ast.GenDecl:
			if decl.Tok != token.IMPORT {
				checkSpecs(r, s, decl)
			}
		}
	}
}

// checkSpecs accepts for constants and variables a comment above the group, above the name or beside it.
func checkSpecs(r *report, s *source, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && spec.Doc == nil && (decl.Doc == nil || decl.Lparen.IsValid()) {
				undocumented(r, s, spec.Pos(), spec.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() && spec.Doc == nil && spec.Comment == nil && decl.Doc == nil {
					undocumented(r, s, name.Pos(), name.Name)
				}
			}
		}
	}
}

func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return true
	}
	kind := fn.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	switch index := kind.(type) {
	case *ast.IndexExpr:
		kind = index.X
	case *ast.IndexListExpr:
		kind = index.X
	}
	name, ok := kind.(*ast.Ident)
	return ok && name.IsExported()
}

func undocumented(r *report, s *source, pos token.Pos, name string) {
	r.add(s, pos, "doc", name+" is exported and has no comment; state its contract, units, errors and who owns its slices")
}

// checkPackageDocs asks of each package for one comment that starts in the usual way.
func checkPackageDocs(r *report, m *module) {
	documented := map[string]bool{}
	var first []*source
	seen := map[string]bool{}
	for _, s := range m.sources {
		if s.test {
			continue
		}
		if !seen[s.dir] {
			seen[s.dir] = true
			first = append(first, s)
		}
		if s.file.Doc == nil {
			continue
		}
		start := "Package " + s.file.Name.Name + " "
		if s.file.Name.Name == "main" {
			start = "Command "
		}
		if strings.HasPrefix(s.file.Doc.Text(), start) {
			documented[s.dir] = true
		}
	}
	for _, s := range first {
		if !documented[s.dir] {
			r.add(s, s.file.Package, "doc", "package "+s.file.Name.Name+" has no comment; say what it promises and what it does not do")
		}
	}
}
