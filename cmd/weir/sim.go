package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"weir/cmd/internal/simulate"
)

// simFlags are the flags of `weir sim`.
type simFlags struct {
	nodes       int
	swarm       string
	list        bool
	replay      string
	trace, html string
	simulate.Options
}

func simCommand() *cobra.Command {
	f := &simFlags{}
	c := &cobra.Command{
		Use:   "sim",
		Short: "Simulate the server under faults, from seeds",
		Long: "Runs the server in a simulated world, with virtual time, network and disk, under simulated clients and\n" +
			"faults drawn from a seed, and judges what the clients saw. The last line is \"COUNT passed, 0 failed\" and\n" +
			"the exit code 0; or each failing seed is named with the one command that replays it, and the exit code is 1.\n\n" +
			"With --plant NAME the server carries a deliberate fault: the run ends with \"caught by seed S\" and exit code\n" +
			"0 as soon as a seed fails, or with \"not caught\" and exit code 1.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.run() },
	}
	flags := c.Flags()
	flags.IntVar(&f.nodes, "nodes", 1, "nodes of the cluster; this version simulates one")
	flags.Uint64Var(&f.Seeds, "seeds", 500, "number of seeds")
	flags.Uint64Var(&f.From, "from", 0, "first seed")
	flags.IntVar(&f.Procs, "procs", runtime.NumCPU(), "runs at the same time")
	flags.StringVar(&f.Plant, "plant", "", "deliberate fault of the server; see --list-plants")
	flags.StringVar(&f.swarm, "swarm", "on", "on: half of the seeds draw which kinds of faults they use; off: tuned profiles only")
	flags.BoolVar(&f.Twice, "twice", false, "run every seed twice and compare hashes (default: every twentieth, and each that fails)")
	flags.BoolVar(&f.Hash, "hash", false, "print SEED HASH for each seed")
	flags.BoolVar(&f.list, "list-plants", false, "print the names of the deliberate faults, one a line")
	flags.StringVar(&f.replay, "replay", "", "run one plan again: a file, or a seed")
	flags.StringVar(&f.trace, "trace", "", "with --replay: write all events to this file")
	flags.StringVar(&f.html, "html", "", "with --replay: write a timeline to this file")
	flags.IntVar(&f.ShrinkRuns, "shrink", 300, "runs to spend on a smaller plan for the first failing seed; 0 for none")
	flags.StringVar(&f.ShrinkDir, "shrink-dir", ".", "directory for the smaller plan")
	return c
}

func (f *simFlags) run() error {
	switch {
	case f.list:
		for _, name := range simulate.Plants() {
			fmt.Println(name)
		}
		return nil
	case f.nodes != 1:
		return fmt.Errorf("--nodes %d is not supported: this version simulates one node", f.nodes)
	case f.swarm != "on" && f.swarm != "off":
		return fmt.Errorf("--swarm is on or off, not %q", f.swarm)
	case f.Procs < 1:
		return fmt.Errorf("--procs %d: at least one run has to go on", f.Procs)
	}
	f.Swarm, f.Out, f.Progress = f.swarm == "on", os.Stdout, os.Stderr
	var reached bool
	var err error
	if f.replay != "" {
		reached, err = simulate.Replay(simulate.ReplayOptions{
			What: f.replay, Plant: f.Plant, Swarm: f.Swarm, Trace: f.trace, HTML: f.html, Out: f.Out,
		})
	} else {
		ctx, stop := signal.NotifyContext(rootContext, os.Interrupt, syscall.SIGTERM)
		defer stop()
		reached, err = simulate.Run(ctx, f.Options)
	}
	if err == nil && !reached {
		return exitCode(1)
	}
	return err
}
