package consumer

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"weir/model/effect"
	"weir/model/jsapi"
)

// story is one consumer on one stream, driven by the files of testdata.
type story struct {
	log   fakeLog
	state *State
	now   int64
	list  effect.List
	index uint64
	opts  Options
	note  string // what a command returned
}

// TestStories runs the files of testdata. Every command prints its effects and where the consumer stands. Commands:
//
//	plant                      switches the planted ack floor on
//	store SUBJECT...           stores a message on each subject
//	new, update                their input is the configuration in JSON
//	deliver COUNT [BYTES]
//	ack|term|progress SEQ [CSEQ]
//	nak SEQ CSEQ [DELAY]
//	release SEQ DELIVERIES
//	reset SEQ                  0: back to the ack floor
//	remove SEQ [limits]
//	purge FIRST                removes everything below FIRST
//	tick DURATION              moves the time on and acts on deadlines
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Dir(path) != "testdata" {
			return // cases that rapid or the fuzzer left
		}
		s := &story{now: 1000, opts: Options{Stream: "S"}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.index++
			s.list.Reset()
			s.run(t, d)
			return s.text()
		})
	})
}

func (s *story) word(d *datadriven.TestData, i int) string {
	if i < len(d.CmdArgs) {
		return d.CmdArgs[i].Key
	}
	return ""
}

func (s *story) number(d *datadriven.TestData, i int) uint64 {
	n, err := strconv.ParseUint("0"+s.word(d, i), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s: argument %d: %v", d.Pos, i, err))
	}
	return n
}

func (s *story) duration(t *testing.T, d *datadriven.TestData, i int) int64 {
	if s.word(d, i) == "" {
		return 0
	}
	nanos, err := time.ParseDuration(s.word(d, i))
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return int64(nanos)
}

func (s *story) run(t *testing.T, d *datadriven.TestData) {
	b := &Batch{Time: s.now, Index: s.index, Out: &s.list}
	delivery := Delivery{ConsumerSeq: 1, Deliveries: 1}
	switch d.Cmd {
	case "ack", "term", "progress", "nak", "release":
		delivery.StreamSeq = s.number(d, 0)
		delivery.ConsumerSeq = max(s.number(d, 1), 1)
	}
	switch d.Cmd {
	case "plant":
		s.opts.Plant.AckFloorAhead = true
	case "store":
		s.store(b, d)
	case "new":
		s.state = New(Params{ID: 7, Name: "C", Config: s.config(t, d), Options: s.opts}, &s.log, s.now)
	case "update":
		s.state.Update(b, s.config(t, d))
	case "deliver":
		s.state.Deliver(b, Request{Token: 9, Count: s.number(d, 0), MaxBytes: s.number(d, 1)})
	case "ack":
		s.state.Ack(b, delivery)
	case "term":
		s.state.Term(b, delivery, "broken")
	case "progress":
		s.state.Progress(b, delivery)
	case "nak":
		s.state.Nak(b, delivery, s.duration(t, d, 2))
	case "release":
		delivery.Deliveries = s.number(d, 1)
		s.state.Release(b, delivery)
	case "reset":
		seq, refused := s.state.Reset(b, s.number(d, 0))
		if refused != nil {
			s.note = refused.Error()
			return
		}
		s.note = fmt.Sprintf("reset to %d", seq)
	case "remove":
		s.remove(b, d)
	case "purge":
		for s.log.First() < s.number(d, 0) && len(s.log.messages) > 0 {
			s.log.remove(s.log.First())
		}
		s.state.Purged(b, s.log.First())
	case "tick":
		s.now += s.duration(t, d, 0)
		b.Time = s.now
		s.state.Tick(b)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
}

func (s *story) store(b *Batch, d *datadriven.TestData) {
	for i := range d.CmdArgs {
		seq := s.log.store(s.word(d, i), s.now, 10)
		if s.state != nil && s.log.Matches(s.state.Filters(), seq) {
			s.state.Stored(b, seq)
		}
	}
}

func (s *story) remove(b *Batch, d *datadriven.TestData) {
	seq, why := s.number(d, 0), Deleted
	if len(d.CmdArgs) > 1 {
		why = Limited
	}
	matched := s.log.Matches(s.state.Filters(), seq)
	s.log.remove(seq)
	s.state.Removed(b, seq, matched, why)
}

func (s *story) config(t *testing.T, d *datadriven.TestData) *jsapi.ConsumerConfig {
	config, err := jsapi.ParseConsumerConfig([]byte(d.Input))
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return config
}

var kindNames = map[effect.Kind]string{
	effect.Handoff: "handoff", effect.Delivered: "delivered", effect.Wake: "wake", effect.MaxDeliveries: "max deliveries",
	effect.Terminated: "terminated", effect.Naked: "naked", effect.Acked: "acked",
}

var stopNames = []string{"count", "bytes", "empty", "pending", "paused", "gone"}

func (s *story) text() (text string) {
	if s.note != "" {
		text, s.note = s.note+"\n", ""
	}
	for i := range s.list.Effects {
		switch e := &s.list.Effects[i]; e.Kind {
		case effect.Result:
			text += fmt.Sprintf("result reply=%v\n", e.Flag)
		case effect.Handoff:
			text += fmt.Sprintf("handoff %d as %d, delivery %d, %d left\n", e.Seq, e.ConsumerSeq, e.Deliveries, e.N)
		case effect.Delivered:
			text += fmt.Sprintf("delivered %d, stop: %s\n", e.N, stopNames[e.Stop])
		case effect.Wake:
			text += "wake\n"
		default:
			text += fmt.Sprintf("%s %d/%d, delivery %d %s\n", kindNames[e.Kind], e.Seq, e.ConsumerSeq, e.Deliveries, e.Text)
		}
	}
	if s.state == nil {
		return text + "no consumer\n"
	}
	at, floor := s.state.Delivered(), s.state.AckFloor()
	text += fmt.Sprintf("delivered %d/%d floor %d/%d pending %d ack pending %d redelivered %d queued %d", at.Consumer, at.Stream,
		floor.Consumer, floor.Stream, s.state.NumPending(), s.state.NumAckPending(), s.state.NumRedelivered(), s.state.NumQueued())
	if deadline, ok := s.state.Deadline(); ok {
		text += fmt.Sprintf(" deadline in %v", time.Duration(deadline-s.now))
	}
	return text + "\n"
}
