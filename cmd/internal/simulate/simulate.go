// Package simulate runs seeds of the simulator on all processors and tells how it went.
//
// It promises that what it prints on standard output depends on the seeds and options alone: results come in the order of
// the seeds whatever the number of workers. The runs themselves are package sim's.
package simulate

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"weir/sim"
	"weir/sim/plan"
	"weir/sim/report"
	"weir/sim/shrink"
	"weir/sim/world"
)

// Options says what to run.
type Options struct {
	// Seeds is how many, From the first one.
	Seeds, From uint64
	// Procs is how many runs go on at the same time.
	Procs int
	// Plant is the deliberate fault of the node, "" for none.
	Plant string
	// Swarm lets half of the seeds draw which kinds of faults they use.
	Swarm bool
	// Twice runs every seed twice and compares the hashes; otherwise that is done for every twentieth and for each that
	// fails.
	Twice bool
	// Hash prints the hash of each seed.
	Hash bool
	// ShrinkRuns is how many runs may be spent to make the plan of the first failing seed smaller; 0 leaves it.
	ShrinkRuns int
	// ShrinkDir is where the smaller plan is written.
	ShrinkDir string
	// Out receives the results, Progress the course of the run.
	Out, Progress io.Writer
}

// twiceEach is which part of the seeds is run twice.
const twiceEach = 20

// gcPercent lets the garbage collector wait longer: a run is short-lived and leaves much behind.
const gcPercent = 400

// outcome is what is known of a seed.
type outcome struct {
	seed    uint64
	hash    uint64
	profile string
	class   string // "" when it passed
	detail  string
	atNanos int64
}

// Plants returns the names of the deliberate faults.
func Plants() []string {
	var names []string
	for _, p := range world.Plants() {
		names = append(names, p.Name)
	}
	return names
}

// Run runs seeds and reports. It returns whether the options' purpose was reached: all seeds passed or, with a plant, one
// failed.
func Run(ctx context.Context, o Options) (bool, error) {
	if o.Plant != "" && !world.IsPlant(o.Plant) {
		return false, fmt.Errorf("no planted fault is called %q; see --list-plants", o.Plant)
	}
	debug.SetGCPercent(gcPercent)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &course{o: o, begin: time.Now()}
	for result := range inOrder(ctx, o, c.generated) {
		c.take(result)
		if o.Plant != "" && result.class != "" {
			break
		}
	}
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	c.progress()
	return c.end()
}

// course is what has been seen of a run over many seeds.
type course struct {
	o              Options
	begin          time.Time
	shown          time.Time
	passed, failed uint64
	caught         *outcome
}

func (c *course) generated(seed uint64) *plan.Plan {
	return plan.Generate(seed, plan.Options{Plant: c.o.Plant, Swarm: c.o.Swarm})
}

func (c *course) take(r outcome) {
	if c.o.Hash {
		fmt.Fprintf(c.o.Out, "%d %016x\n", r.seed, r.hash)
	}
	if time.Since(c.shown) > time.Second {
		c.shown = time.Now()
		c.progress()
	}
	if r.class == "" {
		c.passed++
		return
	}
	c.failed++
	if c.o.Plant != "" {
		c.caught = &r
		return
	}
	fmt.Fprintf(c.o.Out, "seed %d (%s): %s at %v: %s\n  replay: %s\n", r.seed, r.profile, r.class, time.Duration(r.atNanos), r.detail,
		c.replay(strconv.FormatUint(r.seed, 10)))
	if c.failed == 1 && c.o.ShrinkRuns > 0 && r.class != nondeterministic {
		c.shrink(r)
	}
}

// replay is the one command that runs a seed or plan again.
func (c *course) replay(what string) string {
	text := "weir sim --replay " + what
	if c.o.Plant != "" {
		text += " --plant " + c.o.Plant
	}
	if !c.o.Swarm {
		text += " --swarm off"
	}
	return text
}

func (c *course) progress() {
	done := c.passed + c.failed
	fmt.Fprintf(c.o.Progress, "%d of %d seeds, %d failed, %d a second\n", done, c.o.Seeds, c.failed,
		int(float64(done)/max(time.Since(c.begin).Seconds(), 0.001)))
}

func (c *course) end() (bool, error) {
	if c.o.Plant == "" {
		_, err := fmt.Fprintf(c.o.Out, "%d passed, %d failed\n", c.passed, c.failed)
		return c.failed == 0, err
	}
	if c.caught == nil {
		_, err := fmt.Fprintln(c.o.Out, "not caught")
		return false, err
	}
	fmt.Fprintf(c.o.Progress, "%s: %s\n", c.caught.class, c.caught.detail)
	_, err := fmt.Fprintf(c.o.Out, "caught by seed %d\n", c.caught.seed)
	return true, err
}

// shrink looks for a smaller plan that fails alike, and writes it down.
func (c *course) shrink(r outcome) {
	fmt.Fprintf(c.o.Progress, "making the plan of seed %d smaller\n", r.seed)
	smaller, runs := shrink.Shrink(c.generated(r.seed), r.class, c.o.ShrinkRuns, func(p *plan.Plan) string {
		return sim.Run(p, sim.Options{}).Class()
	})
	file := fmt.Sprintf("%s/%s-%d.json", strings.TrimSuffix(c.o.ShrinkDir, "/"), r.class, r.seed)
	err := os.MkdirAll(c.o.ShrinkDir, 0o755)
	if err == nil {
		err = os.WriteFile(file, smaller.Encode(), 0o644)
	}
	if err != nil {
		fmt.Fprintf(c.o.Progress, "the smaller plan cannot be written: %v\n", err)
		return
	}
	fmt.Fprintf(c.o.Out, "  smaller, after %d runs: %d faults, %d operations; replay: weir sim --replay %s\n", runs, len(smaller.Faults),
		len(smaller.Ops), file)
}

// ReplayOptions says what to run again and what to write about it.
type ReplayOptions struct {
	// What is the name of a plan's file, or a seed.
	What string
	// Plant and Swarm are as in Options; they count for seeds.
	Plant string
	Swarm bool
	// Trace and HTML are files to write, "" for none.
	Trace, HTML string
	// Out receives the result.
	Out io.Writer
}

// Replay runs one plan and returns whether it passed.
func Replay(o ReplayOptions) (bool, error) {
	p, err := find(o)
	if err != nil {
		return false, err
	}
	result := sim.Run(p, sim.Options{Keep: o.Trace != "" || o.HTML != ""})
	fmt.Fprintf(o.Out, "seed %d (%s): %d events in %v, hash %016x\n", p.Seed, p.Profile, result.Events,
		time.Duration(result.VirtualNanos), result.Hash)
	for _, f := range result.Findings {
		fmt.Fprintf(o.Out, "%s at %v: %s\n", f.Class, time.Duration(f.At), f.Detail)
	}
	if o.Trace != "" {
		if err := writeTrace(o.Trace, result); err != nil {
			return false, err
		}
	}
	if o.HTML != "" {
		if err := os.WriteFile(o.HTML, report.HTML(result), 0o644); err != nil {
			return false, err
		}
	}
	if again := sim.Run(p, sim.Options{}); again.Hash != result.Hash {
		return false, fmt.Errorf("the second run has the hash %016x: runs of one plan differ", again.Hash)
	}
	if len(result.Findings) > 0 {
		fmt.Fprintln(o.Out, "0 passed, 1 failed")
		return false, nil
	}
	fmt.Fprintln(o.Out, "1 passed, 0 failed")
	return true, nil
}

func find(o ReplayOptions) (*plan.Plan, error) {
	text, err := os.ReadFile(o.What)
	if err == nil {
		return plan.Decode(text)
	}
	seed, parseErr := strconv.ParseUint(o.What, 10, 64)
	if parseErr != nil {
		return nil, err
	}
	if o.Plant != "" && !world.IsPlant(o.Plant) {
		return nil, fmt.Errorf("no planted fault is called %q; see --list-plants", o.Plant)
	}
	return plan.Generate(seed, plan.Options{Plant: o.Plant, Swarm: o.Swarm}), nil
}

func writeTrace(file string, result *sim.Result) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := result.Trace.WriteTo(f); err != nil {
		return err
	}
	return f.Close()
}
