package jsapi

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAckReplyReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.StringMatching(`[a-zA-Z0-9_=$-]{1,12}`)
		number := rapid.Uint64()
		want := AckReply{
			Stream: token.Draw(t, "stream"), Consumer: token.Draw(t, "consumer"), Delivered: number.Draw(t, "delivered"),
			StreamSeq: number.Draw(t, "sseq"), ConsumerSeq: number.Draw(t, "cseq"),
			TimeNanos: rapid.Int64Min(0).Draw(t, "time"), Pending: number.Draw(t, "pending"),
		}
		text := string(AppendAckReply(nil, &want))
		if got, ok := ParseAckReply(text); !ok || got != want {
			t.Fatalf("%s: got %+v, want %+v", text, got, want)
		}
		second := strings.Replace(text, "$JS.ACK.", "$JS.ACK.dom.HASH1234.", 1) + rapid.SampledFrom([]string{"", ".rnd"}).Draw(t, "extra")
		want.Domain, want.AccountHash = "dom", "HASH1234"
		if got, ok := ParseAckReply(second); !ok || got != want {
			t.Fatalf("%s: got %+v, want %+v", second, got, want)
		}
	})
}

func TestOtherSubjectsAreNoAckReplies(t *testing.T) {
	for _, text := range []string{
		"", "$JS.ACK.", "$JS.ACK.S.C.1.2.3.4", "$JS.ACK.S.C.1.2.3.4.5.6", "$JS.ACK.S.C.x.2.3.4.5", "$JS.ACK.S.C.-1.2.3.4.5",
		"$JS.ACK.S..1.2.3.4.5", "$JS.API.S.C.1.2.3.4.5", "$JS.ACK.S.C.1.2.3.4.5.", "$JS.ACK.S.C.1.2.3.4.99999999999999999999",
		"$JS.ACK" + strings.Repeat(".1", 40),
	} {
		if r, ok := ParseAckReply(text); ok {
			t.Errorf("%q is read as %+v", text, r)
		}
	}
}

func FuzzParseAckReply(f *testing.F) {
	f.Add("$JS.ACK.S.C.1.2.3.4.5")
	f.Add("$JS.ACK._.H.S.C.1.2.3.4.5.6")
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := ParseAckReply(text)
		if !ok || r.TimeNanos < 0 {
			return
		}
		r.Domain, r.AccountHash = "", ""
		if again, ok := ParseAckReply(string(AppendAckReply(nil, &r))); !ok || again != r {
			t.Fatalf("%q: %+v became %+v", text, r, again)
		}
	})
}

func TestAckBodies(t *testing.T) {
	for body, want := range map[string]AckBody{
		"":                       {Kind: AckAck},
		"+ACK":                   {Kind: AckAck},
		"+OK":                    {Kind: AckAck},
		"+ACK ":                  {Kind: AckUnknown},
		"-NAK":                   {Kind: AckNak},
		"-NAK 1s":                {Kind: AckNak, Delay: 1e9},
		`-NAK {"delay":5}`:       {Kind: AckNak, Delay: 5},
		`-NAK {"delay":-5}`:      {Kind: AckNak},
		`-NAK {"delay":`:         {Kind: AckNak},
		"-NAK soon":              {Kind: AckNak},
		"+WPI":                   {Kind: AckProgress},
		"+WPI x":                 {Kind: AckUnknown},
		"+TERM":                  {Kind: AckTerm},
		"+TERM  because of this": {Kind: AckTerm, Reason: []byte("because of this")},
		"+NXT":                   {Kind: AckNext},
		"+NXT 5":                 {Kind: AckNext, Next: []byte(" 5")},
		"hello":                  {Kind: AckUnknown},
	} {
		got := ParseAckBody([]byte(body))
		if got.Kind != want.Kind || got.Delay != want.Delay || string(got.Reason) != string(want.Reason) ||
			string(got.Next) != string(want.Next) {
			t.Errorf("%q: got %+v, want %+v", body, got, want)
		}
	}
}

func FuzzParseAckBody(f *testing.F) {
	for _, seed := range []string{"", "-NAK 1s", `-NAK {"delay":5}`, "+TERM x", "+NXT {}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := ParseAckBody(body); got.Delay < 0 {
			t.Fatalf("%q has the delay %d", body, got.Delay)
		}
	})
}

func TestPullBodies(t *testing.T) {
	for body, want := range map[string]PullRequest{
		"":                                 {Batch: 1},
		"  7 ":                             {Batch: 7},
		"-3":                               {Batch: 1},
		"whatever":                         {Batch: 1},
		`{}`:                               {Batch: 1},
		`{"batch":5,"x":1}`:                {Batch: 5},
		`{"max_bytes":-1}`:                 {Batch: 1},
		`{"no_wait":true}`:                 {Batch: 1, NoWait: true},
		`{"expires":-5}`:                   {Batch: 1, Expires: -5},
		`{"expires":4,"idle_heartbeat":2}`: {Batch: 1, Expires: 4, IdleHeartbeat: 2},
	} {
		if got, status := ParsePull([]byte(body)); status != "" || got != want {
			t.Errorf("%q: got %+v, status %q", body, got, status)
		}
	}
	for body, want := range map[string]string{
		`{"idle_heartbeat":2}`:             "400 Bad Request - heartbeat value too large",
		`{"expires":3,"idle_heartbeat":2}`: "400 Bad Request - heartbeat value too large",
		`{"batch":`:                        "400 Bad Request - unexpected end of JSON input",
	} {
		if _, status := ParsePull([]byte(body)); status != want {
			t.Errorf("%q: status %q, want %q", body, status, want)
		}
	}
}

func TestPullLimits(t *testing.T) {
	limited := &ConsumerConfig{MaxBatch: 10, MaxExpires: time.Second, MaxBytes: 100}
	for _, c := range []struct {
		r      PullRequest
		config *ConsumerConfig
		want   string
	}{
		{PullRequest{Batch: 10, Expires: time.Second, MaxBytes: 100}, limited, ""},
		{PullRequest{Batch: 11}, limited, "409 Exceeded MaxRequestBatch of 10"},
		{PullRequest{Expires: time.Second + 1}, limited, "409 Exceeded MaxRequestExpires of 1s"},
		{PullRequest{MaxBytes: 101}, limited, "409 Exceeded MaxRequestMaxBytes of 100"},
		{PullRequest{}, &ConsumerConfig{DeliverSubject: "x"}, StatusPushBased},
		{PullRequest{MinPending: 1}, limited, "400 Bad Request - Not a Overflow Priority consumer"},
		{PullRequest{ID: "x"}, limited, "400 Bad Request - Not a Pinned Client Priority consumer"},
		{PullRequest{Priority: 10}, limited, "400 Bad Request - Priority must be between 0 and 9"},
		{PullRequest{Group: "g"}, limited, ""},
	} {
		if got := c.r.Check(c.config); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.r, got, c.want)
		}
	}
}

func TestExpiresAtSaturates(t *testing.T) {
	for _, c := range []struct {
		expires time.Duration
		want    int64
	}{{0, 0}, {5, 105}, {-5, 99}, {math.MaxInt64, math.MaxInt64}} {
		r := PullRequest{Expires: c.expires}
		if got := r.ExpiresAt(100); got != c.want {
			t.Errorf("expires %d: got %d, want %d", c.expires, got, c.want)
		}
	}
}

func FuzzParsePull(f *testing.F) {
	for _, seed := range []string{"", "5", `{"batch":1,"expires":5}`, `{"no_wait":true}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, status := ParsePull(body)
		if status == "" && (r.Batch < 1 || r.MaxBytes < 0 || r.IdleHeartbeat < 0) {
			t.Fatalf("%q: %+v", body, r)
		}
	})
}

// FuzzConfigs reads configurations as requests do. What passes Normalize has to survive its canonical form.
func FuzzConfigs(f *testing.F) {
	f.Add([]byte(`{"name":"S","subjects":["a.*"],"max_age":1000000000}`), []byte(`{"durable_name":"C","backoff":[1,2]}`))
	f.Fuzz(func(t *testing.T, streamBody, consumerBody []byte) {
		var stream StreamConfigRequest
		if Decode(streamBody, &stream, true) != nil || stream.Normalize(limitless(), stream.Pedantic) != nil {
			return
		}
		text := stream.StreamConfig.AppendJSON(nil)
		again, err := ParseStreamConfig(text)
		if err != nil || string(again.AppendJSON(nil)) != string(text) {
			t.Fatalf("%s became %+v: %v", text, again, err)
		}
		var consumer ConsumerConfig
		if Decode(consumerBody, &consumer, true) != nil || consumer.Normalize(again, limitless(), false) != nil {
			return
		}
		text = consumer.AppendJSON(nil)
		if parsed, err := ParseConsumerConfig(text); err != nil || string(parsed.AppendJSON(nil)) != string(text) {
			t.Fatalf("%s became %+v: %v", text, parsed, err)
		}
	})
}
