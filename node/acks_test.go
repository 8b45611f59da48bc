package node_test

import "testing"

func TestConsumerWithoutAcksDoesNotListenForThem(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true,"no_responders":true`)
	r.pub(1, "$JS.API.STREAM.CREATE.S", "", `{"name":"S","subjects":["s"],"retention":"limits","storage":"memory"}`)
	r.pub(1, "$JS.API.CONSUMER.CREATE.S.none", "", `{"stream_name":"S","config":{"name":"none","ack_policy":"none"}}`)
	r.pub(1, "$JS.API.CONSUMER.CREATE.S.asks", "", `{"stream_name":"S","config":{"name":"asks","ack_policy":"explicit"}}`)
	r.pub(1, "s", "", "x")
	r.send(1, "SUB reply 1\r\nSUB inbox 2\r\n")
	for _, c := range []struct{ consumer, want string }{
		{"none", "HMSG reply 1 65 65\r\nNATS/1.0 503\r\nNats-Subject: $JS.ACK.S.none.1.1.1.1700000000.0\r\n\r\n\r\n"},
		{"asks", "MSG reply 1 0\r\n\r\n"},
	} {
		r.pub(1, "$JS.API.CONSUMER.MSG.NEXT.S."+c.consumer, "inbox", "")
		r.read(1)
		r.pub(1, "$JS.ACK.S."+c.consumer+".1.1.1.1700000000.0", "reply", "+ACK")
		if got := r.read(1); got != c.want {
			t.Errorf("an ack to consumer %s is answered %q, want %q", c.consumer, got, c.want)
		}
	}
}

// TestAckOfWhatWasNeverDeliveredIsNotConfirmed acknowledges a message that the consumer has not handed out.
func TestAckOfWhatWasNeverDeliveredIsNotConfirmed(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true,"no_responders":true`)
	r.pub(1, "$JS.API.STREAM.CREATE.S", "", `{"name":"S","subjects":["s"]}`)
	r.pub(1, "$JS.API.CONSUMER.CREATE.S.c", "", `{"stream_name":"S","config":{"name":"c","ack_policy":"explicit"}}`)
	r.pub(1, "s", "", "x")
	r.send(1, "SUB reply 1\r\n")
	r.read(1)
	r.pub(1, "$JS.ACK.S.c.1.1.1.1700000000.0", "reply", "+ACK")
	if got := r.read(1); got != "" {
		t.Errorf("confirmed with %q", got)
	}
}

// TestUnconfirmedAckIsRecordedSoonAndConfirmedOneAtOnce looks at what reaches the log: an ack that nobody waits for
// stays for the company of others, for two milliseconds at most.
func TestUnconfirmedAckIsRecordedSoonAndConfirmedOneAtOnce(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	r.pub(1, "$JS.API.STREAM.CREATE.S", "", `{"name":"S","subjects":["s"]}`)
	r.pub(1, "$JS.API.CONSUMER.CREATE.S.c", "", `{"stream_name":"S","config":{"name":"c","ack_policy":"explicit"}}`)
	r.send(1, "SUB inbox 1\r\n")
	for range 3 {
		r.pub(1, "s", "", "x")
	}
	r.pub(1, "$JS.API.CONSUMER.MSG.NEXT.S.c", "inbox", "3")
	appends := 0
	for _, step := range []struct {
		what string
		do   func()
		want int
	}{
		{"an ack without a reply", func() { r.pub(1, "$JS.ACK.S.c.1.1.1.1700000000.0", "", "") }, 0},
		{"another", func() { r.pub(1, "$JS.ACK.S.c.1.2.2.1700000000.0", "", "") }, 0},
		{"two milliseconds", func() { r.sleep(2e6) }, 1},
		{"an ack with a reply", func() { r.pub(1, "$JS.ACK.S.c.1.3.3.1700000000.0", "inbox", "") }, 1},
	} {
		before := r.appends
		step.do()
		if got := r.appends - before; got != step.want {
			t.Errorf("%s: %d appends, want %d", step.what, got, step.want)
		}
		appends += r.appends - before
	}
	if appends != 2 {
		t.Errorf("%d appends in all", appends)
	}
}
