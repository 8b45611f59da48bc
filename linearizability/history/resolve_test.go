package history

import "testing"

func TestUnansweredPublishIsDecidedByTheReadBack(t *testing.T) {
	var h History
	seen := h.Begin(Record{ID: 1, Kind: Publish, Subject: "a", Call: 1})
	h.Begin(Record{ID: 2, Kind: Publish, Subject: "a", Call: 2})
	h.Begin(Record{ID: 3, Kind: GetLast, Subject: "a", Call: 3})
	got := Resolve(h.Records, &Final{Last: 1, Messages: []Message{{Seq: 1, Subject: "a", Value: 1}}}, true)
	if len(got) != 1 || got[0].ID != h.Records[seen].ID || got[0].Seq != 1 || got[0].Return != Never {
		t.Fatalf("want the seen publish alone, with its sequence and an open interval: %+v", got)
	}
}

func TestUnansweredPublishStaysOpenWhenSomethingMayHaveRemovedIt(t *testing.T) {
	var h History
	h.Begin(Record{ID: 1, Kind: Publish, Subject: "a", Call: 1})
	h.End(h.Begin(Record{ID: 2, Kind: Purge, Call: 2}), OK, 3)
	if got := Resolve(h.Records, &Final{Last: 1}, true); len(got) != 2 {
		t.Fatalf("the publish may have been purged, but was dropped: %+v", got)
	}
	if got := Resolve(h.Records[:1], &Final{Last: 1}, false); len(got) != 1 {
		t.Fatalf("a limit may have removed it, but it was dropped: %+v", got)
	}
	if got := Resolve(h.Records, &Final{}, true); len(got) != 1 {
		t.Fatalf("no sequence is left for the publish, but it was kept: %+v", got)
	}
}
