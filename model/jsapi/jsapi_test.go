package jsapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEveryErrorCodeHasOneDescription(t *testing.T) {
	for code, row := range errorRows {
		if row.http < 400 || row.http > 599 || row.text == "" {
			t.Errorf("code %d: %+v", code, row)
		}
		parts := strings.Count(row.text, "{")
		values := make([]string, parts)
		for i := range values {
			values[i] = "<{value}>"
		}
		err := code.With(values...)
		if strings.Count(err.Description, "<{value}>") != parts || err.ErrCode != code || err.Code != row.http {
			t.Errorf("code %d filled: %+v", code, err)
		}
		if !code.Is(err) || code.Is(nil) || (code + 1).Is(err) {
			t.Errorf("code %d is not recognised", code)
		}
	}
}

func TestErrorJSONEqualsThatOfTheEncoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		err := &Error{
			Code: rapid.IntRange(0, 999).Draw(t, "code"), ErrCode: Code(rapid.Uint16().Draw(t, "err_code")),
			Description: rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("<>&\"\\\u2028\x7f\x00a\n\t\b"))),
				rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text"),
		}
		want, _ := json.Marshal(err)
		if got := err.AppendJSON(nil); string(got) != string(want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

func TestPubAckJSON(t *testing.T) {
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{AppendPubAck(nil, PubAck{Stream: "S", Seq: 12}), `{"stream":"S","seq":12}`},
		{AppendPubAck(nil, PubAck{Stream: "S", Seq: 12, Domain: "D"}), `{"stream":"S","domain":"D","seq":12}`},
		{AppendPubAck(nil, PubAck{Stream: "S", Seq: 2, Duplicate: true}), `{"stream":"S","seq":2,"duplicate": true}`},
		{AppendPubAckError(nil, "S", CodeStreamSealed.Err()),
			`{"error":{"code":400,"err_code":10109,"description":"invalid operation on sealed stream"},"stream":"S","seq":0}`},
		{AppendPubAckError(nil, "S", CodeStreamWrongLastSequence.With("5")),
			`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 5"},"stream":"S","seq":0}`},
	} {
		if string(c.got) != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func TestHotEncodersDoNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 256)
	reply := AckReply{Stream: "S", Consumer: "C", Delivered: 1, StreamSeq: 2, ConsumerSeq: 3, TimeNanos: 4, Pending: 5}
	got := testing.AllocsPerRun(100, func() {
		dst = AppendPubAck(dst[:0], PubAck{Stream: "ORDERS", Seq: 1 << 60})
		dst = AppendAckReply(dst[:0], &reply)
	})
	if got != 0 {
		t.Fatalf("%v allocations", got)
	}
}

func TestTimeJSON(t *testing.T) {
	for text, want := range map[string]Time{
		`"0001-01-01T00:00:00Z"`:                0,
		`"2020-01-01T00:00:00Z"`:                1577836800000000000,
		`"2020-01-01T01:00:00.000000001+01:00"`: 1577836800000000001,
		`"1969-12-31T23:59:59Z"`:                -1000000000,
		`"0500-01-01T00:00:00Z"`:                -1 << 63,
		`"9999-01-01T00:00:00Z"`:                1<<63 - 1,
	} {
		got := Time(7)
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %d, error %v", text, got, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := Time(rapid.Int64().Draw(t, "nanos"))
		text, _ := json.Marshal(want)
		var got Time
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Fatalf("%d became %s became %d: %v", want, text, got, err)
		}
	})
}

func TestEnumsReadWhatTheyWrite(t *testing.T) {
	type all struct {
		A RetentionPolicy
		B DiscardPolicy
		C StorageType
		D Compression
		E PersistMode
		F DeliverPolicy
		G AckPolicy
		H ReplayPolicy
		I PriorityPolicy
		J ConsumerAction
	}
	sizes := []int{len(retentionNames), len(discardNames), len(storageNames), len(compressionNames), len(persistNames),
		len(deliverNames), len(ackNames), len(replayNames), len(priorityNames), len(actionNames)}
	for i := range 6 {
		at := func(field int) uint8 { return uint8(i % sizes[field]) }
		want := all{RetentionPolicy(at(0)), DiscardPolicy(at(1)), StorageType(at(2)), Compression(at(3)), PersistMode(at(4)),
			DeliverPolicy(at(5)), AckPolicy(at(6)), ReplayPolicy(at(7)), PriorityPolicy(at(8)), ConsumerAction(at(9))}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got all
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Fatalf("%+v became %s became %+v: %v", want, text, got, err)
		}
	}
	var a all
	for _, field := range "ABCDEFGHIJ" {
		if err := json.Unmarshal([]byte(`{"`+string(field)+`":"bogus"}`), &a); err == nil {
			t.Errorf("field %c takes a bogus name", field)
		}
	}
	if _, err := json.Marshal(RetentionPolicy(9)); err == nil || RetentionPolicy(9).String() != "unknown(9)" {
		t.Errorf("a value without name can be written")
	}
}

func TestDecodeErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"foo":1}`:            `invalid JSON: json: unknown field "foo"`,
		`zzz`:                  `invalid JSON: invalid character 'z' looking for beginning of value at offset 1`,
		`{"retention":"foo"}`:  `invalid JSON: can not unmarshal "\"foo\""`,
		`{`:                    `invalid JSON: unexpected EOF`,
		`{"name":"a"} garbage`: `invalid JSON: invalid character 'g' looking for beginning of value at offset 14`,
	} {
		err := Decode([]byte(body), new(StreamConfigRequest), true)
		if !CodeInvalidJSON.Is(err) || err.Description != want {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
	if err := Decode(nil, new(StreamConfigRequest), true); err != nil {
		t.Errorf("empty body: %v", err)
	}
	var config StreamConfigRequest
	if err := Decode([]byte(`{"foo":1,"name":"S"}`), &config, false); err != nil || config.Name != "S" {
		t.Errorf("lenient: %v", err)
	}
	if err := Decode([]byte(`{"name":`), &config, false); !CodeInvalidJSON.Is(err) {
		t.Errorf("lenient, broken: %v", err)
	}
}

func limitless() *Limits { return &Limits{Account: Unlimited()} }

func TestNormalizingTwiceChangesNothing(t *testing.T) {
	config := StreamConfig{Name: "S", Subjects: []string{"a"}, MaxAge: time.Minute, Metadata: map[string]string{
		"k": "v", MetadataServerVersion: "x", MetadataRequiredLevel: "77"}}
	if err := config.Normalize(limitless(), false); err != nil {
		t.Fatal(err)
	}
	again := config.Clone()
	if err := again.Normalize(limitless(), true); err != nil {
		t.Fatal(err)
	}
	if got, want := string(again.AppendJSON(nil)), string(config.AppendJSON(nil)); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if config.DuplicateWindow != time.Minute || config.Metadata[MetadataRequiredLevel] != "0" || len(config.Metadata) != 2 {
		t.Fatalf("normalised: %s", config.AppendJSON(nil))
	}
	if shown := config.Shown(); len(shown.Metadata) != 4 || len(config.Metadata) != 2 || !shown.Equal(&config) {
		t.Fatalf("shown: %v", shown.Metadata)
	}
	consumer := ConsumerConfig{Durable: "C", AckPolicy: AckExplicit}
	if err := consumer.Normalize(&config, limitless(), false); err != nil {
		t.Fatal(err)
	}
	second := consumer.Clone()
	if err := second.Normalize(&config, limitless(), true); err != nil || !second.Equal(&consumer) {
		t.Fatalf("consumer changes when normalised again: %v", err)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	at := Time(5)
	config := StreamConfig{
		Subjects: []string{"a"}, Metadata: map[string]string{"a": "b"}, Placement: &Placement{Tags: []string{"t"}},
		Mirror:           &StreamSource{OptStartTime: &at, External: &ExternalStream{}, Consumer: &StreamConsumerSource{}},
		Sources:          []*StreamSource{{Name: "x", SubjectTransforms: []SubjectTransform{{Source: "a"}}}, nil},
		SubjectTransform: &SubjectTransform{}, Republish: &Republish{},
	}
	before := string(config.AppendJSON(nil))
	clone := config.Clone()
	if string(clone.AppendJSON(nil)) != before {
		t.Fatalf("clone differs: %s", clone.AppendJSON(nil))
	}
	clone.Subjects[0], clone.Metadata["a"], clone.Placement.Tags[0] = "x", "x", "x"
	*clone.Mirror.OptStartTime, clone.Mirror.External.APIPrefix, clone.Mirror.Consumer.Name = 9, "x", "x"
	clone.Sources[0].SubjectTransforms[0].Source = "x"
	clone.SubjectTransform.Source, clone.Republish.Source = "x", "x"
	if got := string(config.AppendJSON(nil)); got != before {
		t.Fatalf("a change of the clone shows in the original: %s", got)
	}
}

func TestUpdateRules(t *testing.T) {
	base := func() *StreamConfig {
		c := StreamConfig{Name: "S", DenyDelete: true}
		if err := c.Normalize(limitless(), false); err != nil {
			t.Fatal(err)
		}
		return &c
	}
	for name, change := range map[string]func(*StreamConfig){
		"name":        func(c *StreamConfig) { c.Name = "T" },
		"storage":     func(c *StreamConfig) { c.Storage = MemoryStorage },
		"retention":   func(c *StreamConfig) { c.Retention = WorkQueueRetention },
		"deny delete": func(c *StreamConfig) { c.DenyDelete = false },
		"persistence": func(c *StreamConfig) { c.PersistMode = AsyncPersist },
	} {
		changed := base()
		change(changed)
		if err := changed.CheckUpdate(base()); !CodeStreamInvalidConfig.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	sealed := base()
	sealed.Sealed, sealed.MaxAge = true, time.Hour
	if err := sealed.CheckUpdate(base()); err != nil || sealed.MaxAge != 0 || sealed.Discard != DiscardNew || !sealed.DenyPurge {
		t.Errorf("sealing: %v, %s", err, sealed.AppendJSON(nil))
	}
	if err := base().CheckUpdate(sealed); !CodeStreamInvalidConfig.Is(err) {
		t.Errorf("unsealing: %v", err)
	}
}
