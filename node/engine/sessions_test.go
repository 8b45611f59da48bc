package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/node/event"
)

// carry brings the oldest frames from one server to another, if they can come: those of a session that the receiver has
// not begun wait, those of one that is over for it are lost.
func (w *town) carry(from, to int) bool {
	w.t.Helper()
	at := slices.IndexFunc(w.held, func(p parcel) bool { return p.from == from && p.to == to })
	if at < 0 {
		return false
	}
	p := w.held[at]
	seen := w.session[[2]int{to, from}]
	if seen < p.session {
		return false
	}
	w.held = slices.Delete(w.held, at, at+1)
	if seen == p.session && w.up[to][from] {
		w.step(to, event.Input{Kind: event.FromPeer, Peer: townID(from), Frames: p.frames})
	}
	return true
}

// flip has one server see the end of its session with another, or the beginning of the next.
func (w *town) flip(at, other int) {
	w.t.Helper()
	mine, theirs := w.session[[2]int{at, other}], w.session[[2]int{other, at}]
	if w.up[at][other] {
		w.up[at][other] = false
		w.step(at, event.Input{Kind: event.PeerDown, Peer: townID(other)})
		return
	}
	w.session[[2]int{at, other}] = max(mine+1, theirs)
	w.up[at][other] = true
	hello := w.engines[other].Hello()
	w.step(at, event.Input{Kind: event.PeerUp, Peer: townID(other), Hello: &hello})
}

// heal has all servers see one session with each other, and all frames arrive.
func (w *town) heal() {
	w.t.Helper()
	for a := range w.engines {
		for b := range a {
			for !w.up[a][b] || !w.up[b][a] || w.session[[2]int{a, b}] != w.session[[2]int{b, a}] {
				late, other := a, b
				if w.session[[2]int{a, b}] > w.session[[2]int{b, a}] || w.up[a][b] && !w.up[b][a] {
					late, other = b, a
				}
				w.flip(late, other)
			}
		}
	}
	for moved := true; moved; {
		moved = false
		for a := range w.engines {
			for b := range w.engines {
				moved = w.carry(a, b) || moved
			}
		}
	}
	if len(w.held) > 0 {
		w.t.Fatalf("%d parcels cannot arrive", len(w.held))
	}
}

// once checks that nobody got a message twice: neither a subscription nor a group.
func (w *town) once(subs map[string]string) {
	w.t.Helper()
	got := map[string]bool{}
	for id, c := range w.clients { // order-free: any failure will do
		lines := strings.Split(c.read(), "\r\n")
		for i, line := range lines {
			fields := strings.Fields(line)
			if len(fields) != 4 || fields[0] != "MSG" {
				continue
			}
			who := fmt.Sprint(id, " ", fields[2])
			if queue := subs[fields[2]]; queue != "" {
				who = queue
			}
			key := who + " " + lines[i+1]
			if got[key] {
				w.t.Fatalf("message %s came twice", key)
			}
			got[key] = true
		}
	}
}

func TestInterestSurvivesSessionsThatServersSeeDifferently(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 7))
		w := newTown(t, 3)
		w.hold = true
		var clients []*townsman
		for at := range 3 {
			clients = append(clients, w.open(at, "a"), w.open(at, "a"))
		}
		var subs []wanted
		queues := map[string]string{} // by sid, ever
		for round := range 4 {
			for step := range 150 {
				c := clients[random.IntN(len(clients))]
				a, b := random.IntN(3), random.IntN(3)
				switch op := random.IntN(12); {
				case op < 2:
					sid := fmt.Sprintf("%d.%d", round, step)
					s := wanted{c, "a", word(random, true), []string{"", "", "q", "r"}[random.IntN(4)], sid}
					subs, queues[sid] = append(subs, s), s.queue
					w.send(c, strings.Join([]string{"SUB", s.pattern, s.queue, s.sid}, " ")+"\r\n")
				case op == 2 && len(subs) > 0:
					at := random.IntN(len(subs))
					w.send(subs[at].client, "UNSUB "+subs[at].sid+"\r\n")
					subs = slices.Delete(subs, at, at+1)
				case op < 5:
					body := fmt.Sprintf("%d.%d", round, step)
					w.send(c, fmt.Sprintf("PUB %s %d\r\n%s\r\n", word(random, false), len(body), body))
				case op == 5 && a != b:
					w.flip(a, b)
				default:
					w.carry(a, b)
				}
			}
			w.heal()
			w.once(queues)
			for step := range 10 {
				c, to := clients[random.IntN(len(clients))], word(random, false)
				w.send(c, fmt.Sprintf("PUB %s 1\r\n.\r\n", to))
				w.heal()
				w.compare(fmt.Sprintf("seed %d round %d step %d", seed, round, step), subs, to, c, "a")
			}
		}
	}
}
