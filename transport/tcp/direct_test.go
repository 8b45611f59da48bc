package tcp

import (
	"io"
	"testing"
	"time"
)

// TestDeadlineOfAnEarlierWriteDoesNoHarm leaves a deadline behind that has passed, as a write does that had to wait.
func TestDeadlineOfAnEarlierWriteDoesNoHarm(t *testing.T) {
	conn, client, _ := pair(t, time.Minute)
	passed := time.Unix(1, 0)
	if err := conn.sock.SetWriteDeadline(passed); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		conn.Queue([]byte(text))
		conn.Flush()
		got := make([]byte, len(text))
		if _, err := io.ReadFull(client, got); err != nil || string(got) != text {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}
