package torture

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"weir/linearizability/history"
	"weir/sim/workload"
)

// calmFor is how long the load goes on after everything has healed.
const calmFor = 3 * time.Second

// batchMax is how many messages one direct get of a read-back asks for.
const batchMax = 500

// settle waits until everything that must happen after healing has happened, ends the load and reads everything back.
// What does not happen in time is written down as wrong.
func (r *run) settle(l *load) {
	ctx := context.Background()
	healed := r.log.now()
	r.expect(ctx, healMax, "after healing, all replicas are current", func(ctx context.Context) error {
		return r.allCurrent(ctx, l)
	})
	r.report.Healed = time.Duration(r.log.now() - healed)
	time.Sleep(calmFor)
	l.stopWorking()
	l.working.Wait()
	r.say("the load has ended: %s", r.log.summary())
	r.expect(ctx, healMax, "after the load, all replicas are current", func(ctx context.Context) error {
		return r.allCurrent(ctx, l)
	})
	r.finals = map[string]*workload.Final{}
	for _, name := range l.streams() {
		r.expect(ctx, healMax, "the stream "+name+" can be read back", func(ctx context.Context) (err error) {
			r.finals[name], err = l.admin.readBack(ctx, name)
			return err
		})
	}
	r.drain(ctx, l)
	l.stopLooking()
	l.looking.Wait()
	r.compare(ctx, l)
}

// expect waits for something that has to happen.
func (r *run) expect(ctx context.Context, d time.Duration, what string, try func(context.Context) error) {
	r.mu.Lock()
	if len(r.late) > 0 {
		d = min(d, lateMax)
	}
	r.mu.Unlock()
	limit, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if err := until(limit, try); err != nil {
		r.say("it is not so that %s: %v", what, err)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.late = append(r.late, fmt.Sprintf("not within %v: %s: %v", d, what, err))
	}
}

// streams are the names of all streams.
func (l *load) streams() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.run.options.steadyStreams()
	for i := range l.small {
		all = append(all, l.small[i].name)
	}
	return all
}

// allCurrent returns an error unless every replica of the streams that are always there is current.
func (r *run) allCurrent(ctx context.Context, l *load) error {
	n := &nemesis{run: r, client: l.admin}
	return n.steadyCurrent(ctx)
}

// drain waits until the consumers have nothing left and the watches have shown the newest update.
func (r *run) drain(ctx context.Context, l *load) {
	r.states = make([]*workload.ConsumerState, len(consumers))
	for i := range consumers {
		r.expect(ctx, drainMax, "the consumer "+consumers[i].Name+" has delivered everything, all acknowledged", func(context.Context) error {
			info, ok := l.admin.consumerState(i)
			if !ok {
				return errNoAnswer
			}
			if info.NumPending != 0 || info.NumAckPending != 0 {
				return fmt.Errorf("%d are pending, %d are not acknowledged", info.NumPending, info.NumAckPending)
			}
			r.log.mu.Lock()
			defer r.log.mu.Unlock()
			r.states[i] = &r.log.seen.States[len(r.log.seen.States)-1]
			return nil
		})
	}
	r.expect(ctx, drainMax, "watches show the newest message", func(context.Context) error {
		r.log.mu.Lock()
		watches := slices.Clone(r.log.watches)
		r.log.mu.Unlock()
		open := 0
		for _, w := range watches {
			w.mu.Lock()
			ended := w.ended
			w.mu.Unlock()
			if ended {
				continue
			}
			open++
			last := uint64(0)
			if f := r.finals[w.of.name]; f != nil && len(f.Messages) > 0 {
				last = f.Messages[len(f.Messages)-1].Seq
			}
			if newest := w.newest(); newest < last && w.from <= last {
				return fmt.Errorf("%s has seen %d of %d of %s", w.name, newest, last, w.of.name)
			}
		}
		if open < watchers+followers {
			return fmt.Errorf("only %d watches could be established", open)
		}
		return nil
	})
}

// readBack reads a whole stream from its leader.
func (c *client) readBack(ctx context.Context, stream string) (*workload.Final, error) {
	var info struct {
		State struct {
			Messages uint64 `json:"messages"`
			First    uint64 `json:"first_seq"`
			Last     uint64 `json:"last_seq"`
		} `json:"state"`
	}
	if err := ask(ctx, c.nc, call{"STREAM.INFO." + stream, nil, &info}); err != nil {
		return nil, err
	}
	final := &workload.Final{Final: history.Final{Last: info.State.Last}, First: info.State.First, Count: info.State.Messages}
	for next := max(1, info.State.First); next <= info.State.Last; {
		limit, cancel := context.WithTimeout(ctx, answerMax)
		batch, err := c.readBatch(limit, stream, next)
		cancel()
		if err != nil {
			return nil, err
		}
		if len(batch) == 0 {
			break
		}
		final.Messages = append(final.Messages, batch...)
		next = batch[len(batch)-1].Seq + 1
	}
	return final, nil
}

// readBatch reads some messages from a sequence on; none when there are no more.
func (c *client) readBatch(ctx context.Context, stream string, from uint64) ([]history.Message, error) {
	inbox := nats.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	// The connection may have gone, and the subscription with it.
	defer func() { _ = sub.Unsubscribe() }()
	body := fmt.Appendf(nil, `{"seq":%d,"batch":%d,"next_by_subj":">"}`, from, batchMax)
	if err := c.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, body); err != nil {
		return nil, err
	}
	var all []history.Message
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, err
		}
		switch m.Header.Get("Status") {
		case "":
		case "204", "404":
			return all, nil
		default:
			return nil, fmt.Errorf("%w: status %s %s", errNoAnswer, m.Header.Get("Status"), m.Header.Get("Description"))
		}
		f, err := directFound(m)
		if err != nil {
			return nil, err
		}
		all = append(all, history.Message{Seq: f.seq, Subject: f.subject, Value: f.value, MsgID: f.msgID, Time: f.time})
	}
}

// compare moves the leadership of the streams that are always there to every server in turn and reads them back from there: all replicas
// hold the same.
func (r *run) compare(ctx context.Context, l *load) {
	for _, name := range r.options.steadyStreams() {
		want := r.finals[name]
		if want == nil {
			continue
		}
		for i := range r.options.Nodes {
			r.expect(ctx, healMax, fmt.Sprintf("%s can lead %s and be read back", serverName(i), name), func(ctx context.Context) error {
				return r.compareOn(ctx, l, replica{name, i, want})
			})
		}
	}
}

// replica is a replica that has to hold what is wanted.
type replica struct {
	stream string
	server int
	want   *workload.Final
}

func (r *run) compareOn(ctx context.Context, l *load, at replica) error {
	n := &nemesis{run: r, client: l.admin}
	leader, err := n.leaderOf(at.stream)
	if err != nil {
		return err
	}
	if leader != serverName(at.server) {
		if r.options.Nodes > 3 && !n.holds(ctx, at) {
			return nil // it has no replica
		}
		request := map[string]any{"placement": map[string]any{"preferred": serverName(at.server)}}
		if err := n.request("STREAM.LEADER.STEPDOWN."+at.stream, request); err != nil {
			return err
		}
		return fmt.Errorf("%s leads", leader)
	}
	got, err := l.admin.readBack(ctx, at.stream)
	if err != nil {
		return err
	}
	if after, err := n.leaderOf(at.stream); err != nil || after != leader {
		return fmt.Errorf("%s led and %s leads: %w", leader, after, err)
	}
	if text := differ(at.want, got); text != "" {
		r.wrong("%s: the replica on %s differs from what was read before: %s", at.stream, serverName(at.server), text)
	}
	return nil
}

// holds says whether the server has a replica of the stream.
func (n *nemesis) holds(ctx context.Context, at replica) bool {
	s, err := n.client.js.Stream(ctx, at.stream)
	if err != nil || s.CachedInfo().Cluster == nil {
		return true
	}
	for _, p := range s.CachedInfo().Cluster.Replicas {
		if p.Name == serverName(at.server) {
			return true
		}
	}
	return false
}

// differ says how two read-backs differ; "" when they do not.
func differ(a, b *workload.Final) string {
	if a.Last != b.Last || a.First != b.First || a.Count != b.Count || len(a.Messages) != len(b.Messages) {
		return fmt.Sprintf("%d messages in [%d,%d], read %d; %d messages in [%d,%d], read %d",
			a.Count, a.First, a.Last, len(a.Messages), b.Count, b.First, b.Last, len(b.Messages))
	}
	for i := range a.Messages {
		if a.Messages[i] != b.Messages[i] {
			return fmt.Sprintf("%+v and %+v", a.Messages[i], b.Messages[i])
		}
	}
	return ""
}

// known maps the sequences of a stream to the operations that wrote them, as far as anybody knows.
func (r *run) known(stream string) map[uint64]*history.Record {
	writers, byID := map[uint64]*history.Record{}, map[uint64]*history.Record{}
	for i := range r.log.history.Records {
		rec := &r.log.history.Records[i]
		if rec.Stream != stream || rec.Kind != history.Publish {
			continue
		}
		byID[rec.ID] = rec
		if rec.Outcome == history.OK && !rec.Duplicate {
			writers[rec.Seq] = rec
		}
	}
	if f := r.finals[stream]; f != nil {
		for i := range f.Messages {
			if w := byID[f.Messages[i].Value]; w != nil {
				writers[f.Messages[i].Seq] = w
			}
		}
	}
	return writers
}
