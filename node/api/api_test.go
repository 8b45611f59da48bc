package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir/model/jsapi"
)

func (w *world) mustRequest(t *testing.T, tail, body string) string {
	t.Helper()
	answers, outcome := w.request(tail, nil, body)
	if outcome != Handled || len(answers) != 1 || strings.Contains(string(answers[0].body), `"error"`) {
		t.Fatalf("%s %s: outcome %d, answers %q", tail, body, outcome, answers)
	}
	return string(answers[0].body)
}

func filledWorld(t *testing.T, messages int) *world {
	t.Helper()
	w := newWorld()
	w.mustRequest(t, "STREAM.CREATE.S", `{"name":"S","subjects":["a.*"],"allow_direct":true}`)
	for i := range messages {
		if !w.publish(fmt.Sprintf("a.%d", i%7), nil, fmt.Appendf(nil, "body %d", i)) {
			t.Fatal("nobody stores the message")
		}
	}
	return w
}

// TestAnswersDoNotDependOnWhenStorageAnswers runs the same requests with completions at once and with completions in
// later steps.
func TestAnswersDoNotDependOnWhenStorageAnswers(t *testing.T) {
	requests := [][2]string{
		{"DIRECT.GET.S", `{"seq":1,"batch":500}`},
		{"DIRECT.GET.S", `{"seq":3,"batch":64}`},
		{"DIRECT.GET.S", `{"seq":3,"batch":65,"next_by_subj":"a.1"}`},
		{"DIRECT.GET.S", `{"seq":3,"batch":500,"max_bytes":1000}`},
		{"DIRECT.GET.S", `{"multi_last":["a.*"]}`},
		{"DIRECT.GET.S", `{"seq":7}`},
		{"STREAM.MSG.GET.S", `{"seq":7}`},
		{"STREAM.LIST", ``},
		{"CONSUMER.CREATE.S.C", `{"stream_name":"S","config":{"durable_name":"C"}}`},
		{"STREAM.PURGE.S", `{"seq":5}`},
		{"STREAM.DELETE.S", ``},
	}
	now, late := filledWorld(t, 300), filledWorld(t, 300)
	late.deferring = true
	for _, r := range requests {
		want, _ := now.request(r[0], nil, r[1])
		got, _ := late.request(r[0], nil, r[1])
		if len(want) == 0 || len(want) != len(got) {
			t.Fatalf("%s %s: %d answers at once, %d later", r[0], r[1], len(want), len(got))
		}
		for i := range want {
			if !bytes.Equal(want[i].header, got[i].header) || !bytes.Equal(want[i].body, got[i].body) {
				t.Fatalf("%s %s: answer %d\nat once %s%s\nlater   %s%s", r[0], r[1], i,
					want[i].header, want[i].body, got[i].header, got[i].body)
			}
		}
	}
}

func TestBatchSkipsMessagesThatVanishWhileItIsRead(t *testing.T) {
	w := filledWorld(t, 200)
	w.deferring = true
	w.replies = nil
	w.api.Handle(&Request{
		Account: "A", Subject: "$JS.API.DIRECT.GET.S", Reply: "_INBOX.1", Body: []byte(`{"seq":1,"batch":200}`),
	})
	w.deferred[0]() // the barrier: the first window is being read
	w.deferred = w.deferred[1:]
	group := w.catalog.Stream("A", "S").Group
	for seq := uint64(100); seq < 150; seq++ {
		delete(w.messages[group], seq) // what storage lost
	}
	w.drain()
	var bodies []string
	for _, r := range w.replies {
		if len(r.body) > 0 {
			bodies = append(bodies, string(r.body))
		}
	}
	if len(bodies) != 150 || bodies[98] != "body 98" || bodies[99] != "body 149" {
		t.Fatalf("%d messages, around the gap %q", len(bodies), bodies[97:101])
	}
	if last := string(w.replies[len(w.replies)-1].header); !strings.HasPrefix(last, "NATS/1.0 204 EOB\r\n") {
		t.Fatalf("the batch ends with %q", last)
	}
}

func TestLastMessageThatVanishesWhileItIsReadIsNotAbsence(t *testing.T) {
	for _, subject := range []string{"DIRECT.GET.S", "STREAM.MSG.GET.S"} {
		w := newWorld()
		w.mustRequest(t, "STREAM.CREATE.S", `{"name":"S","subjects":["a"],"allow_direct":true,"max_msgs_per_subject":1}`)
		w.publish("a", nil, []byte("old"))
		w.deferring, w.replies = true, nil
		w.api.Handle(&Request{Account: "A", Subject: "$JS.API." + subject, Reply: "_INBOX.1", Body: []byte(`{"last_by_subj":"a"}`)})
		w.deferred[0]() // the barrier: the message is being read
		w.deferred = w.deferred[1:]
		w.publish("a", nil, []byte("new"))
		delete(w.messages[w.catalog.Stream("A", "S").Group], 1)
		w.drain()
		if len(w.replies) != 1 || !strings.Contains(string(w.replies[0].header)+string(w.replies[0].body), `new`) &&
			!strings.Contains(string(w.replies[0].body), "bmV3") {
			t.Errorf("%s: %q", subject, w.replies)
		}
	}
}

func TestUnreadableMessageIsNotAbsent(t *testing.T) {
	w := filledWorld(t, 3)
	w.unreadable = map[uint64]bool{2: true}
	got, _ := w.request("DIRECT.GET.S", nil, `{"seq":2}`)
	if len(got) != 1 || string(got[0].header) != "NATS/1.0 500 Message Can Not Be Read\r\n\r\n" {
		t.Errorf("direct get: %q", got)
	}
	got, _ = w.request("STREAM.MSG.GET.S", nil, `{"seq":2}`)
	if len(got) != 1 || !strings.Contains(string(got[0].body), `"err_code":10051`) {
		t.Errorf("get: %q", got)
	}
	got, _ = w.request("DIRECT.GET.S", nil, `{"seq":1,"batch":3}`)
	if len(got) != 2 || string(got[1].header) != "NATS/1.0 500 Message Can Not Be Read\r\n\r\n" {
		t.Errorf("batch: %q", got)
	}
}

func TestTooManySubjectsAreRefused(t *testing.T) {
	w := newWorld()
	w.mustRequest(t, "STREAM.CREATE.S", `{"name":"S","subjects":["a.*"],"allow_direct":true}`)
	for i := range jsapi.MultiLastSubjectsMax + 1 {
		if i == jsapi.MultiLastSubjectsMax {
			got, _ := w.request("DIRECT.GET.S", nil, `{"multi_last":["a.*"]}`)
			if len(got) != jsapi.MultiLastSubjectsMax+1 {
				t.Fatalf("at the limit: %d answers", len(got))
			}
		}
		w.publish(fmt.Sprintf("a.%d", i), nil, []byte("x"))
	}
	got, _ := w.request("DIRECT.GET.S", nil, `{"multi_last":["a.*"]}`)
	if len(got) != 1 || string(got[0].header) != "NATS/1.0 413 Too Many Results\r\n\r\n" {
		t.Fatalf("beyond the limit: %q", got)
	}
}

func TestUnknownSubjectsAreIgnored(t *testing.T) {
	w := filledWorld(t, 1)
	for _, tail := range []string{"", "STREAM", "STREAM.INFO", "STREAM.INFO.", "STREAM.INFO.S.x", "STREAM.TEMPLATE.NAMES",
		"CONSUMER.INFO.S", "CONSUMER.INFO.S.C.x", "CONSUMER.CREATE.", "DIRECT.GET", "NAMES", "META.LEADER.STEPDOWN",
		"STREAM..INFO.S", "CONSUMER.DURABLE.CREATE.S"} {
		if answers, outcome := w.request(tail, nil, ""); outcome != Ignored || len(answers) != 0 {
			t.Errorf("%q: outcome %d, answers %q", tail, outcome, answers)
		}
	}
}

func TestPullRequestsGoToTheirConsumerOnly(t *testing.T) {
	w := filledWorld(t, 1)
	w.mustRequest(t, "CONSUMER.CREATE.S.C", `{"stream_name":"S","config":{"durable_name":"C"}}`)
	for tail, want := range map[string]Outcome{
		"CONSUMER.MSG.NEXT.S.C": Handled, "CONSUMER.MSG.NEXT.S.D": NoResponders, "CONSUMER.MSG.NEXT.T.C": NoResponders,
	} {
		w.pulls = nil
		answers, outcome := w.request(tail, nil, "1")
		if outcome != want || len(answers) != 0 || (len(w.pulls) == 1) != (want == Handled) {
			t.Errorf("%s: outcome %d, answers %q, pulls %q", tail, outcome, answers, w.pulls)
		}
	}
	header := []byte("NATS/1.0\r\nNats-Required-Api-Level: 99\r\n\r\n")
	answers, _ := w.request("CONSUMER.MSG.NEXT.S.C", header, "1")
	if len(answers) != 1 || string(answers[0].header) != "NATS/1.0 412 Required Api Level\r\n\r\n" {
		t.Errorf("pull that needs a higher level: %q", answers)
	}
}

func TestAdvisoriesGoOutWhenSomebodyListens(t *testing.T) {
	w := newWorld()
	subjects := []string{jsapi.SubjectAPIAudit, jsapi.SubjectStreamCreated + "S", jsapi.SubjectStreamUpdated + "S",
		jsapi.SubjectStreamDeleted + "S", jsapi.SubjectConsumerCreated + "S.C", jsapi.SubjectConsumerDeleted + "S.C"}
	for _, subject := range subjects {
		w.interest[subject] = true
	}
	var got []string
	run := func(tail, body string) {
		w.request(tail, nil, body)
		for _, r := range w.replies {
			if strings.HasPrefix(r.subject, "$JS.EVENT") {
				var event jsapi.Event
				if err := json.Unmarshal(r.body, &event); err != nil || len(event.ID) != 22 || event.Time == 0 {
					t.Fatalf("advisory %s: %v", r.body, err)
				}
				got = append(got, strings.TrimPrefix(r.subject, "$JS.EVENT.ADVISORY."))
			}
		}
	}
	run("STREAM.CREATE.S", `{"name":"S"}`)
	run("STREAM.CREATE.S", `{"name":"S"}`)
	run("STREAM.UPDATE.S", `{"name":"S"}`)
	run("CONSUMER.CREATE.S.C", `{"stream_name":"S","config":{"durable_name":"C"}}`)
	run("CONSUMER.CREATE.S.C", `{"stream_name":"S","config":{"durable_name":"C"}}`)
	run("STREAM.MSG.GET.S", `{"seq":1}`)
	w.publish("S", nil, []byte("x"))
	run("STREAM.MSG.GET.S", `{"seq":1}`)
	run("STREAM.DELETE.S", ``)
	want := []string{
		"STREAM.CREATED.S", "API", "API", "STREAM.UPDATED.S", "API", "CONSUMER.CREATED.S.C", "API", "API",
		"API", // the message that is not there; the one that is has no audit
		"CONSUMER.DELETED.S.C", "STREAM.DELETED.S", "API",
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
}

func TestCountersCountAnswersAndErrors(t *testing.T) {
	w := filledWorld(t, 1)
	before := w.api.Stats("A")
	w.request("STREAM.INFO.S", nil, "")
	w.request("STREAM.INFO.T", nil, "")
	w.request("STREAM.MSG.GET.S", nil, `{"seq":1}`)
	w.request("DIRECT.GET.S", nil, `{"seq":1}`)
	after := w.api.Stats("A")
	if after.Total-before.Total != 2 || after.Errors-before.Errors != 1 {
		t.Fatalf("counted %d requests and %d errors", after.Total-before.Total, after.Errors-before.Errors)
	}
	if w.api.Stats("B").Total != 0 || w.api.Total() != after {
		t.Fatalf("another account has %+v, all have %+v", w.api.Stats("B"), w.api.Total())
	}
}

func TestPagesCoverAListOnce(t *testing.T) {
	for _, c := range []struct{ total, offset, limit, lo, hi, shown int }{
		{0, 0, 3, 0, 0, 0}, {7, 0, 3, 0, 3, 0}, {7, 6, 3, 6, 7, 6}, {7, 7, 3, 7, 7, 7}, {7, 99, 3, 7, 7, 7}, {7, -1, 3, 0, 3, 0},
	} {
		p, lo, hi := page(c.total, c.offset, c.limit)
		if lo != c.lo || hi != c.hi || p.Offset != c.shown || p.Total != c.total || p.Limit != c.limit {
			t.Errorf("page(%d, %d, %d) = %+v, [%d, %d)", c.total, c.offset, c.limit, p, lo, hi)
		}
	}
}

func TestRequestsWithoutReplyAreCarriedOut(t *testing.T) {
	w := filledWorld(t, 3)
	w.replies = nil
	w.api.Handle(&Request{Account: "A", Subject: "$JS.API.STREAM.PURGE.S"})
	w.api.Handle(&Request{Account: "A", Subject: "$JS.API.DIRECT.GET.S", Body: []byte(`{"seq":1}`)})
	s, _ := w.Stream(w.catalog.Stream("A", "S").Group)
	if len(w.replies) != 0 || s.State().Msgs != 0 {
		t.Fatalf("%d replies, %d messages left", len(w.replies), s.State().Msgs)
	}
}

func FuzzHandle(f *testing.F) {
	for _, e := range table {
		f.Add(prefix+e.words+"S.C", []byte(`{"seq":1}`))
		f.Add(prefix+e.words+"S", []byte(`{"stream_name":"S","name":"S","config":{}}`))
	}
	f.Fuzz(func(t *testing.T, subject string, body []byte) {
		w := newWorld()
		w.request("STREAM.CREATE.S", nil, `{"name":"S","subjects":["a.*"],"allow_direct":true}`)
		w.publish("a.b", nil, []byte("x"))
		w.api.Handle(&Request{Account: "A", Subject: subject, Reply: "r", Body: body})
	})
}
