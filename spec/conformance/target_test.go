package conformance

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"weir/model/jsapi"
)

var (
	target = flag.String("target", "", "URL of the server to drive; the reference server in process when empty")
	long   = flag.Bool("long", false, "make all runs that -rapid.checks asks for, however long they take")
)

// budgetSeconds bounds each random test without -long.
const budgetSeconds = 3

// conn is the connection that all tests share: to the target. reference is the one to the reference server.
var conn, reference *nats.Conn

// requestTimeout is far above what any answer takes; its end fails the test.
const requestTimeout = 10 * time.Second

func TestMain(m *testing.M) {
	// A failing run is printed whole; files of it would only lie about. -rapid.checks asks for more or fewer runs.
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.checks": "1000"} { // order-free: flags
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	started, err := server.NewServer(&server.Options{
		DontListen: true, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true, ServerName: "reference",
		JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 1 << 40,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	started.Start()
	defer started.WaitForShutdown()
	defer started.Shutdown()
	if !started.ReadyForConnections(requestTimeout) {
		fmt.Fprintln(os.Stderr, "the reference server does not get ready")
		return 1
	}
	if reference, err = connect(nats.InProcessServer(started)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer reference.Close()
	conn = reference
	if *target != "" {
		if conn, err = connect(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer conn.Close()
	}
	return m.Run()
}

// connect connects to the target and makes a stream that stays there: with it the reference server does not remove the
// directory of the account behind the last stream, which races with the creation of the next.
func connect(options ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(*target, append(options, nats.Timeout(requestTimeout))...)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	stays := []byte(`{"name":"STAYS","subjects":["stays"],"retention":"limits","storage":"file"}`)
	if _, err := nc.Request("$JS.API.STREAM.CREATE.STAYS", stays, requestTimeout); err != nil {
		return nil, fmt.Errorf("create a stream: %w", err)
	}
	return nc, nil
}

// fataler is what *testing.T and *rapid.T have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// call makes an API request and decodes the answer into out. It returns the error of the API, nil when there is none.
func call(t fataler, subject string, request, out any) *jsapi.Error {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatalf("encode %s: %v", subject, err)
	}
	if request == nil {
		body = nil
	}
	answer, err := conn.Request("$JS.API."+subject, body, requestTimeout)
	if err != nil {
		t.Fatalf("request %s %s: %v", subject, body, err)
	}
	var failed struct {
		Error *jsapi.Error `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &failed); err != nil {
		t.Fatalf("answer to %s: %v in %s", subject, err, answer.Data)
	}
	if failed.Error != nil {
		return failed.Error
	}
	if out != nil {
		if err := json.Unmarshal(answer.Data, out); err != nil {
			t.Fatalf("answer to %s: %v in %s", subject, err, answer.Data)
		}
	}
	return nil
}

// mustCall is call for requests that have to succeed.
func mustCall(t fataler, subject string, request, out any) {
	t.Helper()
	if err := call(t, subject, request, out); err != nil {
		t.Fatalf("request %s: %v", subject, err)
	}
}

// createStream makes a stream from a config and returns the normalised one, without what servers add to it.
func createStream(t fataler, config map[string]any) *jsapi.StreamConfig {
	t.Helper()
	var created struct {
		Config *jsapi.StreamConfig `json:"config"`
	}
	mustCall(t, "STREAM.CREATE."+config["name"].(string), config, &created)
	return created.Config
}

// text prints an answer with its error for comparison.
func text(err *jsapi.Error, format string, args ...any) string {
	if err != nil {
		return fmt.Sprintf("error %d %d %q", err.Code, err.ErrCode, err.Description)
	}
	return fmt.Sprintf(format, args...)
}

// block makes a header block of fields, "" of none.
func block(fields [][2]string) string {
	if len(fields) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("NATS/1.0\r\n")
	for _, f := range fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	b.WriteString("\r\n")
	return b.String()
}

// differs says that Weir's answer is meant to differ from that of the reference server, and why; on the reference server
// it reports true, so that the caller skips the comparison.
func differs(why string) bool { return *target == "" && why != "" }
