package check

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/linearizability/history"
)

// run is a small history with the truth from which it was made.
type run struct {
	records []history.Record
}

// drawLegal executes operations one after the other on a plain stream and draws an interval around each.
func drawLegal(t *rapid.T) run {
	var out run
	last := uint64(0)
	value := map[uint64]uint64{}
	tail := map[string]uint64{}
	count := rapid.IntRange(1, 9).Draw(t, "operations")
	for i := range count {
		point := int64(100 + 10*i)
		r := history.Record{
			ID: uint64(i + 1), Client: i, Stream: "S", Outcome: history.OK,
			Call:    point - rapid.Int64Range(0, 35).Draw(t, "before"),
			Return:  point + rapid.Int64Range(0, 35).Draw(t, "after"),
			Subject: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "subject"),
		}
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0, 1, 2:
			r.Kind = history.Publish
			want := history.Expected{Set: true, Seq: rapid.Uint64Range(0, last+1).Draw(t, "expected")}
			actual := tail[r.Subject]
			switch rapid.IntRange(0, 3).Draw(t, "expectation") {
			case 1:
				r.ExpectSubject = want
			case 2:
				r.ExpectSubject = history.Expected{Set: true, Seq: actual}
			case 3:
				r.ExpectLast, actual = want, last
			}
			if (r.ExpectSubject.Set || r.ExpectLast.Set) && r.ExpectSubject.Seq+r.ExpectLast.Seq != actual {
				r.Outcome, r.Seq, r.Observed, r.Code = history.Rejected, actual, true, 10071
				break
			}
			last++
			r.Seq, value[last], tail[r.Subject] = last, r.ID, last
		case 3, 4:
			r.Kind, r.Seq = history.GetLast, tail[r.Subject]
			r.Value = value[r.Seq]
		case 5:
			r.Kind, r.Subject, r.At = history.GetSeq, "", rapid.Uint64Range(1, last+1).Draw(t, "at")
			if v := value[r.At]; v != 0 {
				r.Seq, r.Value = r.At, v
			}
		case 6:
			r.Kind, r.Subject, r.Seq, r.Messages = history.Info, "", last, last
		}
		out.records = append(out.records, r)
	}
	return out
}

// spoil changes a few facts, which may or may not make the history illegal.
func spoil(t *rapid.T, r *run) {
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		i := rapid.IntRange(0, len(r.records)-1).Draw(t, "which")
		a := &r.records[i]
		switch rapid.IntRange(0, 3).Draw(t, "change") {
		case 0:
			shift := rapid.Int64Range(-60, 60).Draw(t, "shift")
			a.Call, a.Return = a.Call+shift, a.Return+shift
		case 1: // Two publishes swap their places.
			b := &r.records[rapid.IntRange(0, len(r.records)-1).Draw(t, "other")]
			if a.Stored() && b.Stored() {
				a.Seq, b.Seq = b.Seq, a.Seq
				r.rename(map[uint64]uint64{a.Seq: a.ID, b.Seq: b.ID})
			}
		case 2: // A read sees another message of its subject.
			b := &r.records[rapid.IntRange(0, len(r.records)-1).Draw(t, "other")]
			if a.Kind == history.GetLast && b.Stored() && b.Subject == a.Subject {
				a.Seq, a.Value = b.Seq, b.ID
			}
		case 3:
			if a.Kind == history.GetLast {
				a.Seq, a.Value = 0, 0
			}
		}
	}
}

// rename lets reads of a sequence see its new writer.
func (r *run) rename(writers map[uint64]uint64) {
	for i := range r.records {
		a := &r.records[i]
		if v := writers[a.Seq]; v != 0 && (a.Kind == history.GetLast || a.Kind == history.GetSeq) {
			a.Value = v
		}
	}
}

func (r *run) final() *history.Final {
	f := &history.Final{}
	for i := range r.records {
		if a := &r.records[i]; a.Stored() {
			f.Messages = append(f.Messages, history.Message{Seq: a.Seq, Subject: a.Subject, Value: a.ID})
			f.Last = max(f.Last, a.Seq)
		}
	}
	slices.SortFunc(f.Messages, func(a, b history.Message) int { return int(a.Seq) - int(b.Seq) })
	return f
}

func explain(records []history.Record) string {
	text := ""
	for i := range records {
		text += fmt.Sprintf("%+v\n", records[i])
	}
	return text
}

// TestTheTwoJudgesAgree holds the exact checker against Porcupine's search on legal and on spoiled histories.
func TestTheTwoJudgesAgree(t *testing.T) {
	legal, illegal := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := drawLegal(t)
		spoil(t, &r)
		rules := &Rules{Name: "S"}
		exact := Check(r.records, r.final(), rules)
		search := SearchOrder(r.records, r.final(), rules, StepsMax)
		if (len(exact) == 0) != (len(search) == 0) {
			t.Fatalf("exact: %v\nsearch: %v\n%s", exact, details(search), explain(r.records))
		}
		if len(exact) == 0 {
			legal++
		} else {
			illegal++
		}
	})
	if legal == 0 || illegal == 0 {
		t.Fatalf("the generator made %d legal and %d illegal histories; both are needed", legal, illegal)
	}
}

func details(found []Violation) []string {
	var out []string
	for i := range found {
		out = append(out, string(found[i].Class)+": "+found[i].Detail)
	}
	return out
}

// TestUnansweredPublishesNeverMakeALegalHistoryIllegal turns answers into silence, which cannot make a legal history
// illegal for either judge.
func TestUnansweredPublishesNeverMakeALegalHistoryIllegal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawLegal(t)
		final := r.final()
		for i := range r.records {
			if a := &r.records[i]; a.Kind == history.Publish && rapid.Bool().Draw(t, "silent") {
				a.Outcome, a.Return, a.Seq, a.Observed, a.Code = history.Unknown, history.Never, 0, false, 0
			}
		}
		rules := &Rules{Name: "S"}
		if v := Check(r.records, final, rules); len(v) != 0 {
			t.Fatalf("exact: %v\n%s", v, explain(r.records))
		}
		if v := SearchOrder(r.records, final, rules, StepsMax); len(v) != 0 {
			t.Fatalf("search: %v\n%s", details(v), explain(r.records))
		}
	})
}
