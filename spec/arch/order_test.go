package arch

import (
	"go/ast"
	"go/types"
)

// mapWalks are the functions of package maps that yield in the map's order.
var mapWalks = map[string]bool{"Keys": true, "Values": true, "All": true}

// sorters are the functions of package slices that take such a sequence and fix its order.
var sorters = map[string]bool{"Sorted": true, "SortedFunc": true}

// checkOrder refuses to walk a map, because Go does so in another order each time, unless the order is fixed at once
// by sorting or a comment says why it cannot be seen.
func checkOrder(r *report, s *source) {
	sorted := map[ast.Expr]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if isMap(s.info.TypeOf(n.X)) {
				reportOrder(r, s, n, "range over a map")
			}
		case *ast.CallExpr:
			from, name := callee(s, n)
			if from == "slices" && sorters[name] && len(n.Args) > 0 {
				sorted[n.Args[0]] = true
			}
			if from == "maps" && mapWalks[name] && !sorted[n] {
				reportOrder(r, s, n, "maps."+name)
			}
		}
		return true
	})
}

func reportOrder(r *report, s *source, n ast.Node, what string) {
	if why := s.ordered[s.line(n.Pos())]; why != "" {
		return
	}
	r.add(s, n.Pos(), "map-order", what+"; range over slices.Sorted(maps.Keys(m)), or say `// order-free: why`")
}

func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := t.(*types.TypeParam); ok {
		t = p.Constraint()
		if u, ok := t.Underlying().(*types.Interface); ok && u.NumEmbeddeds() == 1 {
			if union, ok := u.EmbeddedType(0).(*types.Union); ok && union.Len() == 1 {
				t = union.Term(0).Type()
			}
		}
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// callee returns package path and name of the package-level function that a call calls, or "".
func callee(s *source, call *ast.CallExpr) (from, name string) {
	fun := ast.Unparen(call.Fun)
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	used, ok := s.info.Uses[selector.Sel].(*types.Func)
	if !ok || used.Pkg() == nil {
		return "", ""
	}
	return used.Pkg().Path(), used.Name()
}
