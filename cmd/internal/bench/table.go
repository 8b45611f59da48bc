package bench

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// WriteTable prints rows for a person. Ratios above 1 mean that Weir is the better one; "bare" is the loop of write
// and fdatasync of the same run.
func WriteTable(out io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "work\tunit\tweir\treference\tref. always\tratio\tratio always\tweir CPU us\tref. CPU us\t  target\t")
	for _, row := range rows {
		target := row.target
		if row.RatioBare != nil {
			target += fmt.Sprintf(" (bare %.2f)", *row.RatioBare)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t  %s\t\n", row.Work, row.Unit, number(row.Weir), number(row.PeerDefault),
			number(row.PeerAlways), times(row.RatioDefault), times(row.RatioAlways), times(row.WeirCPU), times(row.PeerCPU), target)
	}
	return w.Flush()
}

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return format(*v)
}

func times(v *float64) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}

// format prints a figure with the digits that a noisy machine can justify.
func format(v float64) string {
	if v < 100 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
