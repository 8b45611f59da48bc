package torture

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"weir/linearizability/check"
	"weir/linearizability/history"
	"weir/sim/plan"
	"weir/sim/verdict"
	"weir/sim/workload"
)

// Finding is one thing that is wrong.
type Finding struct {
	// Class is the rule that is broken, Detail says where.
	Class, Detail string
	// At is when it was seen, since the start of the run; 0 when there is no such time.
	At time.Duration
	// HTML is Porcupine's picture of the history, when there is one.
	HTML []byte `json:"-"`
}

// The step budgets of Porcupine: of a key of a large stream, and of a small stream.
const (
	keyStepsMax   = 4_000_000
	smallStepsMax = 3_000_000
)

// judge fills the report with everything that is wrong.
func (r *run) judge(l *load) {
	began := time.Now()
	r.say("judging %d operations, %d deliveries", len(r.log.history.Records), len(r.log.seen.Deliveries))
	for _, late := range r.late {
		r.fail("liveness", 0, "%s", late)
	}
	for _, wrong := range r.log.wrongs {
		r.fail("wrong", 0, "%s", wrong)
	}
	for _, crash := range r.cluster.crashes {
		r.fail("crash", 0, "%s", crash)
	}
	large := []check.Rules{
		{Name: mainStream, Window: int64(duplicateWindow)},
		{Name: bucket.name, MaxMsgsPerSubject: 1, Window: int64(duplicateWindow)},
	}
	for i := range r.options.Nodes {
		large = append(large, check.Rules{Name: quiet(i).name, Window: int64(duplicateWindow)})
	}
	for i := range large {
		r.stream(&large[i], true)
	}
	for i := range l.small {
		r.stream(&l.small[i].rules, false)
	}
	r.consumers()
	r.creations()
	for _, w := range r.log.watches {
		r.watch(w)
	}
	r.report.Judged = time.Since(began)
}

func (r *run) fail(class string, at int64, format string, args ...any) {
	f := Finding{Class: class, Detail: fmt.Sprintf(format, args...)}
	if at != 0 && at != history.Never {
		f.At = time.Duration(at - r.log.offset)
	}
	r.report.Findings = append(r.report.Findings, f)
}

// stream judges the history of one stream.
func (r *run) stream(rules *check.Rules, large bool) {
	final := r.finals[rules.Name]
	if final == nil {
		return // that it could not be read back is a finding already
	}
	own := make([]history.Record, 0, 1024)
	for i := range r.log.history.Records {
		if r.log.history.Records[i].Stream == rules.Name {
			own = append(own, r.log.history.Records[i])
		}
	}
	violations := check.Check(own, &final.Final, rules)
	if large {
		violations = append(violations, check.SearchKeys(own, &final.Final, rules, keyStepsMax)...)
	} else {
		violations = append(violations, check.SearchOrder(own, &final.Final, rules, smallStepsMax)...)
	}
	r.report.Searched++
	for i := range violations {
		v := &violations[i]
		if v.Class == check.NoVerdict {
			r.report.NoVerdict++ // the exact checker has one
			continue
		}
		r.fail(string(v.Class), v.At, "%s", v.Detail)
		r.report.Findings[len(r.report.Findings)-1].HTML = v.HTML
	}
	if final.Count != uint64(len(final.Messages)) {
		r.fail("miscounted", 0, "%s: the state counts %d messages, %d can be read", rules.Name, final.Count, len(final.Messages))
	}
}

// consumers judges the consumers by the rules of the simulator.
func (r *run) consumers() {
	p := &plan.Plan{
		Streams:   []plan.Stream{{Name: mainStream, Prefix: mainPrefix, Keys: mainKeys}},
		Consumers: consumers,
	}
	o := r.log.seen
	o.History = r.log.history
	o.Finals = []*workload.Final{r.finals[mainStream]}
	o.Consumers = r.states
	for _, f := range verdict.Consumers(p, &o) {
		r.fail(f.Class, f.At, "%s", f.Detail)
	}
}

// creations checks that a create which succeeded found no key: what its subject held before was nothing, or a deletion.
func (r *run) creations() {
	byKey := map[string][]*history.Record{}
	unseen := map[string]bool{}
	for i := range r.log.history.Records {
		rec := &r.log.history.Records[i]
		if rec.Stream != bucket.name || rec.Kind != history.Publish || rec.Outcome == history.Rejected {
			continue
		}
		if rec.Outcome == history.OK {
			byKey[rec.Subject] = append(byKey[rec.Subject], rec)
		} else {
			unseen[rec.Subject] = true
		}
	}
	for subject, writes := range byKey {
		slices.SortFunc(writes, func(a, b *history.Record) int { return cmp.Compare(a.Seq, b.Seq) })
		for i, w := range writes {
			if i == 0 || !r.log.creates[w.ID] || r.log.deletes[writes[i-1].ID] {
				continue
			}
			// An unanswered deletion may lie between the two.
			if !unseen[subject] {
				r.fail("created-over", w.Return, "%s was created at %d while it had the value of %d", subject, w.Seq, writes[i-1].Seq)
			}
		}
	}
}

// watch judges one watch: what it shows ascends, is what was written, and skips nothing that is there in the end.
func (r *run) watch(w *watch) {
	known, fail := r.known(w.of.name), func(at int64, format string, args ...any) {
		r.fail("watch", at, "%s of %s: %s", w.name, w.of.name, fmt.Sprintf(format, args...))
	}
	seen := make(map[uint64]bool, len(w.seen))
	last := uint64(0)
	for i := range w.seen {
		d := &w.seen[i]
		if d.StreamSeq <= last || d.StreamSeq < w.from {
			fail(d.At, "sequence %d came after %d; it was to begin at %d", d.StreamSeq, last, w.from)
		}
		last = max(last, d.StreamSeq)
		seen[d.StreamSeq] = true
		writer := known[d.StreamSeq]
		if writer == nil {
			continue
		}
		if writer.Subject != d.Subject || d.Value != 0 && d.Value != writer.ID || d.Value == 0 && !r.log.deletes[writer.ID] {
			fail(d.At, "sequence %d on %s has the value #%d, #%d wrote it on %s",
				d.StreamSeq, d.Subject, d.Value, writer.ID, writer.Subject)
		}
	}
	final := r.finals[w.of.name]
	if final == nil {
		return
	}
	for i := range final.Messages {
		if m := &final.Messages[i]; m.Seq >= w.from && m.Seq < last && !seen[m.Seq] {
			fail(0, "sequence %d on %s is there and was skipped; the last one seen is %d", m.Seq, m.Subject, last)
			return
		}
	}
}
