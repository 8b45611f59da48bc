package verdict

import (
	"testing"

	"weir/linearizability/history"
	"weir/sim/plan"
	"weir/sim/workload"
	"weir/sim/world"
)

// scene is a run in which everything went well: three messages, delivered, acknowledged and watched.
func scene() (*plan.Plan, *workload.Observations) {
	p := &plan.Plan{
		Streams:   []plan.Stream{{Name: "S", Prefix: "s", Keys: 1}},
		Consumers: []plan.Consumer{{Name: "c", Key: -1, AckWaitMillis: 100, MaxDeliver: -1, MaxAckPending: 2}},
	}
	o := &workload.Observations{
		Finals:    []*workload.Final{{First: 1, Count: 3}},
		Consumers: []*workload.ConsumerState{{Delivered: workload.SeqPair{Consumer: 3, Stream: 3}, AckFloor: workload.SeqPair{Consumer: 3, Stream: 3}}},
	}
	o.Finals[0].Last = 3
	w := &workload.Watch{Filter: "s.>", All: true, Created: 1, Initial: 3}
	for seq := uint64(1); seq <= 3; seq++ {
		at := int64(seq) * 1000
		o.History.Records = append(o.History.Records, history.Record{
			ID: seq, Kind: history.Publish, Stream: "S", Subject: "s.k0", Outcome: history.OK, Seq: seq, Call: at, Return: at + 1,
		})
		o.Finals[0].Messages = append(o.Finals[0].Messages, history.Message{Seq: seq, Subject: "s.k0", Value: seq, Time: at})
		d := workload.Delivery{
			At: at + 20, Asked: at + 10, StreamSeq: seq, ConsumerSeq: seq, Count: 1, Time: world.Epoch + at, Value: seq, Subject: "s.k0",
		}
		w.Seen = append(w.Seen, d)
		o.Deliveries = append(o.Deliveries, d)
		o.Acks = append(o.Acks, workload.Ack{Delivery: int(seq - 1), Call: at + 30, Return: at + 40})
	}
	o.Watches = append(o.Watches, w)
	return p, o
}

func TestEachGuaranteeIsEnforced(t *testing.T) {
	again := func(o *workload.Observations, at int64) *workload.Delivery {
		d := o.Deliveries[0]
		d.At, d.Asked, d.Count, d.ConsumerSeq = at+10, at, 2, 4
		o.Deliveries = append(o.Deliveries, d)
		return &o.Deliveries[len(o.Deliveries)-1]
	}
	third := func(o *workload.Observations, asked, at int64) {
		d := o.Deliveries[2]
		d.Asked, d.At, d.Count, d.ConsumerSeq = asked, at, 2, 4
		o.Deliveries = append(o.Deliveries, d)
		o.Acks = append(o.Acks, workload.Ack{Delivery: 3, Call: at + 1, Return: history.Never})
	}
	for _, c := range []struct {
		name, want string
		spoil      func(*plan.Plan, *workload.Observations)
	}{
		{"untouched", "", func(*plan.Plan, *workload.Observations) {}},
		{"redelivered after a confirmed ack", "consumer-redelivered",
			func(_ *plan.Plan, o *workload.Observations) { again(o, 200_000_000) }},
		{"redelivered to a request made before the confirmation", "",
			func(_ *plan.Plan, o *workload.Observations) { again(o, 200_000_000).Asked = 1035 }},
		{"redelivered before its ack wait", "consumer-early",
			func(_ *plan.Plan, o *workload.Observations) { again(o, 5_000).Asked = 1035 }},
		{"redelivered early after a nak", "", func(_ *plan.Plan, o *workload.Observations) {
			o.Acks[0].Kind = workload.Nacked
			again(o, 5_000)
			o.Acks = append(o.Acks, workload.Ack{Delivery: 3, Call: 6_000, Return: history.Never})
		}},
		{"redelivered before the delay of its refusal", "consumer-early", func(_ *plan.Plan, o *workload.Observations) {
			o.Acks[2].Kind, o.Acks[2].WaitNanos = workload.Nacked, 500_000_000
			third(o, 4_000, 200_000_000)
		}},
		{"redelivered after the delay of its refusal", "", func(_ *plan.Plan, o *workload.Observations) {
			o.Acks[2].Kind, o.Acks[2].WaitNanos = workload.Nacked, 500_000_000
			third(o, 4_000, 600_000_000)
		}},
		{"redelivered although more time was asked for", "consumer-early", func(_ *plan.Plan, o *workload.Observations) {
			o.Acks[2].Kind, o.Acks[2].WaitNanos, o.Acks[2].Call, o.Acks[2].Return = workload.Progressed, 100_000_000, 50_000_000, 50_000_001
			third(o, 60_000_000, 120_000_000)
		}},
		{"holds more bytes than it may", "over-limit", func(p *plan.Plan, o *workload.Observations) {
			p.Streams[0].MaxBytes, o.Bytes = 100, []uint64{101}
		}},
		{"keeps what is too old", "not-expired", func(p *plan.Plan, o *workload.Observations) {
			p.Streams[0].MaxAgeMillis, o.Finals[0].At = 1_000, 7_000_000_000
			for i := range o.Finals[0].Messages {
				o.Finals[0].Messages[i].Time += world.Epoch
			}
		}},
		{"does not find what is not too old", "expired-early", func(p *plan.Plan, o *workload.Observations) {
			p.Streams[0].MaxAgeMillis = 1_000_000
			for i := range o.Finals[0].Messages {
				o.Finals[0].Messages[i].Time += world.Epoch
			}
			o.History.Records = append(o.History.Records, history.Record{
				ID: 9, Kind: history.GetSeq, Stream: "S", At: 2, Outcome: history.OK, Call: 10_000, Return: 11_000})
		}},
		{"more than max_deliver", "consumer-max-deliver", func(p *plan.Plan, o *workload.Observations) {
			p.Consumers[0].MaxDeliver = 1
			again(o, 200_000_000).Asked = 1035
		}},
		{"count does not grow", "consumer-count",
			func(_ *plan.Plan, o *workload.Observations) { d := again(o, 200_000_000); d.Asked, d.Count = 1035, 1 }},
		{"one number, two deliveries", "consumer-order",
			func(_ *plan.Plan, o *workload.Observations) { o.Deliveries[1].ConsumerSeq = 1 }},
		{"first deliveries out of order", "consumer-order", func(_ *plan.Plan, o *workload.Observations) {
			o.Deliveries[0].ConsumerSeq, o.Deliveries[1].ConsumerSeq = 2, 1
		}},
		{"other bytes", "consumer-invented", func(_ *plan.Plan, o *workload.Observations) { o.Deliveries[1].Value = 3 }},
		{"never delivered", "consumer-lost", func(_ *plan.Plan, o *workload.Observations) {
			o.Deliveries, o.Acks = o.Deliveries[:2], o.Acks[:2]
		}},
		{"never acknowledged", "consumer-lost", func(_ *plan.Plan, o *workload.Observations) { o.Acks = o.Acks[:2] }},
		{"too many outstanding", "consumer-max-ack-pending", func(_ *plan.Plan, o *workload.Observations) {
			for i := range o.Acks {
				o.Acks[i].Call, o.Acks[i].Return = 9_000, 9_001
			}
		}},
		{"ack floor passes a message", "consumer-floor", func(_ *plan.Plan, o *workload.Observations) {
			o.States = append(o.States, workload.ConsumerState{Call: 2_021, Return: 2_022,
				Delivered: workload.SeqPair{Consumer: 2, Stream: 2}, AckFloor: workload.SeqPair{Consumer: 2, Stream: 2}})
		}},
		{"watch skips a message", "watch", func(_ *plan.Plan, o *workload.Observations) {
			w := o.Watches[0]
			w.Seen = []workload.Delivery{w.Seen[0], w.Seen[2]}
			w.Seen[1].ConsumerSeq = 2
		}},
		{"watch has a gap in its numbers", "watch",
			func(_ *plan.Plan, o *workload.Observations) { o.Watches[0].Seen[2].ConsumerSeq = 4 }},
		{"watch that ended early owes nothing", "", func(_ *plan.Plan, o *workload.Observations) {
			o.Watches[0].Seen, o.Watches[0].Ended = o.Watches[0].Seen[:1], 1_500
		}},
		{"description of nobody", "update", func(_ *plan.Plan, o *workload.Observations) {
			o.Descriptions = []workload.Description{{Text: "x", Call: 10, Return: 20}}
		}},
		{"description of an update without an answer", "", func(_ *plan.Plan, o *workload.Observations) {
			o.Updates = []workload.Update{{Text: "x", Call: 5, Return: history.Never}, {Text: "y", Call: 6, Return: 8}}
			o.Descriptions = []workload.Description{{Text: "x", Call: 10, Return: 20}}
		}},
		{"description of an update that was superseded", "update", func(_ *plan.Plan, o *workload.Observations) {
			o.Updates = []workload.Update{{Text: "x", Call: 1, Return: 5}, {Text: "y", Call: 6, Return: 8}}
			o.Descriptions = []workload.Description{{Text: "x", Call: 10, Return: 20}}
		}},
		{"description of a refused update", "update", func(_ *plan.Plan, o *workload.Observations) {
			o.Updates = []workload.Update{{Text: "x", Call: 1, Return: 5, Refused: true}}
			o.Descriptions = []workload.Description{{Text: "x", Call: 10, Return: 20}}
		}},
		{"update that was confirmed is lost", "update", func(_ *plan.Plan, o *workload.Observations) {
			o.Updates = []workload.Update{{Text: "x", Call: 1, Return: 5}}
			o.Descriptions = []workload.Description{{Call: 10, Return: 20}}
		}},
		{"state counts wrongly", "miscounted", func(_ *plan.Plan, o *workload.Observations) { o.Finals[0].Count = 4 }},
		{"stream that is down owes nothing", "", func(_ *plan.Plan, o *workload.Observations) {
			o.Finals[0] = &workload.Final{Down: "stream is offline"}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, o := scene()
			c.spoil(p, o)
			found := Judge(p, o)
			if c.want == "" && len(found) > 0 {
				t.Fatalf("accused: %+v", found)
			}
			if c.want != "" && (len(found) == 0 || found[0].Class != c.want) {
				t.Fatalf("want %s, found %+v", c.want, found)
			}
		})
	}
}
