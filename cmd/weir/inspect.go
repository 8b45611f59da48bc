package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"weir/cmd/internal/inspect"
)

func inspectCommand() *cobra.Command {
	var o inspect.Options
	var group string
	c := &cobra.Command{
		Use:   "inspect DIR",
		Short: "Print log, store and checkpoints of a stopped server",
		Long: "Prints what a stopped server has stored in DIR (its store directory, or the jetstream directory in it): the\n" +
			"segments of the log, and for each group its Raft state, log, checkpoint and message blocks, and the state that\n" +
			"a start would rebuild from them. Every message is read and checked; damage is marked DAMAGE. Nothing is changed.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Dir = args[0]
			if group != "" {
				id, err := strconv.ParseUint(group, 16, 64)
				if err != nil || id == 0 {
					return fmt.Errorf("--group %s: a group is a hexadecimal number, as in the output", group)
				}
				o.Group = id
			}
			out := bufio.NewWriter(os.Stdout)
			o.Out = out
			return errors.Join(inspect.Run(o), out.Flush())
		},
	}
	c.Flags().StringVar(&group, "group", "", "print this group only (hexadecimal, as in the output)")
	c.Flags().BoolVar(&o.Log, "log", false, "print every entry of the log with its commands")
	c.Flags().BoolVar(&o.Messages, "messages", false, "print every message of the blocks")
	return c
}
