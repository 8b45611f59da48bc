// Package simdriver is the command "weir sim": it spreads seeds over processors and reports what failed.
//
// The runs themselves are pure functions of their plans (package sim); goroutines and files are here. The package
// promises the output that scripts rely on: the last line of a sweep is "COUNT passed, N failed", that of a sweep with a
// planted fault "caught by seed S" or "not caught".
package simdriver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/sim"
	"weir/sim/plan"
	"weir/sim/report"
	"weir/sim/shrink"
	"weir/sim/world"
)

// Options are the flags of the command.
type Options struct {
	// Nodes is the number of servers of the cluster; 0 is what suits: three for planted faults of clusters, else one.
	Nodes int
	// Seeds is how many seeds to run, From the first of them.
	Seeds, From uint64
	// Procs is how many run at a time; 0 means one.
	Procs int
	// Profile makes every seed use one profile; "" is all.
	Profile string
	// Plant names a planted fault, "" is none.
	Plant string
	// Swarm says whether half of the seeds draw their kinds of faults and operations.
	Swarm bool
	// Replay is a seed or the file of a plan to run alone, with its trace.
	Replay string
	// Trace and HTML are files that a replay writes: its records as lines of JSON, and its timeline.
	Trace, HTML string
	// Hash prints the hash of every seed, Twice runs every seed twice and compares.
	Hash, Twice bool
	// ListPlants prints the names of the planted faults.
	ListPlants bool
	// Panic lets a panic of the node end the process with its stack.
	Panic bool
	// Dir is where a failing plan and its pictures are written; "" means a directory for temporary files.
	Dir string
}

// ShrinkRuns bounds the runs that making a failing plan smaller may take.
const ShrinkRuns = 600

// progressEvery is how often a sweep says how far it is.
const progressEvery = 5 * time.Second

// Main runs the command and returns its exit code.
func Main(o Options, stdout io.Writer) int {
	if o.Nodes == 0 {
		o.Nodes = world.PlantNodes(o.Plant)
	}
	switch {
	case o.ListPlants:
		for _, p := range world.Plants() {
			fmt.Fprintln(stdout, p.Name)
		}
		return 0
	case o.Nodes < 0 || o.Nodes > plan.NodesMax:
		fmt.Fprintf(stdout, "weir sim: --nodes %d, want 1 to %d\n", o.Nodes, plan.NodesMax)
		return 2
	case o.Plant != "" && !world.IsPlant(o.Plant):
		fmt.Fprintf(stdout, "weir sim: there is no planted fault %q; --list-plants names them\n", o.Plant)
		return 2
	case o.Profile != "" && !slices.Contains(plan.Profiles(o.Nodes), o.Profile):
		fmt.Fprintf(stdout, "weir sim: there is no profile %q for %d nodes, there are %s\n", o.Profile, o.Nodes,
			strings.Join(plan.Profiles(o.Nodes), ", "))
		return 2
	case o.Replay != "":
		return replay(&o, stdout)
	default:
		return sweep(&o, stdout)
	}
}

// outcome is what became of one seed.
type outcome struct {
	seed   uint64
	result *sim.Result
	// differs says that a second run of the seed had another hash.
	differs bool
}

func (r *outcome) failed() bool { return r.differs || r.result.Class() != "" }

// generate is how the options make plans of seeds.
func (o *Options) generate() plan.Options {
	return plan.Options{Plant: o.Plant, Swarm: o.Swarm, Nodes: max(o.Nodes, 1), Profile: o.Profile}
}

// runSeed runs one seed.
func runSeed(o *Options, seed uint64) outcome {
	out := outcome{seed: seed}
	p := plan.Generate(seed, o.generate())
	out.result = sim.Run(p, sim.Options{Crash: o.Panic})
	if o.Twice {
		second := sim.Run(plan.Generate(seed, o.generate()), sim.Options{Crash: o.Panic})
		out.differs = second.Hash != out.result.Hash
	}
	out.result.Seen = nil // A sweep keeps verdicts, not observations.
	return out
}

// spread runs the seeds on several goroutines and gives their outcomes to each in the order of the seeds; each returns
// false to stop.
func spread(o *Options, each func(outcome) bool) {
	var (
		mu      sync.Mutex
		next    uint64
		stopped bool
		done    sync.WaitGroup
	)
	results := make(chan outcome)
	for range max(o.Procs, 1) {
		done.Add(1)
		go func() {
			defer done.Done()
			for {
				mu.Lock()
				i := next
				next++
				end := stopped || i >= o.Seeds
				mu.Unlock()
				if end {
					return
				}
				results <- runSeed(o, o.From+i)
			}
		}()
	}
	go func() {
		done.Wait()
		close(results)
	}()
	waiting := map[uint64]outcome{}
	turn := o.From
	for out := range results {
		waiting[out.seed] = out
		for {
			due, ok := waiting[turn]
			if !ok {
				break
			}
			delete(waiting, turn)
			turn++
			mu.Lock()
			skip := stopped
			mu.Unlock()
			if !skip && !each(due) {
				mu.Lock()
				stopped = true
				mu.Unlock()
			}
		}
	}
}

// sweep runs many seeds.
func sweep(o *Options, stdout io.Writer) int {
	var passed, failed, events uint64
	var first *outcome
	caught := false
	began, said := time.Now(), time.Now()
	spread(o, func(out outcome) bool {
		events += out.result.Events
		if o.Hash {
			fmt.Fprintf(stdout, "%d %016x\n", out.seed, out.result.Hash)
		}
		if !out.failed() {
			passed++
		} else {
			failed++
			if first == nil {
				first = &out
			}
			if o.Plant != "" {
				caught = true
				fmt.Fprintf(stdout, "seed %d: %s\n", out.seed, describe(&out))
				return false
			}
			fmt.Fprintf(stdout, "seed %d failed: %s; replay: %s\n", out.seed, describe(&out), command(o, out.seed))
		}
		if time.Since(said) >= progressEvery {
			said = time.Now()
			fmt.Fprintf(stdout, "%d of %d seeds, %d failed, %d seeds/min\n",
				passed+failed, o.Seeds, failed, int64(passed+failed)*int64(time.Minute)/int64(time.Since(began)))
		}
		return true
	})
	if o.Plant != "" {
		if caught {
			fmt.Fprintf(stdout, "caught by seed %d\n", first.seed)
			return 0
		}
		fmt.Fprintln(stdout, "not caught")
		return 1
	}
	if first != nil && first.result.Class() != "" {
		keep(o, first, stdout)
	}
	fmt.Fprintf(stdout, "%d events in %s\n", events, time.Since(began).Round(time.Millisecond))
	fmt.Fprintf(stdout, "%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return 1
	}
	return 0
}

func describe(out *outcome) string {
	if out.result.Class() == "" {
		return "nondeterminism: two runs have different hashes"
	}
	f := &out.result.Findings[0]
	return fmt.Sprintf("%s at %d.%03ds: %s", f.Class, f.At/1_000_000_000, f.At/1_000_000%1000, f.Detail)
}

// command is the one command that replays a seed.
func command(o *Options, seed uint64) string {
	text := fmt.Sprintf("weir sim --replay %d", seed)
	if o.Plant != "" {
		text += " --plant " + o.Plant
	}
	if o.Nodes > 1 {
		text += fmt.Sprintf(" --nodes %d", o.Nodes)
	}
	if o.Profile != "" {
		text += " --profile " + o.Profile
	}
	if !o.Swarm {
		text += " --swarm off"
	}
	return text
}

// keep makes the first failing plan smaller and writes it down with its pictures.
func keep(o *Options, out *outcome, stdout io.Writer) {
	dir, err := o.Dir, error(nil)
	if dir == "" {
		dir, err = os.MkdirTemp("", "weir-sim-")
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		fmt.Fprintf(stdout, "the failing plan is not kept: %v\n", err)
		return
	}
	class := out.result.Class()
	small, runs := shrink.Shrink(out.result.Plan, class, ShrinkRuns, func(p *plan.Plan) string {
		return sim.Run(p, sim.Options{}).Class()
	})
	result := sim.Run(small, sim.Options{Keep: true})
	base := filepath.Join(dir, fmt.Sprintf("%s-%d", class, out.seed))
	err = errors.Join(
		os.WriteFile(base+".json", small.Encode(), 0o644),
		os.WriteFile(base+".html", report.HTML(result), 0o644),
	)
	for i := range result.Findings {
		if page := result.Findings[i].HTML; page != nil {
			err = errors.Join(err, os.WriteFile(base+"-porcupine.html", page, 0o644))
			break
		}
	}
	if err != nil {
		fmt.Fprintf(stdout, "the failing plan is not kept: %v\n", err)
		return
	}
	fmt.Fprintf(stdout, "seed %d shrunk in %d runs to %d operations and %d faults: weir sim --replay %s.json\n",
		out.seed, runs, len(small.Ops), len(small.Faults), base)
}

// replay runs one plan and shows what happened.
func replay(o *Options, stdout io.Writer) int {
	p, err := load(o)
	if err != nil {
		fmt.Fprintf(stdout, "weir sim: %v\n", err)
		return 2
	}
	result := sim.Run(p, sim.Options{Keep: true, Crash: o.Panic})
	if o.Trace != "" {
		err = writeTrace(o.Trace, result)
	}
	if o.HTML != "" {
		err = errors.Join(err, os.WriteFile(o.HTML, report.HTML(result), 0o644))
	}
	if err != nil {
		fmt.Fprintf(stdout, "weir sim: %v\n", err)
		return 2
	}
	for i := range result.Findings {
		f := &result.Findings[i]
		fmt.Fprintf(stdout, "%s at %d.%09ds: %s\n", f.Class, f.At/1_000_000_000, f.At%1_000_000_000, f.Detail)
	}
	fmt.Fprintf(stdout, "seed %d, %d operations, %d faults, %d events, %d ms of virtual time, hash %016x\n", p.Seed, len(p.Ops),
		len(p.Faults), result.Events, result.VirtualNanos/1_000_000, result.Hash)
	if result.Class() != "" {
		fmt.Fprintln(stdout, "0 passed, 1 failed")
		return 1
	}
	fmt.Fprintln(stdout, "1 passed, 0 failed")
	return 0
}

// load reads the plan of a replay: the argument is a seed or a file.
func load(o *Options) (*plan.Plan, error) {
	if seed, err := strconv.ParseUint(o.Replay, 10, 64); err == nil {
		return plan.Generate(seed, o.generate()), nil
	}
	data, err := os.ReadFile(o.Replay)
	if err != nil {
		return nil, err
	}
	p, err := plan.Decode(data)
	if err == nil && o.Plant != "" {
		p.Plant = o.Plant
	}
	return p, err
}

func writeTrace(name string, result *sim.Result) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = result.Trace.WriteTo(file)
	return errors.Join(err, file.Close())
}
