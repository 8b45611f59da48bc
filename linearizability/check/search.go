package check

import (
	"bytes"
	"maps"
	"slices"

	"github.com/anishathalye/porcupine"

	"weir/linearizability/history"
	"weir/linearizability/models"
)

// StepsMax is the step budget that is ample for the histories made for Porcupine: some hundred operations of at most
// five clients on one stream.
const StepsMax = 300_000

// SearchOrder is the second judge: it lets Porcupine search the history of the stream, and of each of its subjects that the
// model of a key covers. steps bounds each search. Streams whose messages vanish by age or bytes have no model and are
// refused with an empty result.
func SearchOrder(records []history.Record, final *history.Final, rules *Rules, steps int) []Violation {
	if rules.Vanishes {
		return nil
	}
	j := newJudge(records, final, rules)
	j.found = nil
	limits := models.Limits{MaxMsgs: rules.MaxMsgs, MaxMsgsPerSubject: rules.MaxMsgsPerSubject, Forgets: rules.Forgets}
	budget := &models.Budget{Limit: steps}
	j.search("stream", models.Stream(j.records, limits, budget), j.records, budget)
	j.searchKeys(steps)
	return j.found
}

// SearchKeys is SearchOrder without the search of the stream as a whole, for histories that are too long for that: only
// each subject is searched. steps bounds each search.
func SearchKeys(records []history.Record, final *history.Final, rules *Rules, steps int) []Violation {
	if rules.Vanishes {
		return nil
	}
	j := newJudge(records, final, rules)
	j.found = nil
	j.searchKeys(steps)
	return j.found
}

// searchKeys searches the history of each subject that the model of a key covers.
func (j *judge) searchKeys(steps int) {
	for _, subject := range j.literals() {
		own := j.ofKey(subject)
		budget := &models.Budget{Limit: steps}
		j.search(subject, models.Key(own, budget), own, budget)
	}
}

// literals are the subjects whose histories the model of a key covers.
func (j *judge) literals() []string {
	if j.rules.MaxMsgs != 0 {
		return nil
	}
	for _, d := range j.removals {
		if d.Kind == history.DeleteMsg || d.At != 0 || d.Keep != 0 {
			return nil
		}
	}
	set := make(map[string]bool)
	for i := range j.records {
		if j.records[i].Kind == history.Publish {
			set[j.records[i].Subject] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (j *judge) ofKey(subject string) []history.Record {
	var own []history.Record
	for i := range j.records {
		r := &j.records[i]
		covered := r.Kind == history.Purge && (r.Subject == "" || models.Covers(r.Subject, subject))
		if r.Kind != history.Purge && r.Subject == subject || covered && r.Outcome != history.Rejected {
			own = append(own, *r)
		}
	}
	return own
}

func (j *judge) search(what string, model porcupine.Model, records []history.Record, budget *models.Budget) {
	ops := make([]porcupine.Operation, len(records))
	for i := range records {
		r := &records[i]
		ops[i] = porcupine.Operation{ClientId: r.Client, Input: r, Call: r.Call, Return: r.Return}
	}
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int {
		switch {
		case a.Call < b.Call:
			return -1
		case a.Call > b.Call:
			return 1
		default:
			return 0
		}
	})
	result, info := porcupine.CheckOperationsVerbose(model, ops, 0)
	if result == porcupine.Ok && !budget.Exhausted() {
		return
	}
	v := Violation{Class: NoOrder, Detail: j.rules.Name + ": porcupine finds no order for " + what}
	if budget.Exhausted() {
		v.Class = NoVerdict
		v.Detail = j.rules.Name + ": porcupine's step budget ended before a verdict on " + what
	}
	budget.Used = 0 // The visualisation replays the steps of the partial orders.
	var page bytes.Buffer
	if err := porcupine.Visualize(model, info, &page); err == nil {
		v.HTML = page.Bytes()
	}
	j.found = append(j.found, v)
}
