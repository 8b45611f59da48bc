package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/internal/bench"
)

// benchFlags are the flags of `weir bench`.
type benchFlags struct {
	peer   string
	json   string
	binary string
	quick  bool
	bench.Options
}

// rounds and clusterRounds are how often each work is measured: on a cluster more often, as rounds differ in whether the client is
// at the leader or at a follower, and rows of single messages vary by a fifth with how the machine places the processes.
const (
	rounds        = 3
	clusterRounds = 5
)

func benchCommand() *cobra.Command {
	f := &benchFlags{}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure this server beside the reference server",
		Long: "Starts this server and the reference server (nats-server, built from its Go module) in turn on fresh\n" +
			"directories, drives both with the same client code, and prints a table with ratios. A ratio above 1\n" +
			"means that this server is the better one. The figures are medians of several alternating rounds.\n\n" +
			"Works:\n  " + strings.Join(bench.Works(1), "\n  ") + "\n\nWorks with --replicas 3, on three servers:\n  " +
			strings.Join(bench.Works(bench.ReplicasOfClusters), "\n  "),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.run() },
	}
	c.Flags().IntVar(&f.Replicas, "replicas", 1, "servers, and replicas of each stream: 1 or 3")
	c.Flags().IntVar(&f.Port, "port", 0, "first port to use (default: any free ones)")
	c.Flags().IntVar(&f.Streams, "streams", 2_000, "streams of the row about many streams")
	c.Flags().IntVar(&f.Missed, "missed", 1_000_000, "messages that the follower of the catch-up row misses")
	c.Flags().StringVar(&f.peer, "peer", "reference", "server to compare with: reference, none, or the path of a nats-server")
	c.Flags().StringVar(&f.json, "json", "", "also write the rows to this file as a JSON array")
	c.Flags().StringVar(&f.binary, "weir", "", "measure this binary of Weir (default: the one that runs)")
	c.Flags().StringSliceVar(&f.Only, "only", nil, "names of the works to run, separated by commas (default: all)")
	c.Flags().StringVar(&f.Dir, "dir", "", "directory on the disk to measure (default: the system's temporary directory)")
	c.Flags().IntVar(&f.Rounds, "rounds", 0, fmt.Sprintf("rounds per work and server (default: %d, with --replicas 3 %d)", rounds, clusterRounds))
	c.Flags().DurationVar(&f.Span, "span", time.Second, "length of one measurement")
	c.Flags().IntVar(&f.Stored, "stored", 1_000_000, "messages of the restart row")
	c.Flags().BoolVar(&f.quick, "quick", false, "one short round and a tenth of the stored messages: shows that all works run, not how fast")
	c.Flags().StringVar(&f.Profile, "profile", "", "write profiles of Weir to profiles/WORK: cpu, mem, heap, allocs, block, mutex, goroutine, trace")
	return c
}

func (f *benchFlags) run() (err error) {
	if f.Replicas != 1 && f.Replicas != bench.ReplicasOfClusters {
		return fmt.Errorf("--replicas %d is not supported: it is 1 or %d", f.Replicas, bench.ReplicasOfClusters)
	}
	if f.Rounds == 0 {
		f.Rounds = rounds
		if f.Replicas > 1 {
			f.Rounds = clusterRounds
		}
	}
	if f.quick {
		f.Rounds, f.Span, f.Stored, f.Streams, f.Missed = 1, f.Span/4, f.Stored/10, f.Streams/10, f.Missed/10
	}
	if f.Binary = f.binary; f.Binary == "" {
		if f.Binary, err = os.Executable(); err != nil {
			return err
		}
	}
	f.Peer = f.peer != "none"
	if f.Peer && f.peer != "reference" {
		f.PeerBinary = f.peer
	}
	f.Progress = os.Stderr
	ctx, stop := signal.NotifyContext(rootContext, os.Interrupt, syscall.SIGTERM)
	defer stop()
	rows, err := bench.Run(ctx, f.Options)
	if len(rows) == 0 {
		return err
	}
	err = errors.Join(err, bench.WriteTable(os.Stdout, rows))
	if f.json == "" {
		return err
	}
	text, encodeErr := json.MarshalIndent(rows, "", "  ")
	if encodeErr != nil {
		return errors.Join(err, encodeErr)
	}
	return errors.Join(err, os.WriteFile(f.json, slices.Concat(text, []byte("\n")), 0o644))
}
