package route

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/model/subject"
	"weir/node/event"
)

// inbox is a receiver that notes what it gets.
type inbox struct {
	got []string
	// refuse makes Deliver decline; then runs after each delivery.
	refuse map[*Sub]bool
	then   func(sub *Sub, m *Message)
}

func (in *inbox) Deliver(sub *Sub, m *Message) bool {
	if in.refuse[sub] {
		return false
	}
	in.got = append(in.got, fmt.Sprintf("%s %s", sub.Sid, m.Subject))
	if in.then != nil {
		in.then(sub, m)
	}
	return true
}

func newTable(seed uint64) *Table { return NewTable(rand.NewPCG(seed, 0)) }

func (in *inbox) sub(t *Table, sid, pattern, queue string) *Sub {
	s := &Sub{Conn: 1, Receiver: in, Pattern: pattern, Queue: queue, Sid: []byte(sid)}
	t.Subscribe(s)
	return s
}

func send(t *Table, to string) int { return t.Route([]byte(to), &Message{Subject: []byte(to)}) }

// naive answers as a table should, by looking at every subscription.
type naive []*Sub

func (n naive) match(to string) (plain []*Sub, groups map[string][]*Sub) {
	groups = map[string][]*Sub{}
	for _, s := range n {
		switch {
		case !subject.Matches(to, s.Pattern):
		case s.Queue == "":
			plain = append(plain, s)
		default:
			groups[s.Queue] = append(groups[s.Queue], s)
		}
	}
	return plain, groups
}

func randomSubject(random *rand.Rand, pattern bool) string {
	var tokens []string
	for range 1 + random.IntN(3) {
		tokens = append(tokens, string(rune('a'+random.IntN(3))))
		if pattern && random.IntN(4) == 0 {
			tokens[len(tokens)-1] = "*"
		}
	}
	if pattern && random.IntN(5) == 0 {
		tokens[len(tokens)-1] = ">"
	}
	return strings.Join(tokens, ".")
}

func sameSubs(a, b []*Sub) bool {
	if len(a) != len(b) {
		return false
	}
	for _, s := range a {
		if !slices.Contains(b, s) {
			return false
		}
	}
	return true
}

func TestTableAnswersAsANaiveSearch(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		table, in := newTable(seed), &inbox{}
		var all naive
		var watched []*Watch
		reported := map[*Watch]bool{}
		for step := range 600 {
			switch op := random.IntN(10); {
			case op < 3:
				queue := []string{"", "", "q", "r"}[random.IntN(4)]
				all = append(all, in.sub(table, "s", randomSubject(random, true), queue))
			case op < 5 && len(all) > 0:
				at := random.IntN(len(all))
				table.Unsubscribe(all[at])
				all = slices.Delete(all, at, at+1)
			case op == 5 && len(watched) < 20:
				w := table.Watch(randomSubject(random, false), []string{"", "q"}[random.IntN(2)], 0)
				watched = append(watched, w)
				reported[w] = w.Interested()
			case op == 6 && len(watched) > 0:
				at := random.IntN(len(watched))
				table.Unwatch(watched[at])
				watched = slices.Delete(watched, at, at+1)
			default:
				compare(t, seed, step, table, all, randomSubject(random, false))
			}
			if random.IntN(3) == 0 {
				for _, w := range table.Changed(nil) {
					if reported[w] == w.Interested() || !slices.Contains(watched, w) {
						t.Fatalf("seed %d step %d: %s reported without a change", seed, step, w.Subject)
					}
					reported[w] = w.Interested()
				}
				for _, w := range watched {
					plain, groups := all.match(w.Subject)
					count := len(plain)
					if w.Group != "" {
						count = len(groups[w.Group])
					}
					if w.subscriptions != count || reported[w] != (count > 0) {
						t.Fatalf("seed %d step %d: %s counts %d, reported %v, recount %d", seed, step, w.Subject,
							w.subscriptions, reported[w], count)
					}
				}
			}
		}
		if table.Len() != len(all) || table.Watches() != len(watched) {
			t.Fatalf("seed %d: %d of %d subscriptions, %d of %d watches", seed, table.Len(), len(all), table.Watches(), len(watched))
		}
	}
}

func compare(t *testing.T, seed uint64, step int, table *Table, all naive, to string) {
	t.Helper()
	plain, groups := all.match(to)
	for range 2 { // The second answer comes from the cache.
		result := table.Match([]byte(to))
		if !sameSubs(result.Plain, plain) || len(result.Groups) != len(groups) {
			t.Fatalf("seed %d step %d: %q has %d plain and %d groups, want %d and %d", seed, step, to,
				len(result.Plain), len(result.Groups), len(plain), len(groups))
		}
		for _, g := range result.Groups {
			if !sameSubs(g.Members, groups[g.Name]) {
				t.Fatalf("seed %d step %d: group %q of %q differs", seed, step, g.Name, to)
			}
		}
	}
	if got := table.HasInterest([]byte(to)); got != (len(plain)+len(groups) > 0) {
		t.Fatalf("seed %d step %d: interest in %q is %v", seed, step, to, got)
	}
	if got := table.HasGroupInterest([]byte(to), "q"); got != (len(groups["q"]) > 0) {
		t.Fatalf("seed %d step %d: group interest in %q is %v", seed, step, to, got)
	}
}

func TestInboxNeverSeenIsAnsweredFromTheCache(t *testing.T) {
	table, in := newTable(1), &inbox{}
	in.sub(table, "1", "_INBOX.x.*", "")
	in.sub(table, "2", "other", "")
	send(table, "_INBOX.x.0")
	before := table.Stats()
	for i := range 100 {
		in.got = nil
		to := fmt.Sprintf("_INBOX.x.%d", i+1)
		if send(table, to); len(in.got) != 1 || in.got[0] != "1 "+to {
			t.Fatalf("%s: %v", to, in.got)
		}
	}
	if after := table.Stats(); after.Hits-before.Hits != 100 {
		t.Errorf("%d of 100 from the cache", after.Hits-before.Hits)
	}
	if n := send(table, "_INBOX.x."); n != 0 {
		t.Errorf("a subject with an empty token has %d receivers", n)
	}
	literal := in.sub(table, "3", "_INBOX.x.7", "")
	if n := send(table, "_INBOX.x.7"); n != 2 {
		t.Errorf("%d receivers beside a literal pattern", n)
	}
	table.Unsubscribe(literal)
	if n := send(table, "_INBOX.x.7"); n != 1 {
		t.Errorf("%d receivers without the literal pattern", n)
	}
}

func TestGroupMembersShareByNameWhateverTheirPatterns(t *testing.T) {
	table, in := newTable(1), &inbox{}
	in.sub(table, "1", "a.b", "q")
	in.sub(table, "2", "a.*", "q")
	in.sub(table, "3", ">", "other")
	in.sub(table, "4", "a.>", "")
	for range 100 {
		in.got = nil
		if taken := send(table, "a.b"); taken != 3 {
			t.Fatalf("%d subscriptions took the message: %v", taken, in.got)
		}
		if in.got[0] != "4 a.b" {
			t.Fatalf("plain subscriptions come first: %v", in.got)
		}
	}
}

func TestGroupSpreadsOverItsMembers(t *testing.T) {
	table, in := newTable(2), &inbox{}
	for i := range 4 {
		in.sub(table, fmt.Sprint(i), "a", "q")
	}
	for range 400 {
		send(table, "a")
	}
	counts := map[string]int{}
	for _, got := range in.got {
		counts[got]++
	}
	for i := range 4 {
		if n := counts[fmt.Sprintf("%d a", i)]; n < 50 {
			t.Errorf("member %d got %d of 400", i, n)
		}
	}
}

func TestGroupTriesNextMemberWhenOneDeclines(t *testing.T) {
	table := newTable(3)
	in := &inbox{refuse: map[*Sub]bool{}}
	for i := range 5 {
		in.refuse[in.sub(table, fmt.Sprint(i), "a", "q")] = i != 3
	}
	for range 20 {
		in.got = nil
		if send(table, "a") != 1 || in.got[0] != "3 a" {
			t.Fatalf("got %v", in.got)
		}
	}
}

func TestNothingTakesASubjectWithAnEmptyToken(t *testing.T) {
	table, in := newTable(4), &inbox{}
	in.sub(table, "1", ">", "")
	for _, to := range []string{"", ".", "a.", ".a", "a..b"} {
		if send(table, to) != 0 {
			t.Errorf("%q was taken", to)
		}
	}
}

func TestSubscriptionThatEndsDuringRoutingGetsNothing(t *testing.T) {
	table, in := newTable(5), &inbox{}
	in.sub(table, "1", "a", "")
	second := in.sub(table, "2", "a", "")
	in.then = func(sub *Sub, _ *Message) {
		if sub != second && second.Active() {
			table.Unsubscribe(second)
		}
	}
	if taken := send(table, "a"); taken != 1 || len(in.got) != 1 {
		t.Fatalf("%d took it: %v", taken, in.got)
	}
}

func TestReceiversMayRouteInAnswer(t *testing.T) {
	table, in := newTable(6), &inbox{}
	in.sub(table, "1", "a", "")
	in.sub(table, "2", "a", "")
	in.sub(table, "3", "b.*", "")
	in.sub(table, "4", "c", "")
	count := 0
	in.then = func(sub *Sub, m *Message) {
		if string(sub.Sid) == "1" || string(sub.Sid) == "2" {
			count++
			if send(table, fmt.Sprintf("b.%d", count)) != 1 {
				t.Error("the first answer was not taken")
			}
			in.sub(table, "5", "a", "") // Not seen by the message under way.
			if send(table, "c") != 1 {
				t.Error("the second answer was not taken")
			}
		}
	}
	if taken := send(table, "a"); taken != 2 {
		t.Fatalf("%d took it", taken)
	}
	want := []string{"1 a", "3 b.1", "4 c", "2 a", "3 b.2", "4 c"}
	if !slices.Equal(in.got, want) {
		t.Fatalf("got %q, want %q", in.got, want)
	}
	in.got = nil
	in.then = nil
	if taken := send(table, "a"); taken != 4 {
		t.Fatalf("%d took the next one", taken)
	}
}

func TestNoticeGoesToAPlainSubscriptionOfTheSameClient(t *testing.T) {
	table, in := newTable(7), &inbox{}
	in.sub(table, "1", "inbox.*", "q")
	want := in.sub(table, "2", "inbox.*", "")
	other := &Sub{Conn: 2, Receiver: in, Pattern: ">", Sid: []byte("3")}
	table.Subscribe(other)
	if got := table.PlainOf(event.ConnID(1), []byte("inbox.x")); got != want {
		t.Errorf("got %v", got)
	}
	if got := table.PlainOf(3, []byte("inbox.x")); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestEqualSeedsChooseEqually(t *testing.T) {
	run := func() []string {
		table, in := newTable(9), &inbox{}
		for i := range 7 {
			in.sub(table, fmt.Sprint(i), "a", "q")
		}
		for range 50 {
			send(table, "a")
		}
		return in.got
	}
	if first, second := run(), run(); !slices.Equal(first, second) {
		t.Fatalf("%v and %v", first, second)
	}
}

func TestLongSubjectsAreRouted(t *testing.T) {
	table, in := newTable(10), &inbox{}
	long := strings.Repeat("x", cachedSubjectBytesMax+1)
	sub := in.sub(table, "1", long, "")
	for range 2 {
		if send(table, long) != 1 {
			t.Fatal("not taken")
		}
	}
	table.Unsubscribe(sub)
	if send(table, long) != 0 {
		t.Fatal("taken after the end")
	}
}

// sink takes everything and notes nothing.
type sink struct{}

func (sink) Deliver(*Sub, *Message) bool { return true }

func TestRoutingDoesNotAllocate(t *testing.T) {
	table := newTable(11)
	for _, s := range []*Sub{{Pattern: "orders.*", Receiver: sink{}}, {Pattern: "orders.>", Queue: "q", Receiver: sink{}},
		{Pattern: ">", Queue: "q", Receiver: sink{}}, {Pattern: ">", Queue: "r", Receiver: sink{}}} {
		table.Subscribe(s)
	}
	subjects := make([][]byte, 5000)
	for i := range subjects {
		subjects[i] = fmt.Appendf(nil, "orders.%d", i)
	}
	m := &Message{Subject: subjects[0]}
	for range 3 {
		for _, to := range subjects {
			table.Route(to, m)
		}
	}
	i := 0
	allocs := testing.AllocsPerRun(20_000, func() { // More subjects than slots: hits and misses both.
		table.Route(subjects[i%len(subjects)], m)
		i++
	})
	if allocs != 0 {
		t.Errorf("%v allocations per message", allocs)
	}
}

func BenchmarkRouteHit(b *testing.B) {
	table := newTable(12)
	table.Subscribe(&Sub{Pattern: "orders.*", Receiver: sink{}})
	to, m := []byte("orders.new"), &Message{}
	b.ReportAllocs()
	for range b.N {
		table.Route(to, m)
	}
}

func BenchmarkRouteMiss(b *testing.B) {
	table := newTable(13)
	table.Subscribe(&Sub{Pattern: "orders.*", Receiver: sink{}})
	to, m := []byte("orders.00000000"), &Message{}
	b.ReportAllocs()
	for i := range b.N {
		n := i
		for at := 7; at < len(to); at++ {
			to[at] = byte('0' + n%10)
			n /= 10
		}
		table.Route(to, m)
	}
}
