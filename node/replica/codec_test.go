package replica

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"weir/disk/wal"
)

// randomMessage makes a message as Raft would.
func randomMessage(rng *rand.Rand) *pb.Message {
	types := []pb.MessageType{pb.MsgApp, pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgSnap, pb.MsgHeartbeat, pb.MsgHeartbeatResp,
		pb.MsgTimeoutNow, pb.MsgReadIndex, pb.MsgReadIndexResp, pb.MsgPreVote, pb.MsgPreVoteResp}
	number := func() *uint64 { return new(1 + rng.Uint64()>>(1+rng.IntN(62))) }
	m := &pb.Message{Type: types[rng.IntN(len(types))].Enum(), To: number(), From: number(), Term: number(), LogTerm: number(),
		Index: number(), Commit: number(), RejectHint: number(), Reject: new(rng.IntN(2) == 0)}
	switch m.GetType() {
	case pb.MsgApp:
		for i := range uint64(rng.IntN(4)) {
			e := &pb.Entry{Type: pb.EntryNormal.Enum(), Term: new(m.GetTerm() / 2), Index: new(m.GetIndex() + 1 + i)}
			if rng.IntN(3) > 0 {
				e.Data = make([]byte, 1+rng.IntN(300))
			}
			if rng.IntN(3) == 0 {
				e.Type = pb.EntryConfChangeV2.Enum()
			}
			m.Entries = append(m.Entries, e)
		}
	case pb.MsgReadIndex, pb.MsgReadIndexResp:
		m.Entries = []*pb.Entry{{Type: pb.EntryNormal.Enum(), Term: new(uint64(0)), Index: new(uint64(0)), Data: []byte("12345678")}}
	case pb.MsgHeartbeat, pb.MsgHeartbeatResp:
		if rng.IntN(2) == 0 {
			m.Context = []byte("abcdefgh")
		}
	case pb.MsgSnap:
		members := []Member{{ID: *number(), Server: *number()}}
		m.Snapshot = snapshotMessage(&snapshot{members: members})
		m.Snapshot.Metadata.Index, m.Snapshot.Metadata.Term = number(), number()
	}
	return m
}

// TestMessagesComeBackAsTheyWere encodes messages and reads them; what is cut off or goes on is refused.
func TestMessagesComeBackAsTheyWere(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		m := randomMessage(rng)
		data := AppendMessage([]byte("x"), m)[1:]
		got, err := ParseMessage(data)
		if err != nil || !proto.Equal(got, m) {
			t.Fatalf("%v came back as %v: %v", m, got, err)
		}
		if len(data) > MessageBytes(m) {
			t.Fatalf("%d bytes are more than the %d expected", len(data), MessageBytes(m))
		}
		if _, err := ParseMessage(data[:rng.IntN(len(data))]); err == nil {
			t.Fatalf("a part of %v is read", m)
		}
		if _, err := ParseMessage(append(data, 0)); err == nil {
			t.Fatalf("more than %v is read", m)
		}
		clear(data) // what was parsed does not share it
		if !proto.Equal(got, m) {
			t.Fatalf("%v shares the bytes that it was read from", m)
		}
	}
}

// TestBeatsComeBackAsTheyWere encodes beats of many groups and reads them.
func TestBeatsComeBackAsTheyWere(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var want []Beat
	var data []byte
	for range 500 {
		b := Beat{Group: wal.GroupID(rng.Uint32()), Response: rng.IntN(2) == 0, Quiesce: rng.IntN(2) == 0, From: 1 + rng.Uint64()>>8,
			To: 1 + rng.Uint64()>>8, Term: 1 + uint64(rng.Uint32()), Commit: rng.Uint64()}
		if rng.IntN(2) == 0 {
			b.Context = []byte("hgfedcba")
		}
		if rng.IntN(2) == 0 {
			b.Acked = rng.Uint64()
		}
		want = append(want, b)
		data = AppendBeat(data, &b)
	}
	for i := range want {
		var b Beat
		rest, err := NextBeat(data, &b)
		if err != nil || !reflect.DeepEqual(b, want[i]) {
			t.Fatalf("beat %d: %+v came back as %+v: %v", i, want[i], b, err)
		}
		data = rest
	}
	if len(data) != 0 {
		t.Fatalf("%d bytes are left", len(data))
	}
}

// TestEncodedForms keeps the bytes of messages, beats and members, which other servers read.
func TestEncodedForms(t *testing.T) {
	datadriven.RunTest(t, "testdata/codec", func(t *testing.T, d *datadriven.TestData) string {
		number := func(key string) uint64 {
			for _, a := range d.CmdArgs {
				if a.Key == key {
					n, err := strconv.ParseUint(a.Vals[0], 10, 64)
					if err != nil {
						d.Fatalf(t, "%v", err)
					}
					return n
				}
			}
			return 0
		}
		var data []byte
		switch d.Cmd {
		case "members":
			var members []Member
			for line := range strings.Lines(d.Input) {
				var m Member
				if _, err := fmt.Sscan(line, &m.ID, &m.Server, &m.Learner); err != nil {
					d.Fatalf(t, "%v", err)
				}
				members = append(members, m)
			}
			data = AppendMembers(nil, members)
		case "beat":
			data = AppendBeat(nil, &Beat{Group: wal.GroupID(number("group")), From: number("from"), To: number("to"),
				Term: number("term"), Commit: number("commit"), Response: d.HasArg("response"), Quiesce: d.HasArg("quiesce")})
		case "message":
			kind := pb.MessageType(pb.MessageType_value[d.CmdArgs[0].Key])
			m := &pb.Message{Type: kind.Enum(), From: new(number("from")), To: new(number("to")), Term: new(number("term")),
				Index: new(number("index")), LogTerm: new(number("logterm")), Commit: new(number("commit"))}
			for i, line := range strings.Fields(d.Input) {
				m.Entries = append(m.Entries, &pb.Entry{Term: m.Term, Index: new(m.GetIndex() + 1 + uint64(i)), Data: []byte(line)})
			}
			data = AppendMessage(nil, m)
		case "refused":
			raw, err := hex.DecodeString(strings.TrimSpace(d.Input))
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			_, err = ParseMessage(raw)
			return fmt.Sprintln(err)
		}
		return hex.EncodeToString(data) + "\n"
	})
}

// FuzzParseMessage gives foreign bytes to the decoder: it takes only what it would write, give or take the length of
// numbers.
func FuzzParseMessage(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		f.Add(AppendMessage(nil, randomMessage(rng)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseMessage(data)
		if err != nil {
			return
		}
		again, err := ParseMessage(AppendMessage(nil, m))
		if err != nil || !proto.Equal(again, m) {
			t.Fatalf("%v came back as %v: %v", m, again, err)
		}
	})
}

// FuzzNextBeat gives foreign bytes to the decoder of beats.
func FuzzNextBeat(f *testing.F) {
	f.Add(AppendBeat(nil, &Beat{Group: 1, From: 1, To: 2, Term: 3, Commit: 4, Context: []byte("12345678")}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for len(data) > 0 {
			var b, again Beat
			rest, err := NextBeat(data, &b)
			if err != nil {
				return
			}
			if _, err := NextBeat(AppendBeat(nil, &b), &again); err != nil || !reflect.DeepEqual(b, again) {
				t.Fatalf("%+v came back as %+v: %v", b, again, err)
			}
			data = rest
		}
	})
}

// FuzzParseMembers gives foreign bytes to the decoder of members.
func FuzzParseMembers(f *testing.F) {
	f.Add(AppendMembers(nil, []Member{{ID: 1, Server: 2}, {ID: 3, Server: 4, Learner: true}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		members, err := ParseMembers(data)
		if err != nil {
			return
		}
		again, err := ParseMembers(AppendMembers(nil, members))
		if err != nil || !reflect.DeepEqual(members, again) {
			t.Fatalf("%v came back as %v: %v", members, again, err)
		}
		if len(members) == 0 && !bytes.Equal(data, []byte{0}) && len(data) > 10 {
			t.Fatalf("%d bytes are read as no members", len(data))
		}
	})
}
