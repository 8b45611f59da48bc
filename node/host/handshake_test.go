package host

import (
	"net"
	"slices"
	"strings"
	"testing"

	"weir/node/event"
	"weir/transport/peerwire"
)

// TestServersThatDialEachOtherHaveOneSession has two servers dial each other at the same time: both see one session
// begin, and none end.
func TestServersThatDialEachOtherHaveOneSession(t *testing.T) {
	for range 20 {
		addresses := [2]string{free(t), free(t)}
		a := link(t, who{name: "a", id: 1, boot: 10}, Cluster{Listen: addresses[0], Routes: []Route{{Address: addresses[1]}}})
		b := link(t, who{name: "b", id: 2, boot: 20}, Cluster{Listen: addresses[1], Routes: []Route{{Address: addresses[0]}, {Address: addresses[1]}}})
		a.expect("up b")
		b.expect("up a")
		a.send(2, 7)
		b.expect("from 1: 7")
		b.send(1, 8)
		a.expect("from 2: 8")
		a.links.stop()
		b.expect("down 1")
		b.links.stop()
		if len(a.events)+len(b.events) > 0 {
			t.Fatalf("%d and %d more events", len(a.events), len(b.events))
		}
	}
}

func TestServerThatComesBackIsFoundAgain(t *testing.T) {
	a := link(t, who{name: "a", id: 1, boot: 10}, Cluster{})
	b := link(t, who{name: "b", id: 2, boot: 20}, Cluster{Routes: []Route{a.route()}})
	b.expect("up a")
	a.expect("up b")
	address := a.ClusterAddr().String()
	a.links.stop()
	b.expect("down 1")
	a = link(t, who{name: "a", id: 1, boot: 11}, Cluster{Listen: address})
	b.expect("up a")
	a.expect("up b")
	b.links.stop()
	a.expect("down 2")
}

// TestServersLearnOfEachOther starts servers that know one of them only.
func TestServersLearnOfEachOther(t *testing.T) {
	seed := link(t, who{name: "a", id: 5, boot: 1}, Cluster{})
	all := []*linked{seed}
	for i, name := range []string{"b", "c", "d"} {
		all = append(all, link(t, who{name: name, id: event.ServerID(10 - 3*i), boot: 1}, Cluster{Routes: []Route{seed.route()}}))
	}
	for _, s := range all {
		var met []string
		for range len(all) - 1 {
			met = append(met, <-s.events)
		}
		slices.Sort(met)
		want := slices.DeleteFunc([]string{"up a", "up b", "up c", "up d"}, func(up string) bool {
			return up == "up "+s.options.Node.Engine.ServerName
		})
		if !slices.Equal(met, want) {
			t.Errorf("%s met %v, want %v", s.options.Node.Engine.ServerName, met, want)
		}
	}
	if routes := seed.Routes(); len(routes) != 3 || routes[0].Solicited || routes[0].ID >= routes[1].ID || routes[0].RemoteID == "" {
		t.Errorf("the first server shows the routes %+v", routes)
	}
}

func TestRefusalsAreLoggedOnBothSides(t *testing.T) {
	for name, c := range map[string]struct {
		other who
		route Route
		text  string
	}{
		"cluster":  {who{name: "b", id: 2, boot: 2, cluster: "D"}, Route{}, `the server \"a\" is in cluster \"C\", not in \"D\"`},
		"name":     {who{name: "a", id: 2, boot: 2}, Route{}, `both servers are named \"a\"`},
		"twin":     {who{name: "b", id: 1, boot: 2}, Route{}, "one data directory is a copy"},
		"password": {who{name: "b", id: 2, boot: 2}, Route{User: "u", Password: "q"}, "authorization violation"},
	} {
		t.Run(name, func(t *testing.T) {
			a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{User: "u", Password: "p"})
			c.route.Address = a.ClusterAddr().String()
			b := link(t, c.other, Cluster{Routes: []Route{c.route}, User: "u", Password: "p"})
			a.lines.await(t, c.text)
			b.lines.await(t, c.text)
			b.lines.await(t, "refused by the other server")
			if len(a.events)+len(b.events) > 0 {
				t.Error("a session began")
			}
		})
	}
}

func TestSecretsAreNeitherShownNorKept(t *testing.T) {
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{User: "u", Password: "secret"})
	other := who{name: "b", id: 2, boot: 2}
	hello := other.hello()
	if answer := dialAs(t, a).say(&peerwire.Greeting{Hello: hello, Boot: 2}); answer.Refused != peerwire.RefusedUser || answer.Hello != nil {
		t.Fatalf("who shows no password is answered %+v", answer)
	}
	hello.User, hello.Password = "u", "secret"
	conn := dialAs(t, a)
	answer := conn.say(&peerwire.Greeting{Hello: hello, Boot: 2})
	if answer.Hello == nil || answer.Hello.Password != "" || answer.Hello.User != "" {
		t.Fatalf("the answer is %+v", answer)
	}
	if verdict := conn.say(&peerwire.Greeting{}); verdict.Verdict == 0 {
		t.Fatalf("the verdict is %+v", verdict)
	}
	a.expect("up b")
	a.mu.Lock()
	defer a.mu.Unlock()
	if kept := a.links.sessions[2].hello; kept.Password != "" || kept.User != "" {
		t.Error("the password is kept")
	}
	a.lines.mu.Lock()
	defer a.lines.mu.Unlock()
	if strings.Contains(a.lines.text.String(), "secret") {
		t.Error("the password is in the log")
	}
}

// TestSessionIsReplacedOnlyByProof plays a server of a higher id, for which the other one decides.
func TestSessionIsReplacedOnlyByProof(t *testing.T) {
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{})
	other := who{name: "b", id: 2}
	first := dialAs(t, a)
	first.say(&peerwire.Greeting{Hello: other.hello(), Boot: 2})
	number := first.say(&peerwire.Greeting{}).Verdict
	a.expect("up b")
	// The same process, which says that it knows of the session.
	again := dialAs(t, a)
	if answer := again.say(&peerwire.Greeting{Hello: other.hello(), Boot: 2}); answer.Session != number {
		t.Fatalf("the session is %d, the answer %+v", number, answer)
	}
	if answer := again.say(&peerwire.Greeting{Session: number}); answer.Refused != peerwire.RefusedDuplicate {
		t.Fatalf("a duplicate is answered %+v", answer)
	}
	// The same process, which does not know of it yet, because it is new.
	again = dialAs(t, a)
	again.say(&peerwire.Greeting{Hello: other.hello(), Boot: 2})
	if answer := again.say(&peerwire.Greeting{}); answer.Refused != peerwire.RefusedDuplicate {
		t.Fatalf("a duplicate of a new session is answered %+v", answer)
	}
	// The session gets older: now it is one that the other side has lost.
	a.mu.Lock()
	a.links.sessions[2].started = a.links.sessions[2].started.Add(-SettleTime)
	a.mu.Unlock()
	again = dialAs(t, a)
	again.say(&peerwire.Greeting{Hello: other.hello(), Boot: 2})
	if answer := again.say(&peerwire.Greeting{}); answer.Verdict <= number {
		t.Fatalf("who lost the session is answered %+v", answer)
	}
	a.expect("down 2")
	a.expect("up b")
	// Another process of the same server.
	again = dialAs(t, a)
	again.say(&peerwire.Greeting{Hello: other.hello(), Boot: 3})
	if answer := again.say(&peerwire.Greeting{}); answer.Verdict == 0 {
		t.Fatalf("a new process is answered %+v", answer)
	}
	a.expect("down 2")
	a.expect("up b")
	// Another server of its name.
	namesake := dialAs(t, a)
	namesake.say(&peerwire.Greeting{Hello: who{name: "b", id: 3}.hello(), Boot: 4})
	if answer := namesake.say(&peerwire.Greeting{}); answer.Refused != peerwire.RefusedName {
		t.Fatalf("a namesake is answered %+v", answer)
	}
	// Copies of its data directory, served under another name or somewhere else.
	named, elsewhere := who{name: "c", id: 2}.hello(), other.hello()
	elsewhere.Address = "127.0.0.1:9"
	for _, hello := range []*peerwire.Hello{named, elsewhere} {
		if answer := dialAs(t, a).say(&peerwire.Greeting{Hello: hello, Boot: 5}); answer.Refused != peerwire.RefusedTwin {
			t.Fatalf("a twin is answered %+v", answer)
		}
	}
	if len(a.events) > 0 {
		t.Errorf("another event: %s", <-a.events)
	}
}

// TestOtherVersionIsRefusedWithTheReason plays a server of the future.
func TestOtherVersionIsRefusedWithTheReason(t *testing.T) {
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{})
	hello := who{name: "b", id: 2}.hello()
	hello.Version++
	if answer := dialAs(t, a).say(&peerwire.Greeting{Hello: hello}); answer.Refused != peerwire.RefusedProtocol {
		t.Fatalf("another version is answered %+v", answer)
	}
	a.lines.await(t, "another version of the cluster protocol")
	if answer := dialAs(t, a).say(&peerwire.Greeting{}); answer.Refused != peerwire.RefusedProtocol {
		t.Fatalf("who does not introduce itself is answered %+v", answer)
	}
}

// TestOtherProtocolsAreTurnedAway plays a client that took the port for another one.
func TestOtherProtocolsAreTurnedAway(t *testing.T) {
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{})
	sock, err := net.Dial("tcp", a.ClusterAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	if _, err := sock.Write([]byte("CONNECT {}\r\n")); err != nil {
		t.Fatal(err)
	}
	a.lines.await(t, "does not begin a session between servers")
}

// TestServersProveThemselvesByCertificates has two servers with TLS meet, and one without be turned away.
func TestServersProveThemselvesByCertificates(t *testing.T) {
	server, client := certificates(t)
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{ServerTLS: server, ClientTLS: client})
	b := link(t, who{name: "b", id: 2, boot: 2}, Cluster{ServerTLS: server, ClientTLS: client, Routes: []Route{a.route()}})
	a.expect("up b")
	b.expect("up a")
	a.send(2, 7)
	b.expect("from 1: 7")
	plain := link(t, who{name: "c", id: 3, boot: 3}, Cluster{Routes: []Route{a.route()}})
	a.lines.await(t, "TLS route handshake")
	plain.lines.await(t, "Error trying to connect to route")
	nobody := client.Clone()
	nobody.Certificates = nil
	link(t, who{name: "d", id: 4, boot: 4}, Cluster{ClientTLS: nobody, Routes: []Route{a.route()}})
	a.lines.await(t, "client didn't provide a certificate")
	if len(a.events) > 0 {
		t.Errorf("another event: %s", <-a.events)
	}
}
