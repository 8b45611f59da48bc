package models

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"weir/linearizability/history"
)

func TestCoversFollowsTheRulesOfSubjects(t *testing.T) {
	for _, c := range []struct {
		filter, subject string
		want            bool
	}{
		{"a.b", "a.b", true}, {"a.b", "a.c", false}, {"a.*", "a.b", true}, {"a.*", "a.b.c", false},
		{"a.>", "a.b.c", true}, {"a.>", "a", false}, {">", "a", true}, {"*", "a", true}, {"a", "a.b", false}, {"a.b", "a", false},
	} {
		if got := Covers(c.filter, c.subject); got != c.want {
			t.Errorf("Covers(%q, %q) = %v", c.filter, c.subject, got)
		}
	}
}

func judge(model porcupine.Model, records []history.Record) bool {
	var ops []porcupine.Operation
	for i := range records {
		ops = append(ops, porcupine.Operation{
			ClientId: records[i].Client, Input: &records[i], Call: records[i].Call, Return: records[i].Return,
		})
	}
	return porcupine.CheckOperations(model, ops)
}

// TestUnansweredUpdateMayExplainARefusal: the refused writer was told a revision that only the silent one can have
// written.
func TestUnansweredUpdateMayExplainARefusal(t *testing.T) {
	records := []history.Record{
		{ID: 1, Kind: history.Publish, Subject: "k", Outcome: history.OK, Seq: 1, Call: 1, Return: 2},
		{ID: 2, Kind: history.Publish, Subject: "k", Call: 3, Return: history.Never,
			ExpectSubject: history.Expected{Set: true, Seq: 1}},
		{ID: 3, Kind: history.Publish, Subject: "k", Outcome: history.Rejected, Seq: 2, Observed: true, Call: 4, Return: 5,
			ExpectSubject: history.Expected{Set: true, Seq: 1}},
	}
	if !judge(Key(records, &Budget{Limit: 1000}), records) {
		t.Fatal("refused")
	}
	if judge(Key(records[:1], &Budget{Limit: 1000}), append(records[:1:1], records[2])) {
		t.Fatal("without the silent writer nobody can have written revision 2")
	}
}

func TestStreamModelKnowsLimitsPurgesAndDuplicates(t *testing.T) {
	ok := func(r history.Record, at int64) history.Record {
		r.Stream, r.Outcome, r.Call, r.Return = "S", history.OK, at, at
		return r
	}
	records := []history.Record{
		ok(history.Record{ID: 1, Kind: history.Publish, Subject: "a", MsgID: "m", Seq: 1}, 1),
		ok(history.Record{ID: 2, Kind: history.Publish, Subject: "a", MsgID: "m", Seq: 1, Duplicate: true}, 2),
		ok(history.Record{ID: 3, Kind: history.Publish, Subject: "a", Seq: 2}, 3),
		ok(history.Record{ID: 4, Kind: history.Publish, Subject: "b", Seq: 3}, 4),
		ok(history.Record{ID: 5, Kind: history.Info, Seq: 3, Messages: 2}, 5), // One per subject is kept.
		ok(history.Record{ID: 6, Kind: history.Purge, Subject: "b", Messages: 1}, 6),
		ok(history.Record{ID: 7, Kind: history.GetLast, Subject: "b"}, 7),
		ok(history.Record{ID: 8, Kind: history.DeleteMsg, At: 2}, 8),
		ok(history.Record{ID: 9, Kind: history.GetSeq, At: 2}, 9),
	}
	limits := Limits{MaxMsgsPerSubject: 1}
	if !judge(Stream(records, limits, &Budget{Limit: 1000}), records) {
		t.Fatal("refused")
	}
	records[4].Messages = 3
	if judge(Stream(records, limits, &Budget{Limit: 1000}), records) {
		t.Fatal("the limit of one message per subject is not enforced")
	}
}
