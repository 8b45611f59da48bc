package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"weir/cmd/internal/local"
)

// clusterCommand runs several servers for a person to play with.
func clusterCommand() *cobra.Command {
	o := local.Options{Out: os.Stdout}
	c := &cobra.Command{
		Use:   "cluster [-- flags of each server]",
		Short: "Run a cluster of several servers on this machine, to play with",
		Long: "Starts servers as processes of their own, each with a configuration file and its data in a directory below --dir,\n" +
			"shows their logs, and says how to connect. Ctrl-C ends all of them in order; one that is killed stays dead until\n" +
			"somebody starts it again by the command that is shown then.",
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find the program to start: %w", err)
			}
			if o.Dir == "" {
				return errors.New("--dir is empty")
			}
			o.Command, o.Args = []string{self, "serve"}, args
			return local.Run(o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.Nodes, "nodes", 3, "number of servers")
	f.StringVar(&o.Dir, "dir", "./data/cluster", "directory for configurations and data")
	f.IntVar(&o.Port, "port", 4222, "port for clients of the first server")
	f.IntVar(&o.ClusterPort, "cluster-port", 6222, "port for other servers of the first server")
	f.IntVar(&o.HTTPPort, "http-port", 8222, "port for monitoring of the first server")
	return c
}
