package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var kills = flag.Int("kills", 3, "how often TestKilledServerKeepsWhatItAcknowledged kills the server")

// TestKilledServerKeepsWhatItAcknowledged kills the process again and again while messages with ids are published. After
// each restart every acknowledged message is at the sequence of its acknowledgement, and no id is there twice.
func TestKilledServerKeepsWhatItAcknowledged(t *testing.T) {
	s := startServer(t, t.TempDir())
	acked := map[string]uint64{} // id -> sequence
	next, checked := 0, uint64(0)
	for round := range *kills {
		next = publishUntilKilled(t, s, next, acked)
		s.start()
		checked = checkAcked(t, s, acked, checked)
		if t.Failed() {
			t.Fatalf("after kill %d", round+1)
		}
	}
	t.Logf("%d acknowledged messages survived %d kills", len(acked), *kills)
}

// publishUntilKilled publishes with ids until the server is killed at a random moment, notes the acknowledgements, and
// returns the number of the next id.
func publishUntilKilled(t *testing.T, s *server, next int, acked map[string]uint64) int {
	t.Helper()
	nc := s.connect(nats.NoReconnect())
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(256), jetstream.WithPublishAsyncTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Duplicates: time.Hour})
	if err != nil {
		t.Fatalf("%v:\n%s", err, s.log)
	}
	killed := time.AfterFunc(time.Duration(50+rand.IntN(250))*time.Millisecond, func() {
		_ = s.cmd.Process.Signal(syscall.SIGKILL)
	})
	defer killed.Stop()
	futures := map[string]jetstream.PubAckFuture{}
	for nc.IsConnected() {
		id := strconv.Itoa(next)
		f, err := js.PublishAsync("s.a", []byte(id), jetstream.WithMsgID(id))
		if err != nil {
			break
		}
		next++
		futures[id] = f
	}
	<-s.ended
	nc.Close()
	for id, f := range futures {
		select {
		case ack := <-f.Ok():
			acked[id] = ack.Sequence
		default: // never acknowledged: it may be there or not
		}
	}
	return next
}

// checkAcked reads the stream behind sequence from and compares it with the acknowledgements. It returns the last
// sequence it has seen.
func checkAcked(t *testing.T, s *server, acked map[string]uint64, from uint64) uint64 {
	t.Helper()
	nc := s.connect()
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := js.Stream(ctx, "S")
	if err != nil {
		t.Fatalf("%v:\n%s", err, s.log)
	}
	last := stream.CachedInfo().State.LastSeq
	if n := stream.CachedInfo().State.Msgs; n != last {
		t.Errorf("the stream holds %d messages and ends at sequence %d", n, last)
	}
	found := map[string]uint64{}
	if err := read(ctx, stream, from, last, found); err != nil {
		t.Fatal(err)
	}
	for id, seq := range acked {
		if seq > from && found[id] != seq {
			t.Errorf("message %s was acknowledged at sequence %d and is at %d", id, seq, found[id])
		}
	}
	return last
}

// read fills found with the sequences of the ids behind sequence from up to last.
func read(ctx context.Context, stream jetstream.Stream, from, last uint64, found map[string]uint64) error {
	if from >= last {
		return nil
	}
	c, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from + 1,
	})
	if err != nil {
		return err
	}
	messages, err := c.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for seq := from; seq < last; {
		m, err := messages.Next(jetstream.NextMaxWait(patience))
		if err != nil {
			return fmt.Errorf("after sequence %d of %d: %w", seq, last, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		seq = meta.Sequence.Stream
		id := m.Headers().Get(jetstream.MsgIDHeader)
		if id != string(m.Data()) {
			return fmt.Errorf("sequence %d holds the id %q and the body %q", seq, id, m.Data())
		}
		if before, twice := found[id]; twice {
			return errors.Join(errTwice, fmt.Errorf("%s at %d and %d", id, before, seq))
		}
		found[id] = seq
	}
	return nil
}

var errTwice = errors.New("an id is stored twice")
