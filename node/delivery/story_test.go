package delivery

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"weir/model/command"
	"weir/model/jsapi"
)

// TestStories runs the files of testdata. Every command ends with a commit and prints what was sent. Commands:
//
//	consumer ID           its input is the configuration in JSON
//	delete ID
//	publish N [size=B] [header=H]
//	sub SUBJECT [queue]   as a member of the queue group q when queue is given
//	unsub SUBJECT
//	pull ID INBOX         its input is the body
//	ack ID SEQ            acknowledges a message
//	tick DURATION
//	cold on|off           whether messages have to be read first
//	read                  ends the reads under way, the last one first
//	refuse on|off         whether proposals are refused
//	drop on|off           whether entries are lost
//	flow ID               answers the flow control request
//	activity ID
//	shutdown, lost
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Dir(path) != "testdata" {
			return // cases that rapid or the fuzzer left
		}
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.sent = nil
			out := w.run(t, d)
			w.commit()
			for i := range w.sent {
				out += w.sent[i].text() + "\n"
			}
			for _, name := range w.deleted {
				out += "deleted " + name + "\n"
			}
			w.deleted = nil
			if out == "" {
				return "nothing\n"
			}
			return out
		})
	})
}

func word(d *datadriven.TestData, i int) string {
	if i < len(d.CmdArgs) {
		return d.CmdArgs[i].Key
	}
	return ""
}

func number(d *datadriven.TestData, i int) uint64 {
	n, err := strconv.ParseUint(word(d, i), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s: argument %d: %v", d.Pos, i, err))
	}
	return n
}

func (w *fakeWorld) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "consumer":
		config, err := jsapi.ParseConsumerConfig([]byte(d.Input))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		w.createConsumer(number(d, 0), config)
	case "delete":
		w.entry = append(w.entry, command.Command{Kind: command.DeleteConsumer, Consumer: number(d, 0)})
	case "publish":
		w.runPublish(t, d)
	case "sub":
		w.listen(word(d, 0), 1+slices.Index([]string{"", "queue"}, word(d, 1)))
	case "unsub":
		w.listen(word(d, 0), 0)
	case "pull":
		w.desk.Pull(w.now, PullRequest{testGroup, number(d, 0), word(d, 1), []byte(d.Input)})
	case "ack":
		w.entry = append(w.entry, command.Command{Kind: command.Ack, Consumer: number(d, 0), StreamSeq: number(d, 1)})
	case "tick":
		nanos, err := time.ParseDuration(word(d, 0))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		w.tick(int64(nanos))
	case "cold":
		w.cold = word(d, 0) == "on"
	case "read":
		w.finishReads(func(n int) int { return n - 1 })
	case "refuse":
		w.refuses = word(d, 0) == "on"
	case "flow":
		w.desk.FlowControl(w.now, w.desk.lines[key{testGroup, number(d, 0)}].push.flow)
	case "activity":
		waiting, bound := w.desk.Activity(testGroup, number(d, 0))
		return fmt.Sprintf("waiting %d, bound %v\n", waiting, bound)
	case "shutdown":
		w.desk.Shutdown(w.now)
	case "lost":
		w.desk.StreamLost(w.now, testGroup)
	case "drop":
		w.drops = word(d, 0) == "on"
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return ""
}

func (w *fakeWorld) runPublish(t *testing.T, d *datadriven.TestData) {
	m := fakeMessage{subject: "a.b", size: 3}
	if d.HasArg("size") {
		d.ScanArgs(t, "size", &m.size)
	}
	if d.HasArg("header") {
		var field string
		d.ScanArgs(t, "header", &field)
		m.header = "NATS/1.0\r\n" + strings.Replace(field, ":", ": ", 1) + "\r\n\r\n"
	}
	for range number(d, 0) {
		w.publish(m)
	}
}
