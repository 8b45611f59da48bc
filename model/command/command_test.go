package command

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func drawCommand(t *rapid.T) Command {
	kinds := []Kind{Publish, PutConsumer, DeleteConsumer, Deliver, Ack, Nak, Progress, Term, Release, Reset, Tick, Purge,
		DeleteMsg, Follow, Copy, PutStream, CreateStream, UpdateStream, DeleteStream, RegisterServer, RemoveServer, Settle, PlaceStream,
		FormCatalog}
	bytes := rapid.SliceOfN(rapid.Byte(), 1, 400)
	number := rapid.Uint64()
	c := Command{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	delivery := func() {
		c.Consumer, c.StreamSeq = number.Draw(t, "consumer"), number.Draw(t, "stream seq")
		c.ConsumerSeq, c.Deliveries = number.Draw(t, "consumer seq"), number.Draw(t, "deliveries")
	}
	switch c.Kind {
	case Publish:
		c.Subject, c.Header, c.Payload = bytes.Draw(t, "subject"), bytes.Draw(t, "header"), bytes.Draw(t, "payload")
	case PutConsumer:
		c.Action, c.Name, c.Config = rapid.Byte().Draw(t, "action"), bytes.Draw(t, "name"), bytes.Draw(t, "config")
	case DeleteConsumer:
		c.Name, c.Consumer = bytes.Draw(t, "name"), number.Draw(t, "consumer")
	case Deliver:
		c.Consumer, c.Token = number.Draw(t, "consumer"), number.Draw(t, "token")
		c.Count, c.MaxBytes = number.Draw(t, "count"), number.Draw(t, "max bytes")
	case Ack, Progress, Release:
		delivery()
	case Nak:
		delivery()
		c.Delay = rapid.Int64().Draw(t, "delay")
	case Term:
		delivery()
		c.Text = bytes.Draw(t, "reason")
	case Purge:
		c.Text, c.StreamSeq, c.Keep = bytes.Draw(t, "filter"), number.Draw(t, "seq"), number.Draw(t, "keep")
	case DeleteMsg:
		c.StreamSeq = number.Draw(t, "seq")
	case Reset:
		c.Consumer, c.StreamSeq = number.Draw(t, "consumer"), number.Draw(t, "seq")
	case Follow:
		c.Version, c.Keep, c.StreamSeq = number.Draw(t, "origin"), number.Draw(t, "before"), number.Draw(t, "seq")
	case Copy:
		c.Version, c.From, c.StreamSeq = number.Draw(t, "origin"), number.Draw(t, "from"), number.Draw(t, "seq")
		c.Time = rapid.Int64().Draw(t, "time")
		c.Subject, c.Header, c.Payload = bytes.Draw(t, "subject"), bytes.Draw(t, "header"), bytes.Draw(t, "payload")
	case PutStream:
		c.Config, c.Version = bytes.Draw(t, "config"), number.Draw(t, "version")
	case RegisterServer:
		c.Config = bytes.Draw(t, "server")
	case RemoveServer:
		c.Version, c.Config = number.Draw(t, "server"), bytes.Draw(t, "view")
	case Settle:
		c.Version, c.Keep = number.Draw(t, "group"), number.Draw(t, "placement")
	case CreateStream, UpdateStream, PlaceStream:
		c.Account, c.Name, c.Config = bytes.Draw(t, "account"), bytes.Draw(t, "name"), bytes.Draw(t, "config")
	case DeleteStream:
		c.Account, c.Name, c.Version = bytes.Draw(t, "account"), bytes.Draw(t, "name"), number.Draw(t, "version")
	}
	return c
}

func TestBatchReadsBackAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(drawCommand), 0, 8).Draw(t, "commands")
		batch := AppendHeader(nil, 1, 77)
		SetTime(batch, 42)
		for i := range want {
			batch = Append(batch, &want[i])
		}
		r, err := Read(batch)
		if err != nil || r.Time() != 42 || r.Token() != 77 {
			t.Fatalf("header: time %d, token %d, error %v", r.Time(), r.Token(), err)
		}
		var got Command
		for i := range want {
			if !r.Next(&got) || r.Ordinal() != i {
				t.Fatalf("command %d is missing: %v", i, r.Err())
			}
			if diff := cmp.Diff(want[i], got); diff != "" {
				t.Fatalf("command %d differs (-want +got):\n%s", i, diff)
			}
		}
		if r.Next(&got) || r.Err() != nil {
			t.Fatalf("the batch does not end after its last command: %v", r.Err())
		}
	})
}

func TestPublishDoesNotAllocate(t *testing.T) {
	batch := make([]byte, 0, 1024)
	var c Command
	got := testing.AllocsPerRun(100, func() {
		batch = AppendPublish(AppendHeader(batch[:0], 1, 2), []byte("a.b"), nil, []byte("payload"))
		r, _ := Read(batch)
		for r.Next(&c) {
		}
	})
	if got != 0 {
		t.Fatalf("encoding and reading a publish allocates %v times", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(AppendPublish(AppendHeader(nil, 1, 2), []byte("a"), nil, []byte("x")))
	f.Add(Append(AppendHeader(nil, 1, 2), &Command{Kind: Nak, Delay: -1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(data)
		if err != nil {
			return
		}
		var c Command
		for r.Next(&c) {
			again := Append(nil, &c)
			var c2 Command
			r2, err := Read(append(AppendHeader(nil, 0, 0), again...))
			if err != nil || !r2.Next(&c2) {
				t.Fatalf("a command that was read cannot be written and read again: %v", err)
			}
			if diff := cmp.Diff(c, c2, cmp.Comparer(func(a, b []byte) bool { return string(a) == string(b) })); diff != "" {
				t.Fatalf("round trip differs: %s", diff)
			}
		}
	})
}
