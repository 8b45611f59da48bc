package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"weir/cmd/weir/simdriver"
)

// simGCPercent lets the garbage collector wait longer: a run is short and leaves much behind.
const simGCPercent = 400

func simCommand() *cobra.Command {
	o := &simdriver.Options{}
	var swarm string
	c := &cobra.Command{
		Use:   "sim",
		Short: "Simulate servers under faults, from seeds",
		Long: "Runs one server or a cluster in a simulated world, with virtual time, network and disk, under simulated clients and\n" +
			"faults drawn from a seed, and judges what the clients saw. The last line is \"COUNT passed, 0 failed\" and\n" +
			"the exit code 0; or each failing seed is named with the one command that replays it, and the exit code is 1.\n\n" +
			"With --plant NAME the server carries a deliberate fault: the run ends with \"caught by seed S\" and exit code\n" +
			"0 as soon as a seed fails, or with \"not caught\" and exit code 1.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if swarm != "on" && swarm != "off" {
				return fmt.Errorf("--swarm is on or off, not %q", swarm)
			}
			o.Swarm = swarm == "on"
			debug.SetGCPercent(simGCPercent)
			runtime.MemProfileRate = 0 // nobody asks for the profile, whose stacks become more and more with the seeds
			if code := simdriver.Main(*o, os.Stdout); code != 0 {
				return exitCode(code)
			}
			return nil
		},
	}
	flags := c.Flags()
	flags.IntVar(&o.Nodes, "nodes", 0, "servers of the cluster (default: 3 for deliberate faults of clusters, else 1)")
	flags.Uint64Var(&o.Seeds, "seeds", 500, "number of seeds")
	flags.Uint64Var(&o.From, "from", 0, "first seed")
	flags.IntVar(&o.Procs, "procs", runtime.NumCPU(), "runs at the same time")
	flags.StringVar(&o.Plant, "plant", "", "deliberate fault of the server; see --list-plants")
	flags.StringVar(&o.Profile, "profile", "", "let every seed use this tuned profile of operations and faults; a wrong name lists them")
	flags.StringVar(&swarm, "swarm", "on", "on: half of the seeds draw which kinds of faults they use; off: tuned profiles only")
	flags.BoolVar(&o.Twice, "twice", false, "run every seed twice and compare the hashes")
	flags.BoolVar(&o.Hash, "hash", false, "print SEED HASH for each seed")
	flags.BoolVar(&o.ListPlants, "list-plants", false, "print the names of the deliberate faults, one a line")
	flags.StringVar(&o.Replay, "replay", "", "run one plan again: a file, or a seed")
	flags.StringVar(&o.Trace, "trace", "", "with --replay: write all events to this file")
	flags.StringVar(&o.HTML, "html", "", "with --replay: write a timeline to this file")
	flags.StringVar(&o.Dir, "dir", "", "where the smaller plan of the first failing seed is written (default: a temporary directory)")
	flags.BoolVar(&o.Panic, "panic", false, "let a panic of the server end the process with its stack")
	return c
}
