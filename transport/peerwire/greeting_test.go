package peerwire

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestGreetingsAreReadAsTheyWereSent(t *testing.T) {
	for _, g := range []*Greeting{
		{Hello: &Hello{
			Version: Version, ID: 1<<64 - 1, Name: "n", Cluster: "c", Address: "h:1", Addresses: []string{"h:2"}, ClientURLs: []string{"h:3"},
			Tags: []string{"az:1"}, JetStream: true, Domain: "d", Catalog: 7, Expected: 3, StoreMax: -1, MemoryMax: 5, User: "u", Password: "p",
		}, Boot: 1<<64 - 1, Session: 9},
		{Verdict: 1 << 63},
		{Refused: RefusedName, Text: "no"},
		{},
	} {
		data, err := AppendGreeting([]byte("before"), g)
		if err != nil {
			t.Fatal(err)
		}
		data = data[len("before"):]
		n, err := GreetingLength(data[:GreetingHeadBytes])
		if err != nil || n != len(data)-GreetingHeadBytes {
			t.Fatalf("the length of %d bytes is %d, %v", len(data), n, err)
		}
		got, err := ParseGreeting(data[GreetingHeadBytes:])
		if err != nil || !reflect.DeepEqual(got, g) {
			t.Errorf("got %+v and %v, want %+v", got, err, g)
		}
	}
}

func TestGreetingsAreBounded(t *testing.T) {
	for _, head := range []string{"CONNECT ", "WEIR\x00\x00\x00\x00", "WEIR\xff\xff\xff\xff", "WEIR\x00\x00\x02\x00"} {
		if n, err := GreetingLength([]byte(head)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q is a greeting of %d bytes, %v", head, n, err)
		}
	}
	long := strings.Repeat("x", GreetingBytesMax)
	if _, err := AppendGreeting(nil, &Greeting{Text: long}); err == nil {
		t.Error("a greeting that nobody takes is sent")
	}
}

// TestIntroductionsAreChecked changes one thing of an introduction that is right.
func TestIntroductionsAreChecked(t *testing.T) {
	good := Hello{Version: Version, ID: 1, Name: "n", Cluster: "c"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Hello){
		"id":      func(h *Hello) { h.ID = 0 },
		"name":    func(h *Hello) { h.Name = "" },
		"line":    func(h *Hello) { h.Name = "n\n[INF] all is well" },
		"long":    func(h *Hello) { h.Cluster = strings.Repeat("c", nameBytesMax+1) },
		"list":    func(h *Hello) { h.Addresses = slices.Repeat([]string{"h:1"}, listMax+1) },
		"address": func(h *Hello) { h.Address = strings.Repeat("a", addressBytesMax+1) },
		"tag":     func(h *Hello) { h.Tags = []string{"\x1b[2J"} },
	} {
		h := good
		change(&h)
		if err := h.Check(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	good.Version++
	if err := good.Check(); !errors.Is(err, ErrVersion) {
		t.Errorf("another version gave %v", err)
	}
}

func FuzzParseGreeting(f *testing.F) {
	f.Add([]byte(`{"hello":{"version":1,"id":"1","name":"n","catalog":"0"},"boot":"7"}`))
	f.Add([]byte(`{"refused":"name","text":"no"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := ParseGreeting(data)
		if err != nil {
			return
		}
		if _, err := AppendGreeting(nil, g); err != nil && len(data) < GreetingBytesMax/8 {
			t.Fatalf("what was read can not be sent: %v", err)
		}
	})
}
