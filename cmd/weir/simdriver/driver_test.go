package simdriver

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/sim/plan"
)

func run(t *testing.T, o Options) (string, int) {
	t.Helper()
	var out bytes.Buffer
	code := Main(o, &out)
	return out.String(), code
}

func TestSweepEndsWithTheLineThatScriptsReadAndAgreesOnAnyNumberOfProcessors(t *testing.T) {
	o := Options{Nodes: 1, Seeds: 6, From: 3, Procs: 1, Swarm: true, Hash: true, Twice: true}
	one, code := run(t, o)
	if code != 0 || !strings.HasSuffix(one, "\n6 passed, 0 failed\n") {
		t.Fatalf("exit code %d: %s", code, one)
	}
	o.Procs = 3
	three, _ := run(t, o)
	hashes := regexp.MustCompile(`(?m)^\d+ [0-9a-f]{16}$`)
	if a, b := hashes.FindAllString(one, -1), hashes.FindAllString(three, -1); len(a) != 6 || strings.Join(a, "|") != strings.Join(b, "|") {
		t.Fatalf("hashes on one and on three processors:\n%v\n%v", a, b)
	}
}

func TestPlantIsCaught(t *testing.T) {
	out, code := run(t, Options{Seeds: 100, Procs: 2, Plant: "early-expect", Swarm: true})
	if code != 0 || !regexp.MustCompile(`\ncaught by seed \d+\n$`).MatchString(out) {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if out, code := run(t, Options{Seeds: 0, Plant: "early-expect"}); code != 1 || out != "not caught\n" {
		t.Fatalf("exit code %d: %s", code, out)
	}
}

func TestFailingSeedIsNamedKeptAndReplayed(t *testing.T) {
	// A plan that fails comes from a planted fault; the sweep without --plant must report it like any failure.
	dir := t.TempDir()
	file := filepath.Join(dir, "plan.json")
	failing := uint64(0)
	for {
		p := plan.Generate(failing, plan.Options{Plant: "early-expect", Swarm: true})
		if err := os.WriteFile(file, p.Encode(), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, code := run(t, Options{Replay: file}); code == 1 {
			break
		}
		failing++
	}
	trace, page := filepath.Join(dir, "trace.json"), filepath.Join(dir, "page.html")
	out, code := run(t, Options{Replay: file, Trace: trace, HTML: page})
	if code != 1 || !strings.HasSuffix(out, "0 passed, 1 failed\n") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for _, name := range []string{trace, page} {
		if info, err := os.Stat(name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"cluster": {Nodes: 30, Seeds: 1}, "plant": {Plant: "no-such-fault"}, "file": {Replay: "no-such-file.json"},
	} {
		if out, code := run(t, o); code != 2 || out == "" {
			t.Errorf("%s: exit code %d: %s", name, code, out)
		}
	}
}

func TestPlantsAreListedByName(t *testing.T) {
	out, code := run(t, Options{ListPlants: true})
	if code != 0 || len(strings.Fields(out)) < 10 || strings.Count(out, "\n") != len(strings.Fields(out)) {
		t.Fatalf("exit code %d: %s", code, out)
	}
}
