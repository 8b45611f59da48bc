// Command weir is a JetStream server whose acknowledgements can be trusted, and the tools around it.
//
// `weir serve`, or weir with nothing but flags, runs the server; `weir cluster` runs several on this machine. `weir sim`,
// `weir torture`, `weir bench` and `weir inspect` simulate it, break it, measure it, and print what it has stored.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weir/cmd/internal/serve"
)

// rootContext is what the commands run under; signals end it where a command asks for that.
var rootContext = context.Background()

// exitCode is an error that stands for an exit code; its command has already said what is wrong.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return serve.Run(args)
	}
	root := &cobra.Command{
		Use:           "weir",
		Short:         "A JetStream server whose acknowledgements can be trusted",
		Long:          "Weir is a JetStream server: NATS clients and the nats command line talk to it.\nWithout a command, weir takes the flags of serve.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(serveCommand(), clusterCommand(), simCommand(), tortureCommand(), benchCommand(), inspectCommand(), checkCommand(), versionCommand())
	root.SetArgs(args)
	err := root.Execute()
	var code exitCode
	switch {
	case errors.As(err, &code):
		return int(code)
	case err != nil:
		fmt.Fprintln(os.Stderr, "weir:", err)
		return 1
	}
	return 0
}

// serveCommand leaves its flags to the server, whose form of flags (one dash or two) is another than that of the tools.
func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:                "serve [options]",
		Short:              "Run the server",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := serve.Run(args); code != 0 {
				return exitCode(code)
			}
			return nil
		},
	}
	c.SetHelpFunc(func(*cobra.Command, []string) { fmt.Print(serve.Usage) })
	return c
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { fmt.Println(serve.VersionLine()) },
	}
}

// checkCommand keeps the place of a command that later versions have.
func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check --server URL",
		Short: "Judge the histories of a live NATS server (not part of this version)",
		Long: "Checking a live server is not part of this version of weir. What this version has: `weir sim` judges\n" +
			"simulated runs of the server by the same models.",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			for _, arg := range args {
				if arg == "-h" || arg == "--help" {
					return c.Help()
				}
			}
			return errors.New("check is not part of this version; `weir sim` judges simulated runs")
		},
	}
}
