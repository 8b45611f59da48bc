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
	tr.opened(7, "10.0.0.1:5")
	tr.received(7, []wire.Op{{Kind: wire.KindPub, Subject: []byte("foo"), Payload: []byte("hello")}})
	tr.sent(7, []byte("MSG foo 1 5\r\nhel"))
	tr.sent(7, []byte("lo\r\n"))
	tr.closed(7, wire.ClientClosed)
	tr.sent(7, []byte("PONG\r\n"))
	for _, want := range []string{
		"10.0.0.1:5 - cid:7 - Client connection created", `<<- [PUB foo  5]`, `<<- MSG_PAYLOAD: [\"hel\"...]`, `->> [MSG foo 1  5]`,
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

func TestNobodyTracesForNobody(t *testing.T) {
	tr := newTracer(slog.New(slog.NewTextHandler(&strings.Builder{}, nil)), 0)
	if tr != nil {
		t.Fatal("a tracer without anybody to read it")
	}
	tr.opened(1, "x")
	tr.received(1, nil)
	tr.sent(1, []byte("PONG\r\n"))
	tr.closed(1, wire.ClientClosed)
}
