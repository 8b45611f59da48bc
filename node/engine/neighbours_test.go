package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/model/subject"
	"weir/node/event"
	"weir/node/route"
	"weir/transport/peerwire"
)

func TestMessagesArriveWholeAtAnotherServer(t *testing.T) {
	w := newTown(t, 2)
	w.linkAll()
	a, b, other := w.open(0, "a"), w.open(1, "a"), w.open(1, "b")
	w.send(b, "SUB x.* 7\r\n")
	w.send(other, "SUB > 1\r\n")
	w.send(a, "HPUB x.y back 17 22\r\nNATS/1.0\r\nA:b\r\n\r\nhello\r\n")
	b.expect(t, "HMSG x.y 7 back 17 22\r\nNATS/1.0\r\nA:b\r\n\r\nhello\r\n")
	w.send(a, "PUB x.z 0\r\n\r\n")
	b.expect(t, "MSG x.z 7 0\r\n\r\n")
	other.expect(t, "")
	a.expect(t, "")
}

func TestRequestsAreAnsweredAcrossServers(t *testing.T) {
	w := newTown(t, 3)
	service := w.open(2, "a")
	w.send(service, "SUB service workers 1\r\n")
	w.linkAll() // Interest from before the session counts as well.
	a := w.open(0, "a")
	// Subscription and request arrive together: the answer finds its way.
	w.send(a, "SUB inbox.1 1\r\nUNSUB 1 1\r\nPUB service inbox.1 1\r\n?\r\n")
	service.expect(t, "MSG service 1 inbox.1 1\r\n?\r\n")
	w.send(service, "PUB inbox.1 1\r\n!\r\n")
	a.expect(t, "MSG inbox.1 1 1\r\n!\r\n")
	w.send(service, "PUB inbox.1 more 1\r\n!\r\n")
	a.expect(t, "")
	service.expect(t, "")
}

func TestNobodyRespondsOnlyWhenNoServerHasInterest(t *testing.T) {
	w := newTown(t, 2)
	w.linkAll()
	a, b := w.open(0, "a"), w.open(1, "a")
	ask := "PUB service inbox.1 1\r\n?\r\n"
	nobody := "HMSG inbox.1 1 45 45\r\nNATS/1.0 503\r\nNats-Subject: service\r\n\r\n\r\n"
	w.send(a, "SUB inbox.1 1\r\n"+ask)
	if got := a.read(); !strings.Contains(got, "NATS/1.0 503") {
		t.Fatalf("got %q, want something like %q", got, nobody)
	}
	w.send(b, "SUB service 1\r\n")
	w.send(a, ask)
	a.expect(t, "")
	w.link(0, 1, false)
	w.send(a, ask)
	if got := a.read(); !strings.Contains(got, "NATS/1.0 503") {
		t.Fatalf("after the session got %q", got)
	}
}

func TestClientsLearnWhereElseToConnect(t *testing.T) {
	w := newTown(t, 3)
	a := w.open(0, "a")
	early := w.open(0, "a") // has not sent its first PING
	w.send(a, "PING\r\n")
	if got := a.read(); !strings.Contains(got, `"cluster":"town"`) || strings.Contains(got, "connect_urls") {
		t.Fatalf("got %q", got)
	}
	w.linkAll()
	if got := a.read(); !strings.Contains(got, `"connect_urls":["10.0.0.3:4222","10.0.0.1:4222","10.0.0.2:4222"]`) {
		t.Fatalf("got %q", got)
	}
	early.expect(t, "")
	w.send(early, "PING\r\n")
	if got := early.read(); !strings.HasPrefix(got, "PONG\r\nINFO ") || strings.Count(got, "10.0.0.") != 3 {
		t.Fatalf("got %q", got)
	}
	w.link(0, 1, false)
	if got := a.read(); !strings.Contains(got, `"connect_urls":["10.0.0.3:4222","10.0.0.1:4222"]`) {
		t.Fatalf("got %q", got)
	}
	w.step(0, event.Input{Kind: event.LameDuck})
	if got := a.read(); !strings.Contains(got, `"connect_urls":["10.0.0.1:4222"]`) || !strings.Contains(got, `"ldm":true`) {
		t.Fatalf("got %q", got)
	}
}

func TestEveryServerAnswersWhoeverLooksForServers(t *testing.T) {
	w := newTown(t, 3)
	w.linkAll()
	s := w.open(1, "s")
	w.send(s, "SUB inbox 1\r\nPUB $SYS.REQ.SERVER.PING inbox 0\r\n\r\n")
	got := s.read()
	for at := range w.engines {
		if strings.Count(got, fmt.Sprintf(`"name":"n%d"`, at)) != 1 {
			t.Errorf("server %d did not answer once: %q", at, got)
		}
	}
}

func TestReceiversElsewhereSeeTheSubjectOfTheMessage(t *testing.T) {
	w := newTown(t, 2)
	w.linkAll()
	b := w.open(1, "a")
	w.send(b, "SUB inbox.* 1\r\n")
	w.engines[0].accountNamed["A"].route([]byte("inbox.1"), route.Message{Subject: []byte("orders"), Reply: []byte("ack")})
	w.settle(0)
	b.expect(t, "MSG orders 1 ack 0\r\n\r\n")
}

func TestResponderElsewhereMayAnswerOnce(t *testing.T) {
	w := newTown(t, 2)
	w.linkAll()
	a, r := w.open(0, "a"), w.open(1, "r")
	w.send(r, "SUB service 1\r\n")
	w.send(a, "SUB inbox 1\r\nPUB service inbox 0\r\n\r\n")
	r.expect(t, "MSG service 1 inbox 0\r\n\r\n")
	w.send(r, "PUB inbox 1\r\n!\r\nPUB inbox 1\r\n!\r\n")
	a.expect(t, "MSG inbox 1 1\r\n!\r\n")
	if got := r.read(); !strings.HasPrefix(got, "-ERR 'Permissions Violation for Publish") {
		t.Errorf("got %q", got)
	}
}

func TestPublisherWaitsForANeighbourAndThenLosesMessages(t *testing.T) {
	w := newTown(t, 2)
	w.linkAll()
	a, b := w.open(0, "a"), w.open(1, "a")
	w.send(b, "SUB x 1\r\n")
	const size = 1 << 20
	message := fmt.Sprintf("PUB x %d\r\n%s\r\n", size, strings.Repeat("m", size))
	w.hold = true
	stalled := 0
	for i := range 30 {
		delete(w.orders, a.id)
		w.send(a, message)
		if w.orders[a.id].StallNanos > 0 && stalled == 0 {
			stalled = i
		}
	}
	if stalled != WindowBytes/size {
		t.Errorf("message %d was the first for which the publisher had to wait", stalled)
	}
	if len(w.held) != WindowBytesMax/size {
		t.Errorf("%d messages are under way", len(w.held))
	}
	w.release()
	if len(w.logs) != 2 || !strings.Contains(w.logs[1], "6 messages were dropped") {
		t.Errorf("logs %q", w.logs)
	}
	b.read()
	delete(w.orders, a.id)
	w.send(a, message)
	if got := b.read(); len(got) < size || w.orders[a.id].StallNanos > 0 {
		t.Errorf("got %d bytes, the publisher waits %d ns", len(got), w.orders[a.id].StallNanos)
	}
}

func TestServersKnowOfClientsElsewhereThatFallBehind(t *testing.T) {
	w := newTown(t, 3)
	w.linkAll()
	a, b := w.open(0, "a"), w.open(1, "a")
	w.send(b, "SUB x 1\r\nSUB y 2\r\n")
	keepsUp := func(to string) bool {
		e := w.engines[2]
		return e.accountNamed["A"].routes.Match([]byte(to)).KeepsUp(func(*route.Sub) bool { return true }, e.peerKeepsUp)
	}
	b.slow = true
	const size = 1 << 20
	for range 20 {
		w.send(a, fmt.Sprintf("PUB x %d\r\n%s\r\n", size, strings.Repeat("m", size)))
	}
	if keepsUp("x") || !keepsUp("y") {
		t.Errorf("x keeps up: %v, y keeps up: %v", keepsUp("x"), keepsUp("y"))
	}
	w.send(b, "UNSUB 1\r\nSUB x 3\r\n")
	if !keepsUp("x") {
		t.Error("a new subscription is behind from the start")
	}
	w.send(a, "PUB x 0\r\n\r\n")
	if keepsUp("x") {
		t.Error("the client keeps up although nothing was written")
	}
	w.step(1, event.Input{Kind: event.Flushed, Conn: b.id, N: b.unread})
	if !keepsUp("x") {
		t.Error("the client is behind after everything was written")
	}
}

func TestPublisherWaitsForAClientElsewhereThatIsAboutToBeClosed(t *testing.T) {
	w := newTown(t, 2)
	w.linkAll()
	a, b := w.open(0, "a"), w.open(1, "a")
	w.send(b, "SUB x 1\r\n")
	b.slow = true
	const size = 1 << 20
	send := func() (stalled bool) {
		delete(w.orders, a.id)
		w.send(a, fmt.Sprintf("PUB x %d\r\n%s\r\n", size, strings.Repeat("m", size)))
		return w.orders[a.id].StallNanos > 0
	}
	sent := 0
	for !send() {
		sent++
	}
	if limit := w.engines[1].config.Limits.PendingBytes; sent*size < limit/4*3-size || sent*size > limit/4*3+size {
		t.Errorf("the publisher had to wait after %d messages", sent)
	}
	w.step(1, event.Input{Kind: event.Flushed, Conn: b.id, N: b.unread / 2})
	b.unread -= b.unread / 2
	if send() {
		t.Error("the publisher waits although there is room again")
	}
}

func TestInterestOfANeighbourIsBounded(t *testing.T) {
	w := newTown(t, 1)
	e := w.engines[0]
	e.interestPeerUp(7, &peerwire.Hello{})
	e.neighbour(7).count = InterestMax
	f := peerwire.Frame{Kind: peerwire.Interest, Account: []byte("A"), Subject: []byte("x"), Count: 1}
	for range 2 {
		if err := e.interestFrame(7, &f); err != nil || e.accountNamed["A"].routes.HasInterest([]byte("x")) {
			t.Errorf("one interest too many: %v", err)
		}
	}
	if len(e.logs) != 1 {
		t.Errorf("logs %q", e.logs)
	}
	f.Count, f.Subject = 0, []byte("x..y")
	if err := e.interestFrame(7, &f); err == nil {
		t.Error("an invalid subject was accepted")
	}
}

// wanted is a subscription of the naive model.
type wanted struct {
	client              *townsman
	account             string
	pattern, queue, sid string
}

func TestTownDeliversAsANaiveSearch(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 4))
		w := newTown(t, 3)
		var clients []*townsman
		accounts := map[*townsman]string{}
		for range 8 {
			account := []string{"a", "a", "b"}[random.IntN(3)]
			c := w.open(random.IntN(3), account)
			clients = append(clients, c)
			accounts[c] = account
		}
		var subs []wanted
		for step := range 300 {
			c := clients[random.IntN(len(clients))]
			switch random.IntN(8) {
			case 0, 1:
				s := wanted{c, accounts[c], word(random, true), []string{"", "", "q", "r"}[random.IntN(4)], fmt.Sprint(step)}
				subs = append(subs, s)
				w.send(c, strings.Join([]string{"SUB", s.pattern, s.queue, s.sid}, " ")+"\r\n")
			case 2:
				if len(subs) > 0 {
					at := random.IntN(len(subs))
					w.send(subs[at].client, "UNSUB "+subs[at].sid+"\r\n")
					subs = slices.Delete(subs, at, at+1)
				}
			case 3:
				w.link(random.IntN(3), random.IntN(3), random.IntN(3) > 0)
			default:
				to := word(random, false)
				w.send(c, fmt.Sprintf("PUB %s %d\r\n%d\r\n", to, len(fmt.Sprint(step)), step))
				w.compare(fmt.Sprintf("seed %d step %d", seed, step), subs, to, c, accounts[c])
			}
		}
	}
}

// compare looks at who got the last message, to the subject from the client.
func (w *town) compare(where string, subs []wanted, to string, from *townsman, account string) {
	w.t.Helper()
	got := map[string]int{}
	for id, c := range w.clients { // order-free: counts
		for line := range strings.SplitSeq(c.read(), "\r\n") {
			if fields := strings.Fields(line); len(fields) == 4 && fields[0] == "MSG" && fields[1] == to {
				got[fmt.Sprint(id, " ", fields[2])]++
			} else if len(fields) > 1 {
				w.t.Fatalf("%s: unexpected %q", where, line)
			}
		}
	}
	groups := map[string]int{}     // deliveries
	local := map[string]bool{}     // groups with a member at the publisher's server
	elsewhere := map[string]bool{} // groups that got it at another server
	for _, s := range subs {
		reached := s.client.at == from.at || w.up[s.client.at][from.at]
		if s.account != account || !reached || !subject.Matches(to, s.pattern) {
			continue
		}
		key := fmt.Sprint(s.client.id, " ", s.sid)
		n := got[key]
		delete(got, key)
		if s.queue == "" {
			if n != 1 {
				w.t.Fatalf("%s: %q went %d times to client %d, %q", where, to, n, s.client.id, s.pattern)
			}
			continue
		}
		groups[s.queue] += n
		local[s.queue] = local[s.queue] || s.client.at == from.at
		elsewhere[s.queue] = elsewhere[s.queue] || s.client.at != from.at && n > 0
	}
	for queue, n := range groups { // order-free: any failure will do
		if n != 1 || local[queue] && elsewhere[queue] {
			w.t.Fatalf("%s: %q went %d times to group %q, elsewhere %v", where, to, n, queue, elsewhere[queue])
		}
	}
	if len(got) > 0 {
		w.t.Fatalf("%s: %q went to %v as well", where, to, got)
	}
}

func word(random *rand.Rand, pattern bool) string {
	tokens := make([]string, 1+random.IntN(3))
	for i := range tokens {
		tokens[i] = string(rune('a' + random.IntN(3)))
		if pattern && random.IntN(4) == 0 {
			tokens[i] = "*"
		}
	}
	if pattern && random.IntN(5) == 0 {
		tokens[len(tokens)-1] = ">"
	}
	return strings.Join(tokens, ".")
}

// neighbours are two servers of which one has a client for x that takes what it gets.
func neighbours(t testing.TB) (w *town, message *route.Message) {
	w = newTown(t, 2)
	w.linkAll()
	b := w.open(1, "a")
	w.send(b, "SUB x 1\r\n")
	return w, &route.Message{Subject: []byte("x"), Payload: make([]byte, 128)}
}

// pass has the first server route the message and the second one take it, without any frame but the message's.
func (w *town) pass(m *route.Message, f *peerwire.Frame) {
	first, second := w.engines[0], w.engines[1]
	first.accountNamed["A"].routes.Route(m.Subject, m)
	frames := first.toPeer(townID(1))
	if err := peerwire.Parse(*frames, f); err != nil {
		w.t.Fatal(err)
	}
	*frames = (*frames)[:0]
	second.passed(townID(0), f)
	second.routedMsg(f)
}

func TestMessagesToNeighboursDoNotAllocate(t *testing.T) {
	w, m := neighbours(t)
	var f peerwire.Frame
	for range 1000 {
		w.pass(m, &f)
	}
	// The bytes for the client and what is reported as taken are not taken away, and grow now and then.
	if allocs := testing.AllocsPerRun(10, func() {
		for range 1000 {
			w.pass(m, &f)
		}
	}); allocs > 3 {
		t.Errorf("%v allocations for 1000 messages", allocs)
	}
}

func BenchmarkMessageToNeighbour(b *testing.B) {
	w, m := neighbours(b)
	var f peerwire.Frame
	b.ReportAllocs()
	for i := range b.N {
		w.pass(m, &f)
		if i%1000 == 0 {
			w.settle(1)
			w.clients[1].text.Reset()
		}
	}
}
