package stream

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/header"
	"weir/model/jsapi"
)

// teller runs one story: a file of commands, each with the effects that it has.
type teller struct {
	m     *Machine
	clock time.Duration
}

func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Dir(path) != "testdata" {
			return // cases that rapid or the fuzzer left
		}
		s := &teller{clock: time.Second}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.tell(t, d) })
	})
}

func number(t *testing.T, d *datadriven.TestData, key string) uint64 {
	var n uint64
	d.MaybeScanArgs(t, key, &n)
	return n
}

func word(t *testing.T, d *datadriven.TestData, key string) []byte {
	var s string
	d.MaybeScanArgs(t, key, &s)
	return []byte(s)
}

func (s *teller) tell(t *testing.T, d *datadriven.TestData) string {
	delivery := func(kind command.Kind) command.Command {
		return command.Command{Kind: kind, Consumer: number(t, d, "consumer"), StreamSeq: number(t, d, "seq"),
			ConsumerSeq: number(t, d, "cseq"), Deliveries: max(number(t, d, "deliveries"), 1)}
	}
	switch d.Cmd {
	case "new": // new, then a configuration in JSON: starts a stream at 1 s
		s.m = New(Options{Account: "A", Name: "S", Config: storyConfig(t, d.Input), Created: int64(s.clock)})
		return s.state()
	case "pass": // pass time=1s: lets time go by
		pause, err := time.ParseDuration(string(word(t, d, "time")))
		if err != nil {
			t.Fatal(err)
		}
		s.clock += pause
		return fmt.Sprintf("now %s, deadline %s", s.clock, time.Duration(s.m.Deadline()))
	case "pub": // pub subject=a size=3, then header fields
		c := command.Command{Kind: command.Publish, Subject: word(t, d, "subject"), Payload: make([]byte, number(t, d, "size"))}
		for line := range strings.Lines(d.Input) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			c.Header = header.Append(c.Header, name, value)
		}
		return s.apply(c)
	case "purge": // purge filter=a seq=3 keep=1
		return s.apply(command.Command{Kind: command.Purge, Text: word(t, d, "filter"), StreamSeq: number(t, d, "seq"), Keep: number(t, d, "keep")})
	case "delete": // delete seq=3
		return s.apply(command.Command{Kind: command.DeleteMsg, StreamSeq: number(t, d, "seq")})
	case "tick":
		return s.apply(command.Command{Kind: command.Tick})
	case "put": // put version=2, then a configuration in JSON
		config := storyConfig(t, d.Input).AppendJSON(nil)
		return s.apply(command.Command{Kind: command.PutStream, Version: number(t, d, "version"), Config: config})
	case "consumer": // consumer name=c action=1, then a configuration in JSON
		var config jsapi.ConsumerConfig
		if err := json.Unmarshal([]byte(d.Input), &config); err != nil {
			t.Fatal(err)
		}
		return s.apply(command.Command{Kind: command.PutConsumer, Name: word(t, d, "name"),
			Action: uint8(number(t, d, "action")), Config: config.AppendJSON(nil)})
	case "remove": // remove name=c consumer=1
		return s.apply(command.Command{Kind: command.DeleteConsumer, Name: word(t, d, "name"), Consumer: number(t, d, "consumer")})
	case "deliver": // deliver consumer=1 count=2
		return s.apply(command.Command{Kind: command.Deliver, Consumer: number(t, d, "consumer"), Token: 9, Count: number(t, d, "count")})
	case "ack": // ack consumer=1 seq=1 cseq=1
		return s.apply(delivery(command.Ack))
	case "nak":
		return s.apply(delivery(command.Nak))
	case "restart": // saves everything and starts again from it
		s.m = copyOf(t, s.m, Plant{})
		return s.state()
	case "state":
		return s.state()
	default:
		t.Fatalf("unknown command %q", d.Cmd)
		return ""
	}
}

func storyConfig(t *testing.T, text string) *jsapi.StreamConfig {
	config := unlimited()
	config.Name, config.Subjects = "S", []string{"a", "a.>", "b"}
	if err := json.Unmarshal([]byte("{"+text+"}"), &config); err != nil {
		t.Fatal(err)
	}
	return &config
}

func (s *teller) state() string {
	state := s.m.State()
	return fmt.Sprintf("%d messages of %d bytes on %d subjects in [%d, %d], %d deleted", state.Msgs, state.Bytes,
		state.NumSubjects, state.FirstSeq, state.LastSeq, state.NumDeleted)
}

func (s *teller) apply(c command.Command) string {
	var out effect.List
	s.m.Apply(s.m.Applied()+1, command.Append(command.AppendHeader(nil, int64(s.clock), 0), &c), &out)
	var text strings.Builder
	for _, e := range out.Effects {
		text.WriteString(describe(&e))
	}
	return text.String()
}

func describe(e *effect.Effect) string {
	switch e.Kind {
	case effect.Result:
		if e.Err != nil {
			return fmt.Sprintf("refused: %d %d %s\n", e.Err.Code, e.Err.ErrCode, e.Err.Description)
		}
		return fmt.Sprintf("result: seq %d, n %d, flag %v, consumer %d\n", e.Seq, e.N, e.Flag, e.Consumer)
	case effect.Store:
		return fmt.Sprintf("store %d on %s, %d+%d bytes, at %s\n", e.Seq, e.Subject, len(e.Header), len(e.Payload), time.Duration(e.Time))
	case effect.Forget:
		return fmt.Sprintf("forget [%d, %d]\n", e.Seq, e.N)
	case effect.Handoff:
		return fmt.Sprintf("hand %d to consumer %d as %d, delivery %d, %d more\n", e.Seq, e.Consumer, e.ConsumerSeq, e.Deliveries, e.N)
	case effect.Delivered:
		return fmt.Sprintf("delivered %d to consumer %d, stop %d\n", e.N, e.Consumer, e.Stop)
	case effect.Wake:
		return fmt.Sprintf("wake %d\n", e.Consumer)
	default:
		return fmt.Sprintf("effect %d: consumer %d, seq %d, n %d, %q\n", e.Kind, e.Consumer, e.Seq, e.N, e.Text)
	}
}
