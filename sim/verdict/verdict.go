// Package verdict judges what the clients of a simulation saw.
//
// Streams are judged by linearizability/check; consumers and watches by the guarantees that are written beside each
// check here. Every rule is sound: it accuses only on what no correct server could have shown. The package promises
// that equal observations give equal verdicts, in a fixed order.
package verdict

import (
	"weir/linearizability/check"
	"weir/linearizability/history"
	"weir/sim/plan"
	"weir/sim/workload"
)

// Finding is one thing that no correct server could have shown.
type Finding struct {
	// Class is the rule that is broken.
	Class string
	// Detail names the numbers.
	Detail string
	// At is the virtual time of the observation; 0 when there is none.
	At int64
	// HTML is Porcupine's picture of the history, when there is one.
	HTML []byte
}

// defaultWindowMillis is the duplicate window of streams that do not set one.
const defaultWindowMillis = 120_000

// restMillis is how long a run may go on after its faults have ended; ids may be forgotten within that time too.
const restMillis = 200_000

// Judge returns everything that is wrong.
func Judge(p *plan.Plan, o *workload.Observations) []Finding {
	var found []Finding
	for i := range p.Streams {
		final := o.Finals[i]
		if final == nil || final.Down != "" {
			continue // The server says that it does not serve the stream; the caller decides whether it may.
		}
		rules := Rules(p, i)
		rules.Unread = make(map[uint64]bool, len(final.Unread))
		for _, seq := range final.Unread {
			rules.Unread[seq] = true
		}
		violations := check.Check(o.History.Records, &final.Final, rules)
		if len(violations) > 0 || p.Porcupine {
			violations = append(violations, check.SearchOrder(o.History.Records, &final.Final, rules, check.StepsMax)...)
		}
		found = append(found, convert(violations)...)
		if f := counted(p, i, final); f != nil {
			found = append(found, *f)
		}
		found = append(found, limits(p, o, i)...)
	}
	found = append(found, Consumers(p, o)...)
	found = append(found, descriptions(p, o)...)
	for i := range p.Mirrors {
		found = append(found, mirror(p, o, i)...)
	}
	for _, b := range o.Rebirths {
		found = append(found, reborn(b)...)
	}
	for _, w := range o.Wrong {
		found = append(found, Finding{Class: "incarnation", At: w.At, Detail: w.Detail})
	}
	for _, w := range o.Watches {
		found = append(found, watch(p, o, w)...)
	}
	return found
}

// Consumers returns what is wrong with the consumers of the plan alone.
func Consumers(p *plan.Plan, o *workload.Observations) []Finding {
	var found []Finding
	for i := range p.Consumers {
		found = append(found, consumer(p, o, i)...)
	}
	return found
}

// convert drops searches without a verdict when the exact checker has one: the search was for the picture only.
func convert(violations []check.Violation) []Finding {
	var found []Finding
	for i := range violations {
		v := &violations[i]
		if v.Class == check.NoVerdict && len(found) > 0 {
			continue
		}
		found = append(found, Finding{Class: string(v.Class), Detail: v.Detail, At: v.At, HTML: v.HTML})
	}
	return found
}

// Rules are what the checker of histories must know of a stream of the plan.
func Rules(p *plan.Plan, stream int) *check.Rules {
	s := &p.Streams[stream]
	window := s.WindowMillis
	if window == 0 {
		window = defaultWindowMillis
		if s.MaxAgeMillis != 0 {
			window = min(window, s.MaxAgeMillis)
		}
	}
	forgets := window < p.HealMillis+restMillis && window != defaultWindowMillis || stepsClock(p) || p.Drifts()
	return &check.Rules{
		Name: s.Name, MaxMsgs: s.MaxMsgs, MaxMsgsPerSubject: s.MaxMsgsPerSubject,
		Vanishes: s.MaxBytes != 0 || s.MaxAgeMillis != 0,
		Window:   window * 1_000_000, Forgets: forgets,
	}
}

func stepsClock(p *plan.Plan) bool {
	for i := range p.Faults {
		if p.Faults[i].Kind == plan.FaultClock {
			return true
		}
	}
	return false
}

// counted compares the number of messages in the stream's state with a recount.
func counted(p *plan.Plan, stream int, final *workload.Final) *Finding {
	s := &p.Streams[stream]
	if s.MaxAgeMillis != 0 || final.Count == uint64(len(final.Messages)+len(final.Unread)) {
		return nil // Messages may have expired between the two.
	}
	return &Finding{Class: "miscounted", Detail: sprintf("%s: the state counts %d messages, %d can be read",
		s.Name, final.Count, len(final.Messages))}
}

// writers maps the sequences of a stream to the IDs of the publishes that wrote them, as far as anybody knows.
func writers(p *plan.Plan, o *workload.Observations, stream int) map[uint64]uint64 {
	known := map[uint64]uint64{}
	name := p.Streams[stream].Name
	for i := range o.History.Records {
		r := &o.History.Records[i]
		if r.Stream != name || r.Outcome != history.OK {
			continue
		}
		if r.Kind == history.Publish && !r.Duplicate {
			known[r.Seq] = r.ID
		}
	}
	if f := o.Finals[stream]; f != nil {
		for i := range f.Messages {
			known[f.Messages[i].Seq] = f.Messages[i].Value
		}
	}
	return known
}

// removes says whether messages of the stream may have gone other than by nothing at all: by a limit, a purge, a delete
// or a rollup.
func removes(p *plan.Plan, o *workload.Observations, stream int) bool {
	s := &p.Streams[stream]
	if s.MaxMsgs != 0 || s.MaxMsgsPerSubject != 0 || s.MaxBytes != 0 || s.MaxAgeMillis != 0 {
		return true
	}
	for i := range o.History.Records {
		r := &o.History.Records[i]
		if r.Stream == s.Name && r.Outcome != history.Rejected &&
			(r.Kind == history.Purge || r.Kind == history.DeleteMsg || r.Rollup) {
			return true
		}
	}
	return false
}
