package host

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode"

	"weir/node/event"
	"weir/transport/peerwire"
	"weir/transport/tcp"
)

// route is a server that is dialed whenever there is no session with it.
type route struct {
	Route
	configured bool
	// id is the server that was last found there; 0 before. removed says that it is to be dialed no more. Guarded by Host.mu.
	id      event.ServerID
	removed bool
}

// addRoute begins to dial an address. Host.mu is held.
func (l *links) addRoute(r *route) {
	if l.routes[r.Address] != nil || l.context.Err() != nil {
		return
	}
	l.routes[r.Address] = r
	l.running.Add(1)
	go l.keep(r)
}

// learn begins to dial a server that another one told of. Its id is 0 when that is not known. Host.mu is held.
func (l *links) learn(id event.ServerID, address string) {
	own := &l.host.options.Node.Engine
	if !dialable(address) || id == own.Server || address == own.Cluster.Address || l.routes[address] != nil {
		return
	}
	if len(l.routes)-len(l.options.Load().Routes) < LearnedMax {
		l.addRoute(&route{Route: Route{Address: address}, id: id})
	}
}

// dialable reports whether an address that another server told is one, and fit to be shown in a log.
func dialable(address string) bool {
	host, port, err := net.SplitHostPort(address)
	number, wrong := strconv.ParseUint(port, 10, 16)
	return err == nil && wrong == nil && number > 0 && host != "" && len(address) <= addressBytesMax && !strings.ContainsFunc(address, unicode.IsControl)
}

// spread tells the servers of a new session of each other. Host.mu is held.
func (l *links) spread(s *session) {
	l.learn(s.hello.ID, s.hello.Address)
	for _, address := range s.hello.Addresses {
		l.learn(0, address)
	}
	for _, other := range l.sessions {
		if other != s {
			l.introduce(other, s)
			l.introduce(s, other)
		}
	}
}

// introduce tells one server of another. Host.mu is held.
func (l *links) introduce(to, of *session) {
	if of.hello.Address == "" {
		return
	}
	to.conn.Queue(peerwire.Append(nil, &peerwire.Frame{
		Kind: peerwire.Known, Token: uint64(of.hello.ID), Subject: []byte(of.hello.Address),
	}))
	l.touched = append(l.touched, to.conn)
}

// withoutKnown takes the frames out that are for the edge, in place, and learns from them. Host.mu is held.
func (l *links) withoutKnown(frames []byte) []byte {
	found := false
	for rest := frames; len(rest) > 0 && !found; {
		frame, more, err := peerwire.Split(rest)
		if err != nil {
			break // the engine ends the session
		}
		found, rest = peerwire.KindOf(frame) == peerwire.Known, more
	}
	if !found {
		return frames
	}
	kept := frames[:0]
	for len(frames) > 0 {
		frame, more, err := peerwire.Split(frames)
		if err != nil {
			return append(kept, frames...)
		}
		var f peerwire.Frame
		if peerwire.KindOf(frame) != peerwire.Known {
			kept = append(kept, frame...)
		} else if err := peerwire.Parse(frame, &f); err == nil {
			l.learn(event.ServerID(f.Token), string(f.Subject))
		}
		frames = more
	}
	return kept
}

// keep dials a server as long as this one runs and there is no session with it.
func (l *links) keep(r *route) {
	defer l.running.Done()
	wait, failures := time.Duration(0), 0
	for l.sleep(jitter(wait)) && l.waitWithout(r) {
		err := l.dial(r)
		var refused *refusal
		switch {
		case err == nil:
			wait, failures = RedialMin, 0
			continue
		case errors.As(err, &refused) && refused.code == peerwire.RefusedSelf:
			return // for good: it is this server
		case errors.As(err, &refused) && refused.code == peerwire.RefusedDuplicate:
			failures = 0 // there is or will be a session
		default:
			failures++
			l.unreachable(r, failures, err)
		}
		wait = min(max(2*wait, RedialMin), RedialMax)
		if !r.configured && l.options.Load().Retries > 0 && failures >= l.options.Load().Retries {
			l.forget(r)
			return
		}
	}
}

// jitter keeps servers that lost each other at the same time from dialing each other at the same time for ever.
func jitter(d time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	return d/2 + rand.N(d)
}

// forget dials a server that others told of no more, until they tell of it again.
func (l *links) forget(r *route) {
	l.host.mu.Lock()
	if l.routes[r.Address] == r {
		delete(l.routes, r.Address)
	}
	l.host.mu.Unlock()
	l.host.options.Log.Info("Route " + r.Address + ", which another server told of, is given up")
}

// unreachable tells the operator of a failed attempt.
func (l *links) unreachable(r *route, attempt int, err error) {
	if l.context.Err() != nil {
		return
	}
	line := fmt.Sprintf("Error trying to connect to route %s (attempt %d): %v", r.Address, attempt, err)
	if attempt == 1 {
		l.host.options.Log.Error(line)
		return
	}
	l.host.options.Log.Debug(line)
}

// waitWithout waits until there is no session with the server of the route; it reports false when this server ends, or
// the route is to be dialed no more.
func (l *links) waitWithout(r *route) bool {
	for {
		l.host.mu.Lock()
		covered := r.id != 0 && (l.sessions[r.id] != nil || !r.configured && l.dialedAnyway(r))
		changed, removed := l.changed, r.removed
		l.host.mu.Unlock()
		if removed {
			return false
		}
		if !covered {
			return l.context.Err() == nil
		}
		select {
		case <-changed:
		case <-l.context.Done():
			return false
		}
	}
}

// dialedAnyway reports whether a route of the configuration leads to the same server. Host.mu is held.
func (l *links) dialedAnyway(r *route) bool {
	for _, other := range l.routes {
		if other.configured && other.id == r.id {
			return true
		}
	}
	return false
}

// dial makes a session with the server of a route and runs it to its end.
func (l *links) dial(r *route) error {
	o := l.peerOptions(l.options.Load().ClientTLS)
	if o.TLS != nil {
		o.TLS = o.TLS.Clone()
		o.TLS.ServerName = l.tlsName(r)
	}
	conn, err := tcp.DialPeer(l.context, r.Address, o)
	if err != nil {
		return err
	}
	undo := l.closeAtEnd(conn)
	defer undo()
	s, err := l.introduceTo(conn, r)
	if err != nil {
		conn.Close(err)
		return err
	}
	l.run(s)
	return nil
}

// tlsName is the name that the certificate of a dialed server has to bear: the host of its address. Addresses that
// were learned are often numbers, which certificates rarely name; for these the first name of the configuration counts.
func (l *links) tlsName(r *route) string {
	host, _, _ := net.SplitHostPort(r.Address)
	if r.configured || net.ParseIP(host) == nil {
		return host
	}
	for _, configured := range l.options.Load().Routes {
		name, _, _ := net.SplitHostPort(configured.Address)
		if net.ParseIP(name) == nil {
			return name
		}
	}
	return host
}
