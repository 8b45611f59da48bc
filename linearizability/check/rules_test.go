package check

import (
	"testing"

	"weir/linearizability/history"
)

// story is three acknowledged publishes on one subject and their complete read-back; the cases spoil it.
func story() ([]history.Record, *history.Final) {
	var records []history.Record
	final := &history.Final{Last: 3}
	for i := range uint64(3) {
		id := i + 1
		records = append(records, history.Record{
			ID: id, Kind: history.Publish, Stream: "S", Subject: "a", MsgID: string(rune('x' + i)),
			Outcome: history.OK, Seq: id, Call: int64(10 * id), Return: int64(10*id + 5),
		})
		final.Messages = append(final.Messages, history.Message{
			Seq: id, Subject: "a", Value: id, MsgID: records[i].MsgID, Time: int64(id),
		})
	}
	return records, final
}

func TestEachRuleIsEnforced(t *testing.T) {
	cases := []struct {
		name  string
		want  Class
		rules Rules
		spoil func(*[]history.Record, *history.Final)
	}{
		{name: "untouched"},
		{name: "acknowledged message is gone", want: Lost, spoil: func(_ *[]history.Record, f *history.Final) {
			f.Messages = append(f.Messages[:1], f.Messages[2])
		}},
		{name: "stream ends early", want: Lost, spoil: func(_ *[]history.Record, f *history.Final) {
			f.Messages, f.Last = f.Messages[:2], 2
		}},
		{name: "oldest message is gone by the limit", rules: Rules{MaxMsgsPerSubject: 2},
			spoil: func(_ *[]history.Record, f *history.Final) { f.Messages = f.Messages[1:] }},
		{name: "newest message is gone by the limit", want: Lost, rules: Rules{MaxMsgsPerSubject: 2},
			spoil: func(_ *[]history.Record, f *history.Final) { f.Messages = f.Messages[:2] }},
		{name: "limit is off by one", want: Limit, rules: Rules{MaxMsgsPerSubject: 2}},
		{name: "message without a writer", want: Invented, spoil: func(_ *[]history.Record, f *history.Final) {
			f.Messages[1].Value = 77
		}},
		{name: "entry applied twice", want: Repeated, spoil: func(_ *[]history.Record, f *history.Final) {
			f.Messages = append(f.Messages, history.Message{Seq: 4, Subject: "a", Value: 3, MsgID: "z", Time: 3})
			f.Last = 4
		}},
		{name: "id stored twice within the window", want: Repeated, rules: Rules{Window: 10, Forgets: true},
			spoil: func(r *[]history.Record, f *history.Final) { (*r)[1].MsgID, f.Messages[1].MsgID = "x", "x" }},
		{name: "id stored again after the window", rules: Rules{Window: 1, Forgets: true},
			spoil: func(r *[]history.Record, f *history.Final) { (*r)[1].MsgID, f.Messages[1].MsgID = "x", "x" }},
		{name: "expectation ignored", want: Expectation, spoil: func(r *[]history.Record, _ *history.Final) {
			(*r)[2].ExpectSubject = history.Expected{Set: true, Seq: 1}
		}},
		{name: "message seen after its purge", want: Risen, spoil: func(r *[]history.Record, f *history.Final) {
			*r = append(*r, history.Record{ID: 9, Kind: history.Purge, Stream: "S", Outcome: history.OK,
				Messages: 3, Call: 50, Return: 51})
			f.Messages = f.Messages[2:]
		}},
		{name: "refused publish is stored", want: Invented, spoil: func(r *[]history.Record, _ *history.Final) {
			(*r)[2].Outcome, (*r)[2].Seq = history.Rejected, 0
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			records, final := story()
			if c.spoil != nil {
				c.spoil(&records, final)
			}
			c.rules.Name = "S"
			found := Check(records, final, &c.rules)
			if c.want == "" && len(found) != 0 {
				t.Fatalf("refused: %v", details(found))
			}
			for i := range found {
				if found[i].Class == c.want {
					return
				}
			}
			if c.want != "" {
				t.Fatalf("want %s, found %v", c.want, details(found))
			}
		})
	}
}

func TestExhaustedBudgetIsNoVerdict(t *testing.T) {
	records, final := story()
	found := SearchOrder(records, final, &Rules{Name: "S"}, 1)
	if len(found) == 0 || found[0].Class != NoVerdict {
		t.Fatalf("want no verdict, found %v", details(found))
	}
}
