package host

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"time"

	"weir/node/event"
	"weir/transport/peerwire"
	"weir/transport/tcp"
)

// refusal is why a handshake ended without a session.
type refusal struct {
	code peerwire.Refusal
	text string
	// theirs says that the other side refused.
	theirs bool
}

// Error is the text for the operator.
func (r *refusal) Error() string {
	if r.theirs {
		return "refused by the other server: " + r.text
	}
	return r.text
}

func refuse(code peerwire.Refusal, text string, args ...any) *refusal {
	return &refusal{code: code, text: fmt.Sprintf(text, args...)}
}

var errEnding = errors.New("this server shuts down")

// closeAtEnd closes a connection when the server ends while its handshake is made; the result undoes that.
func (l *links) closeAtEnd(conn *tcp.PeerConn) (undo func() bool) {
	return context.AfterFunc(l.context, func() {
		l.host.mu.Lock()
		runs := false
		for _, s := range l.sessions {
			runs = runs || s.conn == conn
		}
		l.host.mu.Unlock()
		if !runs {
			conn.Close(errEnding)
		}
	})
}

// introduction is the greeting that introduces this server. Only who dials shows the password.
func (l *links) introduction(r *route) *peerwire.Greeting {
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	hello := l.hello()
	hello.Server = l.host.options.Node.Engine.ServerID
	switch {
	case r == nil:
		hello.User, hello.Password = "", ""
	case r.User != "":
		hello.User, hello.Password = r.User, r.Password
	}
	return &peerwire.Greeting{Hello: &hello, Boot: l.boot}
}

// introduceTo makes the handshake of a connection that this server dialed.
func (l *links) introduceTo(conn *tcp.PeerConn, r *route) (*session, error) {
	if err := conn.Greet(l.introduction(r)); err != nil {
		return nil, err
	}
	answer, err := l.greeted(conn)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, solicited: true, route: r}
	if wrong := l.judge(s, answer); wrong != nil {
		return nil, l.turnDown(conn, wrong)
	}
	l.host.mu.Lock()
	r.id = s.hello.ID
	l.host.mu.Unlock()
	if l.decides(s) {
		return s, l.decide(s, answer.Session)
	}
	if err := conn.Greet(&peerwire.Greeting{Session: l.sessionWith(s.hello.ID)}); err != nil {
		return nil, err
	}
	return s, l.obey(s)
}

// accepted makes the handshake of a connection that another server dialed, and runs the session.
func (l *links) accepted(sock *net.TCPConn) {
	defer l.running.Done()
	conn, err := tcp.AcceptPeer(sock, l.peerOptions(l.options.Load().ServerTLS))
	if err != nil {
		<-l.pending
		l.error(fmt.Sprintf("Route from %s: %v", hostOf(sock.RemoteAddr()), err))
		return
	}
	undo := l.closeAtEnd(conn)
	defer undo()
	s, err := l.receive(conn)
	<-l.pending
	if err == nil {
		l.run(s)
		return
	}
	conn.Close(err)
	var refused *refusal
	if errors.As(err, &refused) && (refused.code == peerwire.RefusedDuplicate || refused.code == peerwire.RefusedSelf) {
		l.host.options.Log.Debug(fmt.Sprintf("%s - Route refused: %v", conn.Address(), err))
		return
	}
	if l.context.Err() == nil {
		l.error(fmt.Sprintf("Route from %s: %v", hostOf(conn.Address()), err))
	}
}

// hostOf leaves the port out, which differs with each attempt.
func hostOf(address net.Addr) string {
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	return host
}

func (l *links) receive(conn *tcp.PeerConn) (*session, error) {
	first, err := l.greeted(conn)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn}
	wrong := l.authorize(first.Hello)
	if wrong == nil {
		wrong = l.judge(s, first)
	}
	if wrong != nil {
		return nil, l.turnDown(conn, wrong)
	}
	answer := l.introduction(nil)
	answer.Session = l.sessionWith(s.hello.ID)
	if err := conn.Greet(answer); err != nil {
		return nil, err
	}
	if !l.decides(s) {
		return s, l.obey(s)
	}
	third, err := l.greeted(conn)
	if err != nil {
		return nil, err
	}
	return s, l.decide(s, third.Session)
}

// greeted waits for a greeting that does not end the handshake.
func (l *links) greeted(conn *tcp.PeerConn) (*peerwire.Greeting, error) {
	g, err := conn.Greeted()
	switch {
	case errors.Is(err, peerwire.ErrVersion):
		return nil, l.turnDown(conn, refuse(peerwire.RefusedProtocol, "%v", err))
	case err != nil:
		return nil, fmt.Errorf("handshake: %w", err)
	case g.Refused != "":
		return nil, &refusal{code: g.Refused, text: g.Text, theirs: true}
	}
	return g, nil
}

// turnDown tells the other side why there will be no session. What it can not be told it sees.
func (l *links) turnDown(conn *tcp.PeerConn, r *refusal) error {
	_ = conn.Greet(&peerwire.Greeting{Refused: r.code, Text: r.text})
	return r
}

// judge takes the introduction of the other side if a session with it is possible.
func (l *links) judge(s *session, g *peerwire.Greeting) *refusal {
	own := &l.host.options.Node.Engine
	hello := g.Hello
	switch {
	case hello == nil:
		return refuse(peerwire.RefusedProtocol, "a greeting lacks the introduction")
	case hello.ID == own.Server && g.Boot == l.boot:
		return refuse(peerwire.RefusedSelf, "both ends are the server %q", own.ServerName)
	case hello.ID == own.Server:
		return refuseTwin(own.ServerName, hello.Name)
	case hello.Cluster != own.Cluster.Name:
		return refuse(peerwire.RefusedCluster, "the server %q is in cluster %q, not in %q", own.ServerName, own.Cluster.Name, hello.Cluster)
	case hello.Name == own.ServerName:
		return refuse(peerwire.RefusedName, "both servers are named %q", hello.Name)
	}
	hello.Address = complete(hello.Address, s.conn.Address())
	hello.User, hello.Password = "", "" // checked with the greeting, and not to be kept
	s.hello, s.boot = hello, g.Boot
	// Looked at again before the session begins; here there is still a greeting to answer with.
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	if now := l.sessions[hello.ID]; twins(now, s) {
		return refuseTwin(now.hello.Name, hello.Name)
	}
	return nil
}

// authorize checks user and password, without telling by its time how much of them was right.
func (l *links) authorize(hello *peerwire.Hello) *refusal {
	if l.options.Load().User == "" && l.options.Load().Password == "" || hello == nil {
		return nil // judge turns down who does not introduce itself
	}
	right := subtle.ConstantTimeCompare([]byte(hello.User), []byte(l.options.Load().User)) &
		subtle.ConstantTimeCompare([]byte(hello.Password), []byte(l.options.Load().Password))
	if right == 1 {
		return nil
	}
	return refuse(peerwire.RefusedUser, "authorization violation: user or password of the cluster are wrong")
}

// decides reports whether this server decides for both which connection is their session.
func (l *links) decides(s *session) bool { return l.host.options.Node.Engine.Server < s.hello.ID }

// sessionWith is the number of the session with a server, 0 for none.
func (l *links) sessionWith(id event.ServerID) uint64 {
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	if s := l.sessions[id]; s != nil {
		return s.number
	}
	return 0
}

// decide makes the connection the session of the two servers, unless they have one already: the number that the other
// side gave says whether both think of the same. One that has only just begun is not replaced, because the other side may
// not know of it yet.
func (l *links) decide(s *session, theirs uint64) error {
	h := l.host
	h.mu.Lock()
	now := l.sessions[s.hello.ID]
	var wrong *refusal
	switch {
	case h.ended || l.context.Err() != nil:
		wrong = refuse(peerwire.RefusedEnding, "the server %q shuts down", h.options.Node.Engine.ServerName)
	case l.namesake(s) != nil:
		wrong = refuse(peerwire.RefusedName, "another server named %q is connected", s.hello.Name)
	case twins(now, s):
		wrong = refuseTwin(now.hello.Name, s.hello.Name)
	case now != nil && now.boot == s.boot && (now.number == theirs || time.Since(now.started) < SettleTime):
		wrong = refuse(peerwire.RefusedDuplicate, "there is a session of the two servers already")
	}
	if wrong != nil {
		h.mu.Unlock()
		return l.turnDown(s.conn, wrong)
	}
	l.number++
	s.number = l.number
	return l.begin(s, &peerwire.Greeting{Verdict: s.number})
}

// obey waits for the decision of the other side and follows it. Of two that come at the same time the newer counts.
func (l *links) obey(s *session) error {
	verdict, err := l.greeted(s.conn)
	if err != nil {
		return err
	}
	if verdict.Verdict == 0 {
		return refuse(peerwire.RefusedProtocol, "a greeting lacks the decision")
	}
	s.number = verdict.Verdict
	l.host.mu.Lock()
	now := l.sessions[s.hello.ID]
	switch {
	case l.host.ended || l.context.Err() != nil:
		err = errEnding
	case l.namesake(s) != nil:
		err = refuse(peerwire.RefusedName, "another server named %q is connected", s.hello.Name)
	case twins(now, s):
		err = refuseTwin(now.hello.Name, s.hello.Name)
	case now != nil && now.boot == s.boot && now.number > s.number:
		err = refuse(peerwire.RefusedDuplicate, "a newer session of the two servers has begun")
	}
	if err != nil {
		l.host.mu.Unlock()
		return err
	}
	return l.begin(s, nil)
}

// twins reports whether two processes under one id are not one server that was started again: that would have its name and
// its address still. A copy of a data directory would vote in the place of the original.
func twins(now, s *session) bool {
	return now != nil && now.boot != s.boot && (now.hello.Name != s.hello.Name || now.hello.Address != s.hello.Address)
}

func refuseTwin(one, other string) *refusal {
	return refuse(peerwire.RefusedTwin, "the servers %q and %q have the same identity: one data directory is a copy of the other's", one, other)
}

// namesake is a session with another server of the same name. Host.mu is held.
func (l *links) namesake(s *session) *session {
	for _, other := range l.sessions {
		if other.hello.Name == s.hello.Name && other.hello.ID != s.hello.ID {
			return other
		}
	}
	return nil
}
