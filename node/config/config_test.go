package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/nats-io/nats-server/v2/conf"
)

// TestFiles reads the configurations under testdata and prints what differs from the defaults, or what is wrong.
func TestFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	datadriven.Walk(t, testdata, func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "config" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			if err := os.WriteFile("a.conf", []byte(d.Input), 0o600); err != nil {
				t.Fatal(err)
			}
			tree, err := conf.ParseFileWithChecks("a.conf")
			if err != nil {
				return "grammar: " + err.Error() + "\n"
			}
			return describe(tree)
		})
	})
}

var testdata = func() string {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return dir
}()

func describe(tree map[string]any) string {
	var out strings.Builder
	c := Default()
	warnings, err := c.Apply(tree)
	if err == nil {
		c.Complete()
		err = c.Check()
	}
	for _, w := range warnings {
		fmt.Fprintf(&out, "warning: %v\n", w)
	}
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(&out, "error: %s\n", line)
		}
		return out.String()
	}
	standard := Default()
	standard.Complete()
	before := flatten(standard)
	for _, line := range flatten(c) {
		if !slices.Contains(before, line) {
			fmt.Fprintln(&out, line)
		}
	}
	return out.String()
}

// flatten returns a line of the form path=value for each leaf of a configuration.
func flatten(c Config) []string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	var tree any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		panic(err)
	}
	var lines []string
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch node := node.(type) {
		case map[string]any:
			for key, child := range node {
				walk(path+"."+key, child)
			}
		case []any:
			if len(node) == 0 {
				lines = append(lines, path[1:]+"=[]")
			}
			for i, child := range node {
				walk(fmt.Sprintf("%s[%d]", path, i), child)
			}
		case nil:
		default:
			lines = append(lines, fmt.Sprintf("%s=%v", path[1:], node))
		}
	}
	walk("", tree)
	slices.Sort(lines)
	return lines
}

// TestDefaultsAgree holds the defaults to their own rules.
func TestDefaultsAgree(t *testing.T) {
	c := Default()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
}

// FuzzApply feeds arbitrary trees: whatever the grammar accepts is taken or refused, never a panic.
func FuzzApply(f *testing.F) {
	f.Add("port: 4222\njetstream { max_mem: 1G }")
	f.Add("authorization { users: [ {user: a, permissions: {publish: {allow: a.>}}} ] }")
	f.Add("accounts { A { users [ {user: x} ], jetstream { max_mem: \"1G\" } } }")
	f.Add("listen: \"[::1]:4\"\nping_interval: 3\nlimits: []")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(strings.ToLower(text), "include") {
			return // would read files
		}
		tree, err := conf.ParseWithChecks(text)
		if err != nil {
			return
		}
		c := Default()
		if _, err := c.Apply(tree); err == nil {
			_ = c.Check()
		}
	})
}
