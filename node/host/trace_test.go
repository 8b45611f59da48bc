package host

import (
	"log/slog"
	"strings"
	"testing"

	"weir/transport/wire"
)

func TestTraceShowsNoSecrets(t *testing.T) {
	got := withoutSecrets([]byte(`{"user":"joe","pass":"hunter2","auth_token":"hunter2","jwt":"hunter2","sig":"hunter2","new":"hunter2","echo":true}`))
	if strings.Contains(got, "hunter2") || !strings.Contains(got, `"user":"joe"`) || !strings.Contains(got, `"echo":true`) {
		t.Errorf("got %s", got)
	}
	if got := withoutSecrets([]byte(`{"pass":"hunter2"`)); got != redacted {
		t.Errorf("arguments that are no JSON are shown as %s", got)
	}
}

func TestTraceCutsPayloads(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: LevelTrace}))
	tr := newTracer(log, 3)
	tr.opened("10.0.0.1:5 - cid:7", 7)
	tr.received(7, []wire.Op{{Kind: wire.KindPub, Subject: []byte("foo"), Payload: []byte("hello")}})
	tr.sent(7, []byte("MSG foo 1 5\r\nhel"))
	tr.sent(7, []byte("lo\r\n"))
	tr.closed(7, wire.ClientClosed)
	tr.sent(7, []byte("PONG\r\n"))
	for _, want := range []string{
		"10.0.0.1:5 - cid:7 - Client connection created", `<<- [PUB foo 5]`, `<<- MSG_PAYLOAD: [\"hel\"...]`, `->> [MSG foo 1 5]`,
		`->> MSG_PAYLOAD: [\"hel\"...]`, "Client connection closed: Client Closed",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "PONG") {
		t.Error("a closed connection is still traced")
	}
}

func TestTraceShowsControlLinesAsTheyAreSent(t *testing.T) {
	b := func(text string) []byte { return []byte(text) }
	for want, op := range map[string]wire.Op{
		"PUB a 2":        {Kind: wire.KindPub, Subject: b("a"), Payload: b("xy")},
		"PUB a r 0":      {Kind: wire.KindPub, Subject: b("a"), Reply: b("r")},
		"HPUB a r 12 14": {Kind: wire.KindPub, Subject: b("a"), Reply: b("r"), Header: b("NATS/1.0\r\n\r\n"), Payload: b("xy")},
		"MSG a 1 2":      {Kind: wire.KindMsg, Subject: b("a"), Sid: b("1"), Payload: b("xy")},
		"HMSG a 1 12 12": {Kind: wire.KindMsg, Subject: b("a"), Sid: b("1"), Header: b("NATS/1.0\r\n\r\n")},
		"SUB a 1":        {Kind: wire.KindSub, Subject: b("a"), Sid: b("1")},
		"SUB a q 1":      {Kind: wire.KindSub, Subject: b("a"), Queue: b("q"), Sid: b("1")},
		"UNSUB 1":        {Kind: wire.KindUnsub, Sid: b("1")},
		"UNSUB 1 5":      {Kind: wire.KindUnsub, Sid: b("1"), Max: 5},
		"PING":           {Kind: wire.KindPing},
	} {
		if got := describe(&op); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNobodyTracesForNobody(t *testing.T) {
	tr := newTracer(slog.New(slog.NewTextHandler(&strings.Builder{}, nil)), 0)
	if tr != nil {
		t.Fatal("a tracer without anybody to read it")
	}
	tr.opened("x", 1)
	tr.received(1, nil)
	tr.sent(1, []byte("PONG\r\n"))
	tr.closed(1, wire.ClientClosed)
}
