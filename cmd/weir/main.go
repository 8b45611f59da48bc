// Command weir is a JetStream server whose acknowledgements can be trusted, and the tools around it.
//
// `weir serve`, or weir with nothing but flags, runs the server. `weir sim`, `weir bench` and `weir inspect` simulate
// it, measure it, and print what it has stored.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// rootContext is what the commands run under; signals end it where a command asks for that.
var rootContext = context.Background()

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	root := &cobra.Command{Use: "weir", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(benchCommand())
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "weir:", err)
		return 1
	}
	return 0
}
