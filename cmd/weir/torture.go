package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/internal/torture"
)

// tortureCommand runs a real cluster under faults and judges it.
func tortureCommand() *cobra.Command {
	o := torture.Options{Out: os.Stdout}
	binary := ""
	c := &cobra.Command{
		Use:   "torture",
		Short: "Run a real cluster under clients and faults, and judge what the clients saw",
		Long: "Starts servers as processes, each in a network namespace of its own (or on loopback with proxies between them),\n" +
			"lets clients of nats.go publish, read, use a bucket, watch it and consume, while servers are killed, paused, cut\n" +
			"off and asked to step down. Some clients stay with one server whatever happens to it, and go on to read, write and\n" +
			"acknowledge there: a leader that has been deposed and does not know it is asked while its successor is written to.\n" +
			"Then everything heals, the streams are read back from every replica, and the history is judged: linearizable,\n" +
			"nothing acknowledged lost, no message id stored twice, nothing delivered again after a confirmed acknowledgement.\n" +
			"The seed draws the schedule of faults; processes, network and disk are real, so equal seeds do not make equal runs.\n" +
			"A server that ends by itself ends the faults. Ends with exit code 1 when something is wrong; then history.jsonl, the\n" +
			"logs of the servers and Porcupine's pictures are in the directory.\n\nFaults:\n  " + strings.Join(torture.Kinds(), " "),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if binary == "" {
				self, err := os.Executable()
				if err != nil {
					return fmt.Errorf("find the program to start: %w", err)
				}
				binary = self
			}
			if !c.Flags().Changed("seed") {
				o.Seed = uint64(time.Now().UnixNano())
			}
			o.Command = []string{binary, "serve"}
			ctx, stop := signal.NotifyContext(rootContext, os.Interrupt, syscall.SIGTERM)
			defer stop()
			// A first signal ends the faults early; a second one ends everything at once.
			go func() {
				<-ctx.Done()
				stop()
			}()
			report, err := torture.Run(ctx, o)
			if err != nil {
				return err
			}
			fmt.Print(report)
			if len(report.Findings) > 0 {
				return exitCode(1)
			}
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&o.Nodes, "nodes", 3, "number of servers")
	f.DurationVar(&o.Duration, "duration", 10*time.Minute, "how long faults happen")
	f.Uint64Var(&o.Seed, "seed", 0, "draws the faults and what clients do (default: from the clock)")
	f.StringVar(&o.Dir, "dir", "", "directory for configurations, data, logs and the history, without those of an earlier run (default: a temporary one, removed when nothing is wrong)")
	f.BoolVar(&o.History, "history", false, "write the history also when nothing is wrong")
	f.StringVar(&o.Network, "netns", "auto", "network namespaces: on (needs root and the command ip), off (loopback with proxies), or auto")
	f.StringVar(&binary, "binary", "", "program to run as the servers (default: this one)")
	f.IntVar(&o.Port, "port", 52000, "first port, without network namespaces")
	f.StringSliceVar(&o.Faults, "faults", nil, "kinds of faults to draw from, separated by commas (default: all)")
	f.DurationVar(&o.Quiet, "quiet", 1500*time.Millisecond, "mean time between faults")
	f.DurationVar(&o.Hold, "hold", 3*time.Second, "mean time that a fault lasts")
	return c
}
