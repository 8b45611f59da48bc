package workload

import (
	"testing"

	"weir/sim/plan"
	"weir/sim/trace"
	"weir/sim/world"
)

func TestRepliesAreRead(t *testing.T) {
	m, ok := parseReply([]byte("$JS.ACK.ORDERS.c0.2.7.9.1767225600000000001.3"))
	if want := (metadata{count: 2, streamSeq: 7, consumerSeq: 9, pending: 3, time: 1767225600000000001}); !ok || m != want {
		t.Fatalf("%+v, %v", m, ok)
	}
	for _, wrong := range []string{"", "$JS.ACK.S.c.1.1.1.1", "$JS.ACK.S.c.1.x.1.1.1", "a.b.c.d.1.1.1.1.1"} {
		if _, ok := parseReply([]byte(wrong)); ok {
			t.Errorf("%q was read", wrong)
		}
	}
}

func TestValuesThatWereChangedAreNotValues(t *testing.T) {
	for payload, want := range map[string]uint64{
		"#12:": 12, "#12:abc": 12, "#12:abd": 0, "12:abc": 0, "#:": 0, "#x:": 0, "": 0, "#12": 0,
	} {
		if got := valueOf([]byte(payload)); got != want {
			t.Errorf("value of %q is %d, want %d", payload, got, want)
		}
	}
}

func TestHeadersAreRead(t *testing.T) {
	header := []byte("NATS/1.0 404 Message Not Found\r\nNats-Sequence: 12\r\nNats-Subject:a.b\r\n\r\n")
	if status(header) != 404 || field(header, "Nats-Sequence") != "12" || field(header, "Nats-Subject") != "a.b" || field(header, "X") != "" {
		t.Fatal("a header was misread")
	}
	if status([]byte("NATS/1.0\r\nA: 1\r\n\r\n")) != 0 || status(nil) != 0 {
		t.Fatal("a header without status has one")
	}
}

func TestAnswersThatDoNotDecideLeaveTheOutcomeUnknown(t *testing.T) {
	for _, c := range []struct {
		e    apiError
		want bool
	}{
		{apiError{Code: 400, ErrCode: 10071}, true}, {apiError{Code: 404, ErrCode: 10037}, true},
		{apiError{Code: 503, ErrCode: 10077}, true}, {apiError{Code: 503, ErrCode: 10008}, false},
		{apiError{Code: 500, ErrCode: 10118}, false},
	} {
		if c.e.decides() != c.want {
			t.Errorf("error %d decides: %v", c.e.ErrCode, !c.want)
		}
	}
}

// TestCalmPlanIsCarriedOutWhole runs a plan without faults: no outcome is unknown.
func TestCalmPlanIsCarriedOutWhole(t *testing.T) {
	p := plan.Generate(5, plan.Options{})
	p.Faults = nil
	tr := &trace.Trace{}
	w := world.New(p, tr)
	l := New(p, w, tr)
	w.Start(l)
	l.Start()
	if !w.RunUntil(600_000_000_000, l.Done) {
		t.Fatalf("not done:%s", l.Waiting())
	}
	if len(l.History.Records) == 0 {
		t.Fatal("no operations")
	}
	for i := range l.History.Records {
		if r := &l.History.Records[i]; r.Outcome == 0 {
			t.Fatalf("operation %d (%s) has no answer", r.ID, r.Kind)
		}
	}
}
