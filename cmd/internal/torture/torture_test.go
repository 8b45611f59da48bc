package torture

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/cmd/internal/serve"
	"weir/linearizability/history"
	"weir/sim/workload"
)

// asServer makes the test binary behave as a server.
const asServer = "WEIR_TEST_AS_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		os.Exit(serve.Run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// freePorts is the first of many ports that are free now.
func freePorts(t *testing.T) int {
	t.Helper()
	for base := 53000; base < 60000; base += 250 {
		free := true
		for i := 0; i < 60+NodesMax*NodesMax && free; i++ {
			l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: base + i})
			if free = err == nil; free {
				l.Close()
			}
		}
		if free {
			return base
		}
	}
	t.Fatal("no free ports")
	return 0
}

// lines passes what is written to the log of the test.
type lines struct{ t *testing.T }

func (l lines) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// TestClusterSurvivesAShortTorture is the short form of the whole: a cluster on loopback, a few seconds, the faults that
// take little time. What must happen is waited for, and what clients saw is judged.
func TestClusterSurvivesAShortTorture(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs a cluster of processes")
	}
	report, err := Run(t.Context(), Options{
		Nodes: 3, Duration: 6 * time.Second, Seed: 1, Dir: t.TempDir(), Network: "off", Port: freePorts(t),
		Command: []string{os.Args[0]}, Env: []string{asServer + "=1"}, Quiet: 300 * time.Millisecond, Hold: 700 * time.Millisecond,
		Faults: []string{"kill-leader", "pause-leader", "isolate-leader", "isolate-kill-leader", "step-down", "one-way"}, Out: lines{t},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if len(report.Findings) > 0 {
		t.Errorf("%d violations", len(report.Findings))
	}
	if report.OK == 0 || report.Acks == 0 || report.Watched == 0 || len(report.Kinds) == 0 {
		t.Error("nothing happened")
	}
}

func TestEqualSeedsDrawEqualFaults(t *testing.T) {
	draw := func(seed uint64) []fault {
		r := &run{options: Options{Nodes: 3, Seed: seed, Quiet: time.Second, Hold: time.Second}, log: newRecorder()}
		n := newNemesis(r)
		var all []fault
		for i := range 50 {
			s := &n.breaks
			if i%2 == 0 {
				s = &n.asks
			}
			k, f := s.draw()
			if k.name != f.kind {
				t.Fatalf("kind %s has the name %s", k.name, f.kind)
			}
			all = append(all, f)
		}
		return all
	}
	if !slices.Equal(draw(1), draw(1)) {
		t.Error("one seed drew two schedules")
	}
	if slices.Equal(draw(1), draw(2)) {
		t.Error("two seeds drew one schedule")
	}
}

// TestDataOfAnEarlierRunIsRefused: what it holds was published by nobody in this run.
func TestDataOfAnEarlierRunIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, serverName(1)), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), Options{Nodes: 3, Dir: dir, Network: "off", Port: freePorts(t)})
	if err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("the run ended with %v", err)
	}
}

// TestOldIDsAreSentAgain: what was sent under an id is what is sent again, without expectations that time has overtaken.
func TestOldIDsAreSentAgain(t *testing.T) {
	r := &run{options: Options{Nodes: 3, Seed: 1}, log: newRecorder()}
	c := r.newClient("publisher", 0)
	subjects, again := map[string]string{}, 0
	for range 3 * sentMax {
		d := c.resend(&target{name: mainStream, prefix: mainPrefix, keys: mainKeys})
		if subject, sent := subjects[d.record.MsgID]; sent && d.record.MsgID != "" {
			again++
			if d.record.Subject != subject || d.record.ExpectLast.Set || d.record.ExpectSubject.Set {
				t.Fatalf("%s was sent on %s, and again as %+v", d.record.MsgID, subject, d.record)
			}
		}
		subjects[d.record.MsgID] = d.record.Subject
		c.remember(&d)
	}
	if again == 0 || len(c.sent) > sentMax {
		t.Errorf("%d were sent again, %d are remembered", again, len(c.sent))
	}
}

// TestProbesKeepAwayFromLeaders: a quiet stream is written through servers that neither lead it nor have just now.
func TestProbesKeepAwayFromLeaders(t *testing.T) {
	var l leaders
	apart := func() (all []int) {
		for i := range 3 {
			if l.apart("Q0", serverName(i)) {
				all = append(all, i)
			}
		}
		return all
	}
	if got := apart(); got != nil {
		t.Errorf("nothing is known, and %v are apart", got)
	}
	l.note("Q0", serverName(1))
	if got := apart(); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("n2 leads, and %v are apart", got)
	}
	l.note("Q0", serverName(2))
	l.note("Q0", serverName(2))
	if got := apart(); !slices.Equal(got, []int{0}) {
		t.Errorf("n3 leads after n2, and %v are apart", got)
	}
	is := l.of["Q0"]
	is.since = is.since.Add(-2 * aloofFor)
	l.of["Q0"] = is
	if got := apart(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("n3 has led for long, and %v are apart", got)
	}
}

// TestStaleReadOfAQuietStreamIsSeen: each way of asking that a sentry has, answered from before a write, is found.
func TestStaleReadOfAQuietStreamIsSeen(t *testing.T) {
	q := quiet(1)
	for _, stale := range []history.Record{
		{Kind: history.GetLast, Subject: q.prefix + ".>"}, {Kind: history.GetLast, Subject: q.subject(0)}, {Kind: history.Info},
	} {
		r := rightRun()
		r.options.Nodes = 3
		first, second := write(r, q.name, q.subject(0), 1), write(r, q.name, q.subject(0), 2)
		r.finals[q.name] = final(q.name, q.subject(0), first)
		r.finals[q.name].Count, r.finals[q.name].Last = 2, 2
		r.finals[q.name].Messages = append(r.finals[q.name].Messages, history.Message{Seq: 2, Subject: q.subject(0), Value: second})
		stale.Stream, stale.Client = q.name, 9
		pos, _ := r.log.begin(stale)
		r.log.end(pos, history.OK, func(rec *history.Record) {
			rec.Seq = 1
			if rec.Kind == history.GetLast {
				rec.Value = first
			} else {
				rec.First, rec.Messages = 1, 1
			}
		})
		r.judge(&load{run: r})
		if !slices.ContainsFunc(r.report.Findings, func(f Finding) bool { return f.Class == "not-linearizable" }) {
			t.Errorf("found only %+v", r.report.Findings)
		}
	}
}

// echo answers every line on the address with the same line until the listener is closed.
func echo(t *testing.T, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if _, err := io.Copy(c, c); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Log(err)
			}
		}()
	}
}

// TestProxyHoldsWhatACutLinkCarries: bytes of a cut direction wait, those of the other pass, and all come in the end.
func TestProxyHoldsWhatACutLinkCarries(t *testing.T) {
	f, err := newProxies(Options{Nodes: 2, Port: freePorts(t)})
	if err != nil {
		t.Fatal(err)
	}
	p := f.(*proxies)
	l, err := net.Listen("tcp", p.peer(1))
	if err != nil {
		t.Fatal(err)
	}
	go echo(t, l)
	c, err := net.Dial("tcp", p.between(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	read := bufio.NewReader(c)
	say := func(text string) {
		t.Helper()
		if _, err := io.WriteString(c, text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(want string) {
		t.Helper()
		got, err := read.ReadString('\n')
		if err != nil || got != want+"\n" {
			t.Fatalf("heard %q, %v, want %s", got, err, want)
		}
	}
	say("one")
	hear("one")
	for _, way := range [][2]int{{0, 1}, {1, 0}} {
		if err := p.cut(way[0], way[1], true); err != nil {
			t.Fatal(err)
		}
		say("two")
		if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if text, err := read.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("heard %q, %v through a cut link", text, err)
		}
		if err := errors.Join(c.SetReadDeadline(time.Time{}), p.cut(way[0], way[1], false)); err != nil {
			t.Fatal(err)
		}
		hear("two")
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := read.ReadString('\n'); err == nil {
		t.Fatal("the connection outlived its network")
	}
	l.Close()
}

// TestOutageIsMeasuredWhileAMajorityCouldWork: time without a majority is nobody's fault.
func TestOutageIsMeasuredWhileAMajorityCouldWork(t *testing.T) {
	o := newOutages()
	o.change(0, true, "nothing")
	o.success(10)
	o.success(30)
	o.change(40, false, "kill-all")
	o.success(45)
	o.change(1000, true, "after kill-all")
	o.success(1070)
	o.change(1080, true, "kill-leader")
	o.success(1120)
	o.alive(1130, 0)
	stall := int64(pulseMax) + 1
	o.success(1130 + stall)
	o.alive(1131+stall, time.Duration(stall))
	o.success(1150 + stall)
	want := map[string]int64{"nothing": 20, "after kill-all": 70, "kill-leader": 40}
	for cause, gap := range want {
		if o.byKind[cause] != gap {
			t.Errorf("%s: an outage of %d, want %d", cause, o.byKind[cause], gap)
		}
	}
	if o.longest != 70 || o.during != "after kill-all" {
		t.Errorf("the longest is %d, %s", o.longest, o.during)
	}
}

// TestJudgeSeesWhatIsWrong plants one fault after the other into an observation that is right.
func TestJudgeSeesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		class string
		plant func(r *run)
	}{
		{"", func(*run) {}},
		{"acknowledged-lost", func(r *run) { r.finals[mainStream].Messages = nil }},
		{"not-linearizable", func(r *run) { // a read that misses what was acknowledged before it began
			read(r, mainStream, 0, 0)
		}},
		{"consumer-redelivered", func(r *run) {
			d := r.log.seen.Deliveries[0]
			d.Asked, d.At, d.ConsumerSeq, d.Count = r.log.now(), r.log.now()+int64(time.Hour), 2, 2
			r.log.delivered(d)
		}},
		{"watch", func(r *run) { r.log.watches[0].seen = append(r.log.watches[0].seen, r.log.watches[0].seen[0]) }},
		{"created-over", func(r *run) {
			id := write(r, bucket.name, bucket.subject(0), 2)
			r.log.marks(id, &r.log.creates)
			r.finals[bucket.name].Messages[0].Seq, r.finals[bucket.name].Messages[0].Value = 2, id
			r.finals[bucket.name].Last = 2
		}},
		{"wrong", func(r *run) { r.wrong("something") }},
		{"crash", func(r *run) { r.cluster.crashes = append(r.cluster.crashes, "n1") }},
	} {
		r := rightRun()
		c.plant(r)
		r.judge(&load{run: r})
		classes := map[string]bool{}
		for _, f := range r.report.Findings {
			classes[f.Class] = true
		}
		if c.class == "" && len(classes) != 0 || c.class != "" && !classes[c.class] {
			t.Errorf("want %q, found %+v", c.class, r.report.Findings)
		}
	}
}

// rightRun is a run of a correct cluster: one message, consumed and acknowledged, and one key, watched.
func rightRun() *run {
	r := &run{log: newRecorder(), report: &Report{}, cluster: &cluster{}, finals: map[string]*workload.Final{}}
	r.states = make([]*workload.ConsumerState, len(consumers))
	subject := (&target{prefix: mainPrefix}).subject(3)
	id := write(r, mainStream, subject, 1)
	r.finals[mainStream] = final(mainStream, subject, id)
	read(r, mainStream, 1, id)
	for i := range consumers {
		d := r.log.delivered(workload.Delivery{
			At: r.log.now(), Asked: r.log.now(), Consumer: i, StreamSeq: 1, ConsumerSeq: 1, Count: 1, Value: id, Subject: subject,
		})
		r.log.acked(r.log.acking(workload.Ack{Consumer: i, Delivery: d}), true)
	}
	id = write(r, bucket.name, bucket.subject(0), 1)
	r.finals[bucket.name] = final(bucket.name, bucket.subject(0), id)
	r.log.watch(&watch{name: "w", of: &bucket, seen: []workload.Delivery{{StreamSeq: 1, Value: id, Subject: bucket.subject(0)}}})
	return r
}

func final(_, subject string, id uint64) *workload.Final {
	return &workload.Final{First: 1, Count: 1, Final: history.Final{
		Last: 1, Messages: []history.Message{{Seq: 1, Subject: subject, Value: id}},
	}}
}

// write is a publish that was acknowledged.
func write(r *run, stream, subject string, seq uint64) uint64 {
	pos, id := r.log.begin(history.Record{Client: 1, Kind: history.Publish, Stream: stream, Subject: subject})
	r.log.end(pos, history.OK, func(rec *history.Record) { rec.Seq = seq })
	return id
}

// read is a read of the last message of the stream.
func read(r *run, stream string, seq, value uint64) {
	pos, _ := r.log.begin(history.Record{Client: 2, Kind: history.GetLast, Stream: stream, Subject: (&target{prefix: mainPrefix}).subject(3)})
	r.log.end(pos, history.OK, func(rec *history.Record) { rec.Seq, rec.Value = seq, value })
}
