package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is something wrong at one place of a configuration file.
type Problem struct {
	// File, Line (from 1) and Column (from 0) are the place; Line 0 means that it is not known.
	File         string
	Line, Column int
	// Text is what is wrong.
	Text string
}

// Error returns place and text.
func (p Problem) Error() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text)
}

// Problems are all that is wrong with a configuration, in the order of the file.
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].Error()
	}
	return strings.Join(lines, "\n")
}

// err returns the problems as an error, nil for none.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

func (p Problems) sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
}
