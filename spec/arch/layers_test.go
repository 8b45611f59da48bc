package arch

import (
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// layers says what each top-level directory may import from this module, besides itself and spec/assert.
var layers = map[string][]string{
	"model":           {},
	"disk":            {},
	"transport":       {},
	"node":            {"model", "disk", "transport"},
	"spec":            {"model", "disk", "transport", "node"},
	"linearizability": {"model", "disk", "transport", "node", "spec"},
	"sim":             {"model", "disk", "transport", "node", "spec", "linearizability"},
	"cmd":             {"model", "disk", "transport", "node", "spec", "linearizability", "sim"},
}

// edges are the packages that touch the real world. Only they, their own tests and cmd may import them.
var edges = []string{"disk/osfs", "transport/tcp", "node/host"}

// vagueNames are package names that name no concept.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "types", "base", "shared"}

// dependencies are the foreign packages that code which is neither an edge nor a checker may import: what the product
// stands on. A trailing slash admits everything below.
var dependencies = []string{
	"go.etcd.io/raft/v3", "go.etcd.io/raft/v3/", "google.golang.org/protobuf/",
	"github.com/nats-io/nkeys", "github.com/nats-io/jwt/v2", "golang.org/x/crypto/",
	"github.com/klauspost/compress/s2",
}

// pureTops are the top-level directories whose code runs in the server below the edges.
var pureTops = []string{"model", "disk", "transport", "node"}

func isEdge(dir string) bool {
	return slices.Contains(edges, dir) || dir == "cmd" || strings.HasPrefix(dir, "cmd/")
}

func top(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	return first
}

func checkLayers(r *report, m *module, s *source) {
	own := top(s.dir)
	if _, known := layers[own]; !known {
		r.add(s, s.file.Package, "layer", "directory "+strconv.Quote(own)+" is not part of the tree; move the code under model, "+
			"disk, transport, node, spec, linearizability, sim or cmd")
		return
	}
	if slices.Contains(vagueNames, path.Base(s.dir)) {
		r.add(s, s.file.Package, "package-name", path.Base(s.dir)+" names no concept; name the package after what it holds")
	}
	for _, spec := range s.file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if inside, ok := strings.CutPrefix(target, m.path+"/"); ok {
			checkInside(r, s, spec.Pos(), inside)
			continue
		}
		checkDependency(r, s, spec.Pos(), target)
	}
}

// checkInside judges the import of one of our own packages. Tests may also use all of spec, and the edges of disk.
func checkInside(r *report, s *source, pos token.Pos, target string) {
	own, other := top(s.dir), top(target)
	if isEdge(target) && other != "cmd" && s.dir != target && !isEdge(s.dir) && !(s.test && target == "disk/osfs") {
		r.add(s, pos, "layer", s.dir+" imports the edge "+target+"; take the interface instead, node/host or cmd injects the edge")
		return
	}
	if own == other || target == "spec/assert" || s.test && other == "spec" || slices.Contains(layers[own], other) {
		return
	}
	allowed := "nothing else of ours"
	if names := layers[own]; len(names) > 0 {
		allowed = strings.Join(names, ", ")
	}
	r.add(s, pos, "layer", own+" imports "+target+"; "+own+" may import itself, spec/assert and "+allowed+
		": move the code up, or the shared part down")
}

func checkDependency(r *report, s *source, pos token.Pos, target string) {
	if s.test || isEdge(s.dir) || !slices.Contains(pureTops, top(s.dir)) || !strings.Contains(top(target), ".") {
		return
	}
	for _, allowed := range dependencies {
		if target == allowed || strings.HasSuffix(allowed, "/") && strings.HasPrefix(target, allowed) {
			return
		}
	}
	r.add(s, pos, "dependency", target+" is not among the dependencies of the server's core; use it at an edge or not at all")
}
