// Package bench measures Weir beside the reference server.
//
// It promises that both servers are driven by the same client code in the same run, each on a fresh directory and alone
// on the machine while it is measured, that the rounds of the servers alternate, and that the figure of a row is the
// median of its rounds. It judges nothing: the table shows ratios and the targets they are held against.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Options says what to measure and how long.
type Options struct {
	// Binary is the Weir executable. It is started as `Binary serve -c FILE`.
	Binary string
	// Peer is whether the reference server is built and measured too.
	Peer bool
	// PeerBinary is a reference server to use instead of building one.
	PeerBinary string
	// Replicas is how many servers there are, and replicas of each stream.
	Replicas int
	// Port is the first port that may be used; 0 takes any.
	Port int
	// Dir is where data directories are made; it decides which disk is measured.
	Dir string
	// Only limits the run to the works of these names. Empty means all.
	Only []string
	// Rounds is how often each work is measured on each server.
	Rounds int
	// Span is how long one measurement of an open-ended work lasts.
	Span time.Duration
	// Stored is the number of messages of the restart row.
	Stored int
	// Streams is the number of streams of the row about many streams, Missed that of the messages that a follower misses.
	Streams, Missed int
	// Profile is a profiling mode of `weir serve --profile`, or "".
	Profile string
	// Progress is where the course of the run is shown.
	Progress io.Writer
}

// Row is one line of the table: the medians of a work, in its unit, and the ratios, which are above 1 when Weir is the
// better one. A figure that was not measured is nil.
type Row struct {
	Work         string   `json:"work"`
	Unit         string   `json:"unit"`
	Weir         *float64 `json:"weir"`
	PeerDefault  *float64 `json:"peer_default"`
	PeerAlways   *float64 `json:"peer_always"`
	RatioDefault *float64 `json:"ratio_default"`
	RatioAlways  *float64 `json:"ratio_always"`
	// RatioBare is Weir's figure divided by that of the bare loop of write and fdatasync; only on the row it is for.
	RatioBare *float64 `json:"ratio_bare,omitempty"`
	// WeirCPU and PeerCPU are microseconds of processor time per operation that the server used, nil where unknown.
	WeirCPU *float64 `json:"weir_cpu_us,omitempty"`
	PeerCPU *float64 `json:"peer_cpu_us,omitempty"`

	target string
}

// The three servers of a run, in the order of the columns.
const (
	weirColumn = iota
	defaultColumn
	alwaysColumn
	columnCount
)

// maxRounds bounds the rounds that a caller may ask for.
const maxRounds = 99

// Run measures and returns the rows in the order of the table. The data directories are removed at the end.
func Run(ctx context.Context, o Options) ([]Row, error) {
	if o.Rounds < 1 || o.Rounds > maxRounds {
		return nil, fmt.Errorf("rounds: %d is not within 1 and %d", o.Rounds, maxRounds)
	}
	works, err := choose(o.Only, worksOf(o.Replicas))
	if err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp(o.Dir, "weir-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory to measure in: %w", err)
	}
	defer os.RemoveAll(root)
	if onMemory(root) {
		fmt.Fprintf(o.Progress, "warning: %s is kept in memory, a sync costs nothing there; choose a disk with --dir\n", root)
	}
	servers, err := contenders(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, ctx: ctx, root: root, servers: servers}
	var rows []Row
	for _, w := range works {
		row, err := r.measure(w)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", w.name, err)
		}
		rows = append(rows, row...)
	}
	compareBare(rows)
	return rows, nil
}

// run is one benchmark under way.
type run struct {
	Options
	ctx     context.Context
	root    string
	servers [columnCount]*contender
	count   int // directories made so far
}

// measure runs all rounds of a work and returns its rows.
func (r *run) measure(w work) ([]Row, error) {
	rounds := r.Rounds
	if w.once {
		rounds = 1
	}
	var samples [columnCount][]sample
	for round := range rounds {
		for i := range columnCount {
			column := (i + round) % columnCount
			server := r.servers[column]
			if server == nil || column == alwaysColumn && !w.always {
				continue
			}
			fmt.Fprintf(r.Progress, "%-24s round %d of %d, %s: ", w.name, round+1, rounds, server.name)
			s, err := r.sample(w, server, round)
			if err != nil {
				fmt.Fprintln(r.Progress, "failed")
				return nil, fmt.Errorf("%s: %w", server.name, err)
			}
			fmt.Fprintln(r.Progress, s.text())
			samples[column] = append(samples[column], s)
		}
	}
	return rowsOf(w, samples), nil
}

// sample measures a work once on a fresh server.
func (r *run) sample(w work, server *contender, round int) (s sample, err error) {
	r.count++
	dir := filepath.Join(r.root, fmt.Sprintf("%03d", r.count))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t := &trial{run: r, server: server, work: w.name, dir: dir, round: round}
	defer func() { err = errors.Join(err, t.stop()) }()
	if err := t.start(); err != nil {
		return nil, err
	}
	return w.drive(t)
}

// figure is one number that a measurement yields.
type figure struct {
	work  string
	unit  string
	value float64
	cpu   float64 // microseconds per operation, 0 when unknown
}

// sample is what one measurement of a work yields: mostly one figure.
type sample []figure

func (s sample) text() string {
	text := ""
	for i, f := range s {
		if i > 0 {
			text += ", "
		}
		text += format(f.value) + " " + f.unit
	}
	return text
}

func rowsOf(w work, samples [columnCount][]sample) []Row {
	var rows []Row
	for i, first := range samples[weirColumn][0] {
		row := Row{Work: first.work, Unit: first.unit, target: w.targets[first.work]}
		row.Weir = median(samples[weirColumn], i, false)
		row.WeirCPU = median(samples[weirColumn], i, true)
		row.PeerDefault = median(samples[defaultColumn], i, false)
		row.PeerCPU = median(samples[defaultColumn], i, true)
		row.PeerAlways = median(samples[alwaysColumn], i, false)
		more := first.unit == "op/s" || first.unit == "MB/s"
		row.RatioDefault = ratio(row.Weir, row.PeerDefault, more)
		row.RatioAlways = ratio(row.Weir, row.PeerAlways, more)
		rows = append(rows, row)
	}
	return rows
}

// median returns the middle value of a figure over the samples, the lower one of two middle values, or nil when no
// sample has it.
func median(samples []sample, i int, cpu bool) *float64 {
	var values []float64
	for _, s := range samples {
		if i >= len(s) {
			continue
		}
		if cpu {
			values = append(values, s[i].cpu)
		} else {
			values = append(values, s[i].value)
		}
	}
	if len(values) == 0 || cpu && slices.Max(values) == 0 {
		return nil
	}
	slices.Sort(values)
	return &values[(len(values)-1)/2]
}

// ratio is above 1 when a is better than b; more says whether more is better.
func ratio(a, b *float64, more bool) *float64 {
	if a == nil || b == nil || *a <= 0 || *b <= 0 {
		return nil
	}
	q := *a / *b
	if !more {
		q = 1 / q
	}
	return &q
}

// compareBare relates synchronous publishing to the bare loop, where both were measured.
func compareBare(rows []Row) {
	var sync, bare *Row
	for i := range rows {
		switch rows[i].Work {
		case publishSync1:
			sync = &rows[i]
		case bareAppend:
			bare = &rows[i]
		}
	}
	if sync != nil && bare != nil {
		sync.RatioBare = ratio(sync.Weir, bare.Weir, true)
	}
}
