package api

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// reference is the reference server in this process with a client.
type reference struct {
	nc *nats.Conn
}

func startReference(t *testing.T) *reference {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		ServerName: "srv", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		NoLog: true, NoSigs: true, JetStreamMaxMemory: 1 << 40, JetStreamMaxStore: 1 << 40,
	})
	if err != nil {
		t.Fatalf("reference server: %v", err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the reference server does not start")
	}
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatalf("connect to the reference server: %v", err)
	}
	t.Cleanup(nc.Close)
	return &reference{nc: nc}
}

// request returns all answers up to the one that the last request, a plain INFO, gets behind them.
func (r *reference) request(t *testing.T, tail string, header nats.Header, body string) []published {
	t.Helper()
	sub, err := r.nc.SubscribeSync(nats.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe()
	msg := nats.NewMsg("$JS.API." + tail)
	msg.Reply, msg.Data, msg.Header = sub.Subject, []byte(body), header
	if err := r.nc.PublishMsg(msg); err != nil {
		t.Fatal(err)
	}
	var answers []published
	for {
		m, err := sub.NextMsg(2 * time.Second)
		if errors.Is(err, nats.ErrNoResponders) {
			return append(answers, published{header: []byte("Status: 503")})
		}
		if err != nil {
			return answers
		}
		answers = append(answers, published{header: headerText(m.Header), body: m.Data})
		if status := m.Header.Get("Status"); status != "" || m.Header.Get("Nats-Num-Pending") == "" {
			return answers
		}
	}
}

func headerText(h nats.Header) []byte {
	var b bytes.Buffer
	h2 := make([]string, 0, len(h))
	for name, values := range h {
		for _, v := range values {
			h2 = append(h2, name+": "+v)
		}
	}
	// Sorting makes the text comparable; the client library keeps no order.
	for i := range h2 {
		for j := i + 1; j < len(h2); j++ {
			if h2[j] < h2[i] {
				h2[i], h2[j] = h2[j], h2[i]
			}
		}
	}
	fmt.Fprint(&b, strings.Join(h2, "\n"))
	return b.Bytes()
}

// ourHeader brings a header block of ours into the form of headerText.
func ourHeader(t *testing.T, block []byte) []byte {
	t.Helper()
	if len(block) == 0 {
		return nil
	}
	h, err := nats.DecodeHeadersMsg(block)
	if err != nil {
		t.Fatalf("header block %q: %v", block, err)
	}
	return headerText(h)
}

var variable = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`"(created|ts|time|first_ts|last_ts)":"[1-9][^"]*"`), `"$1":"T"`},
	{regexp.MustCompile(`Nats-Time-Stamp: [^\n]*`), `Nats-Time-Stamp: T`},
	{regexp.MustCompile(`"name":"[0-9A-Za-z]{8}"`), `"name":"RANDOM"`},
	{regexp.MustCompile(`"api":\{[^}]*\}`), `"api":{}`},
	{regexp.MustCompile(`"num_waiting":0,`), ``},
	// How far a mirror is: the reference begins to copy in the background, and nothing copies in a world.
	{regexp.MustCompile(`"mirror":\{"name":"[^"]*","lag":[^{}]*(\{[^{}]*\}[^{}]*)?\}`), `"mirror":{}`},
}

func comparable(text []byte) string {
	for _, v := range variable {
		text = v.pattern.ReplaceAll(text, []byte(v.by))
	}
	return string(text)
}

// TestAnswersEqualThoseOfTheReferenceServer runs testdata/reference.txt on both. Each line is one of
//
//	req  <subject after $JS.API.> <body>     answers have to be equal
//	level <n> <subject> <body>               the same with the header Nats-Required-Api-Level
//	pub  <subject> <payload>                 stores a message on both
//	hpub <subject> <payload>                 the same with a header
//	ours <subject> <error code> <body>       differs on purpose: ours refuses with the code
func TestAnswersEqualThoseOfTheReferenceServer(t *testing.T) {
	file, err := os.Open("testdata/reference.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ref, w := startReference(t), newWorld()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		first, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
		switch verb {
		case "pub", "hpub":
			msg := nats.NewMsg(first)
			msg.Data = []byte(rest)
			var block []byte
			if verb == "hpub" {
				msg.Header.Set("K", "v")
				block = []byte("NATS/1.0\r\nK: v\r\n\r\n")
			}
			if _, err := ref.nc.RequestMsg(msg, 5*time.Second); err != nil || !w.publish(first, block, msg.Data) {
				t.Fatalf("line %d: publish: %v", n, err)
			}
		case "req":
			compare(t, n, line, ref.request(t, first, nil, rest), ours(w, first, nil, rest))
		case "level":
			tail, body, _ := strings.Cut(rest, " ")
			block := []byte("NATS/1.0\r\nNats-Required-Api-Level: " + first + "\r\n\r\n")
			header := nats.Header{"Nats-Required-Api-Level": []string{first}}
			compare(t, n, line, ref.request(t, tail, header, body), ours(w, tail, block, body))
		case "ours":
			code, body, _ := strings.Cut(rest, " ")
			got := ours(w, first, nil, body)
			if len(got) != 1 || !strings.Contains(string(got[0].body), `"err_code":`+code) {
				t.Errorf("line %d: %s\ngot %q", n, line, got)
			}
		default:
			t.Fatalf("line %d: unknown verb %q", n, verb)
		}
	}
}

func ours(w *world, tail string, header []byte, body string) []published {
	answers, outcome := w.request(tail, header, body)
	if outcome == NoResponders {
		return []published{{header: []byte("NATS/1.0 503\r\n\r\n")}}
	}
	return answers
}

func compare(t *testing.T, n int, line string, want, got []published) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("line %d: %s\nreference gives %d answers, ours %d: %s", n, line, len(want), len(got), want)
		return
	}
	for i := range want {
		wantText := comparable(want[i].header) + "\n" + comparable(want[i].body)
		gotText := comparable(ourHeader(t, got[i].header)) + "\n" + comparable(got[i].body)
		if wantText != gotText {
			t.Errorf("line %d: %s\nreference %s\nours      %s", n, line, wantText, gotText)
		}
	}
}
