package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// contents returns name, size and bytes of every file below a directory but the lock, which names its holder.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "lock" {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %d %q\n", path, len(text), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestInspectPrintsWhatIsStoredAndChangesNothing(t *testing.T) {
	s := startServer(t, t.TempDir())
	js, err := jetstream.New(s.connect())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "c1", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := js.Publish(t.Context(), "orders.new", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := consumer.Next(jetstream.FetchMaxWait(patience))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.DoubleAck(t.Context()); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(s.dir, "data")
	if out, code := command(t, "inspect", data); code != 1 || !strings.Contains(out, "stop it first") {
		t.Errorf("with the server running: exit code %d, %s", code, out)
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		s.end(signal)
		before := contents(t, data)
		out, code := command(t, "inspect", data, "--log")
		for _, want := range []string{
			"stream '$G > ORDERS' (group 10)", "publish subject \"orders.new\" header 0 bytes payload 1 bytes",
			"state: 5 messages", "sequences [1,5]", "consumer c1: delivered 1 (stream 1), ack floor 1 (stream 1)",
		} {
			if code != 0 || !strings.Contains(out, want) || strings.Contains(out, "DAMAGE") {
				t.Errorf("after %v: exit code %d, no %q in\n%s", signal, code, want, out)
			}
		}
		if contents(t, data) != before {
			t.Errorf("after %v: inspection changed files", signal)
		}
		if signal == syscall.SIGKILL {
			s.start()
		}
	}
	if out, code := command(t, "inspect", t.TempDir()); code != 1 || !strings.Contains(out, "no data directory") {
		t.Errorf("of an empty directory: exit code %d, %s", code, out)
	}
}
