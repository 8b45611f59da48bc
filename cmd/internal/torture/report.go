package torture

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Report is what a run found.
type Report struct {
	// Seed, Nodes, Network and Dir are what was run, and where.
	Seed         uint64
	Nodes        int
	Network, Dir string
	// Torn is how long faults happened, Healed how long it took until all replicas were current after that.
	Torn, Healed, Judged time.Duration
	// OK, Refused and Unknown count operations by their outcome, Deliveries and the rest what consumers did.
	OK, Refused, Unknown          uint64
	Deliveries, Acks, Unconfirmed uint64
	Nacked, Watched               uint64
	// Kinds count the faults; Outages are the longest times without a successful publish while a majority of the servers
	// could work, by the fault that began them.
	Kinds   map[string]int
	Outages map[string]time.Duration
	// Longest is the longest of the outages, During names its fault.
	Longest time.Duration
	During  string
	// Stalled is how long the machine did not let this process run; outages do not count over such times.
	Stalled time.Duration
	// Failed are faults that asked for something and were told no.
	Failed []string
	// Searched streams were judged, NoVerdict counts the searches of Porcupine that were too long; the exact checker has
	// judged those as well.
	Searched, NoVerdict int
	// Findings is everything that is wrong.
	Findings []Finding
	// Files are where the history is, when something is wrong.
	Files []string
}

// count takes the numbers of the run.
func (t *Report) count(r *run) {
	c := &r.log.counts
	t.OK, t.Refused, t.Unknown = c.ok, c.refused, c.unknown
	t.Deliveries, t.Acks, t.Unconfirmed, t.Nacked, t.Watched = c.deliveries, c.acks, c.unconfirmed, c.nacked, c.watched
	t.Torn, t.Kinds, t.Outages = r.options.Duration, map[string]int{}, map[string]time.Duration{}
	for _, e := range r.nemesis.events {
		t.Kinds[e.Kind]++
		if e.Error != "" {
			t.Failed = append(t.Failed, fmt.Sprintf("%.1fs %s %s: %s", r.log.since(e.From), e.Kind, e.What, e.Error))
		}
	}
	for cause, gap := range r.outages.byKind {
		t.Outages[cause] = time.Duration(gap)
	}
	t.Stalled = r.outages.stalled
	t.Longest, t.During = time.Duration(r.outages.longest), r.outages.during
}

// listMax bounds the lines of a list in the report's text.
const listMax = 20

// String is the report as text.
func (t *Report) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%d servers, %s, seed %d, faults for %v", t.Nodes, t.Network, t.Seed, t.Torn)
	line("operations   %d ok, %d refused, %d unknown", t.OK, t.Refused, t.Unknown)
	line("consumers    %d deliveries, %d acks confirmed, %d unconfirmed, %d naks; %d updates watched", t.Deliveries, t.Acks,
		t.Unconfirmed, t.Nacked, t.Watched)
	total := 0
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(t.Kinds)) {
		total += t.Kinds[name]
		kinds = append(kinds, fmt.Sprintf("%s %d", name, t.Kinds[name]))
	}
	line("faults       %d: %s", total, strings.Join(kinds, ", "))
	line("outages      longest without a publish while a majority could work: %v (%s)", t.Longest.Round(time.Millisecond), t.During)
	causes := slices.Collect(maps.Keys(t.Outages))
	slices.SortFunc(causes, func(a, b string) int { return int(t.Outages[b] - t.Outages[a]) })
	for _, cause := range causes[:min(len(causes), listMax)] {
		line("             %8v  %s", t.Outages[cause].Round(time.Millisecond), cause)
	}
	if t.Stalled > 0 {
		line("machine      did not let this process run for %v in all; outages are not counted over such times", t.Stalled.Round(time.Millisecond))
	}
	line("healing      all replicas current after %v", t.Healed.Round(time.Millisecond))
	for _, failed := range t.Failed[:min(len(t.Failed), listMax)] {
		line("not done     %s", failed)
	}
	line("judged       %d streams in %v, %d searches of Porcupine without a verdict", t.Searched, t.Judged.Round(time.Millisecond), t.NoVerdict)
	for i := range t.Findings[:min(len(t.Findings), listMax)] {
		f := &t.Findings[i]
		line("WRONG        %s at %.3fs: %s", f.Class, f.At.Seconds(), f.Detail)
	}
	if len(t.Files) > 0 {
		line("files        %s", strings.Join(t.Files, " "))
	}
	if len(t.Findings) == 0 {
		line("verdict      linearizable; nothing acknowledged is lost, nothing is stored twice, nothing came again after a confirmed acknowledgement")
		return b.String()
	}
	line("verdict      %d violations", len(t.Findings))
	return b.String()
}

// write leaves the history and the pictures of Porcupine in the directory when something is wrong, or it is wanted.
func (t *Report) write(r *run) error {
	if len(t.Findings) == 0 && !r.options.History {
		return nil
	}
	history := filepath.Join(t.Dir, "history.jsonl")
	t.Files = append(t.Files, history)
	if err := t.writeHistory(r, history); err != nil {
		return err
	}
	for i := range t.Findings {
		if len(t.Findings[i].HTML) == 0 {
			continue
		}
		path := filepath.Join(t.Dir, fmt.Sprintf("porcupine-%d.html", i+1))
		if err := os.WriteFile(path, t.Findings[i].HTML, 0o644); err != nil {
			return err
		}
		t.Files = append(t.Files, path)
	}
	return nil
}

// writeHistory writes findings, faults, operations, deliveries and acknowledgements, one JSON object per line. All times
// are of one clock.
func (t *Report) writeHistory(r *run, path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	defer func() { err = errors.Join(err, out.Flush(), file.Close()) }()
	lines := json.NewEncoder(out)
	put := func(what string, item any) {
		err = errors.Join(err, lines.Encode(map[string]any{what: item}))
	}
	put("start", r.log.offset)
	for i := range t.Findings {
		put("finding", t.Findings[i])
	}
	for i := range r.nemesis.events {
		put("fault", r.nemesis.events[i])
	}
	for i := range r.log.history.Records {
		put("operation", r.log.history.Records[i])
	}
	for i := range r.log.seen.Deliveries {
		put("delivery", r.log.seen.Deliveries[i])
	}
	for i := range r.log.seen.Acks {
		put("ack", r.log.seen.Acks[i])
	}
	for name, final := range r.finals {
		put("final "+name, final)
	}
	return err
}
