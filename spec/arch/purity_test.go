package arch

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// forbiddenImports maps packages that deterministic code must not import to the way out.
var forbiddenImports = map[string]string{
	"os":                      "read and write through disk/vfs, or take the value as an argument",
	"net":                     "bytes arrive as events; sockets belong to transport/tcp",
	"syscall":                 "system calls belong to the edges",
	"log":                     "yield a log output; the edge prints it",
	"context":                 "time and cancellation arrive as events",
	"runtime":                 "nothing may depend on the Go runtime's state",
	"unsafe":                  "write it without unsafe",
	"unique":                  "it depends on the garbage collector",
	"weak":                    "it depends on the garbage collector",
	"sync":                    "the engine is single-threaded; nothing to lock",
	"math/rand":               "randomness arrives as an argument",
	"crypto/rand":             "randomness arrives as an argument",
	"hash/maphash":            "its seed differs per process; use a fixed hash",
	"io/ioutil":               "read and write through disk/vfs",
	"encoding/gob":            "it encodes maps in random order; write an explicit encoder",
	"html/template":           "rendering belongs to cmd",
	"text/template":           "rendering belongs to cmd",
	"testing":                 "belongs to test files",
	"plugin":                  "nothing is loaded at run time",
	"C":                       "no cgo",
	"os/exec":                 "processes belong to cmd",
	"path/filepath":           "use path: names inside a vfs.FS have slashes",
	"expvar":                  "a global registry; report through node/monitor",
	"net/http":                "HTTP belongs to cmd",
	"log/slog":                "yield a log output; the edge prints it",
	"math/rand/v2":            "randomness arrives as an argument",
	"sync/atomic":             "the engine is single-threaded",
	"runtime/debug":           "nothing may depend on the Go runtime's state",
	"runtime/metrics":         "nothing may depend on the Go runtime's state",
	"github.com/nats-io/nuid": "it draws from a global; take the name from the entropy that arrives with the event",
	"google.golang.org/protobuf/encoding/prototext": "its text differs per build; encode in binary",
	"google.golang.org/protobuf/encoding/protojson": "its text differs per build; encode in binary",
}

// forbiddenNames maps package -> name -> way out.
var forbiddenNames = map[string]map[string]string{
	"time": {
		"Now": clockFix, "Since": clockFix, "Until": clockFix, "Sleep": timerFix, "After": timerFix, "AfterFunc": timerFix,
		"Tick": timerFix, "NewTimer": timerFix, "NewTicker": timerFix, "Timer": timerFix, "Ticker": timerFix,
		"Local": "use time.UTC: the local zone differs per machine",
	},
	"fmt": {
		"Print": printFix, "Printf": printFix, "Println": printFix, "Scan": printFix, "Scanf": printFix, "Scanln": printFix,
	},
}

// forbiddenMethods are methods whose result differs from run to run, by package path of the receiver.
var forbiddenMethods = map[string][]string{
	"reflect": {"MapRange", "MapKeys"},
}

const (
	clockFix = "time is an argument: int64 unix nanoseconds"
	timerFix = "say when through Deadline(), the loop comes back then"
	printFix = "yield a log output; the edge prints it"
	noConc   = "deterministic code has one flow of control: make it an event or a function call"
)

// checkPurity refuses what makes two runs of one seed differ.
func checkPurity(r *report, s *source) {
	for _, spec := range s.file.Imports {
		target, _ := strconv.Unquote(spec.Path.Value)
		if fix, bad := forbiddenImports[target]; bad {
			r.add(s, spec.Pos(), "forbidden-import", target+" outside the edges; "+fix)
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		checkConcurrency(r, s, n)
		checkNames(r, s, n)
		checkFloats(r, s, n)
		return true
	})
}

func checkConcurrency(r *report, s *source, n ast.Node) {
	switch n := n.(type) {
	case *ast.GoStmt:
		r.add(s, n.Pos(), "concurrency", "go statement outside the edges; "+noConc)
	case *ast.SelectStmt:
		r.add(s, n.Pos(), "concurrency", "select outside the edges; "+noConc)
	case *ast.SendStmt:
		r.add(s, n.Pos(), "concurrency", "channel send outside the edges; "+noConc)
	case *ast.ChanType:
		r.add(s, n.Pos(), "concurrency", "channel type outside the edges; "+noConc)
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			r.add(s, n.Pos(), "concurrency", "channel receive outside the edges; "+noConc)
		}
	}
}

func checkNames(r *report, s *source, n ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		name, ok := n.Fun.(*ast.Ident)
		if !ok {
			return
		}
		if _, builtin := s.info.Uses[name].(*types.Builtin); builtin && strings.HasPrefix(name.Name, "print") {
			r.add(s, n.Pos(), "forbidden-name", name.Name+" outside the edges; "+printFix)
		}
	case *ast.SelectorExpr:
		used := s.info.Uses[n.Sel]
		if used == nil || used.Pkg() == nil {
			return
		}
		from := used.Pkg().Path()
		_, selected := s.info.Selections[n]
		if fix, bad := forbiddenNames[from][n.Sel.Name]; bad && !selected {
			r.add(s, n.Pos(), "forbidden-name", from+"."+n.Sel.Name+" outside the edges; "+fix)
		}
		if selected && slices.Contains(forbiddenMethods[from], n.Sel.Name) {
			r.add(s, n.Pos(), "forbidden-name", from+" "+n.Sel.Name+" yields a random order; sort the keys")
		}
	}
}

// checkFloats refuses float arithmetic: fused multiply-add gives other results on other processors.
func checkFloats(r *report, s *source, n ast.Node) {
	var operand ast.Expr
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.ADD || n.Op == token.SUB || n.Op == token.MUL || n.Op == token.QUO {
			operand = n
		}
	case *ast.AssignStmt:
		if n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN || n.Tok == token.MUL_ASSIGN || n.Tok == token.QUO_ASSIGN {
			operand = n.Lhs[0]
		}
	}
	if operand == nil {
		return
	}
	kind := s.info.Types[operand]
	if kind.Type == nil || kind.Value != nil && kind.Value.Kind() != constant.Unknown {
		return
	}
	if basic, ok := kind.Type.Underlying().(*types.Basic); ok && basic.Info()&types.IsFloat != 0 {
		r.add(s, operand.Pos(), "float", "float arithmetic outside the edges; use integers with a unit")
	}
}
