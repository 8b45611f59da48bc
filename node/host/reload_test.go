package host

import (
	"testing"
)

// reroute changes what the configuration says of the cluster, and ends what has to end, as Reload does.
func (s *linked) reroute(c Cluster) {
	s.mu.Lock()
	ended := s.links.reload(&c)
	s.mu.Unlock()
	for _, session := range ended {
		session.conn.Close(errRouteRemoved)
	}
}

// TestRoutesChangeWhileServersRun adds a route that nobody answers on, and one to a server; then it takes them away: the
// session ends, and comes back only because the other server has learned where this one is.
func TestRoutesChangeWhileServersRun(t *testing.T) {
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{})
	gone := Route{Address: free(t)}
	b := link(t, who{name: "b", id: 2, boot: 2}, Cluster{Routes: []Route{gone}})
	b.lines.await(t, "Error trying to connect to route "+gone.Address)
	b.reroute(Cluster{Routes: []Route{gone, a.route()}})
	a.expect("up b")
	b.expect("up a")
	b.reroute(Cluster{Routes: []Route{gone}})
	b.expect("down 1")
	b.lines.await(t, errRouteRemoved.Error())
	a.expect("down 2")
	a.expect("up b")
	b.expect("up a")
	b.reroute(Cluster{Routes: []Route{a.route()}}) // one that was learned becomes one of the configuration
	b.mu.Lock()
	r := b.links.routes[a.route().Address]
	if r == nil || !r.configured || b.links.routes[gone.Address] != nil {
		t.Errorf("routes are %v", b.links.routes)
	}
	b.mu.Unlock()
	b.send(1, 7)
	a.expect("from 2: 7")
}

// TestCertificatesBetweenServersAreRenewed has a server that trusts another authority turned away until both know it.
func TestCertificatesBetweenServersAreRenewed(t *testing.T) {
	server, client := certificates(t)
	otherServer, otherClient := certificates(t)
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{ServerTLS: server, ClientTLS: client})
	b := link(t, who{name: "b", id: 2, boot: 2}, Cluster{ServerTLS: otherServer, ClientTLS: otherClient, Routes: []Route{a.route()}})
	b.lines.await(t, "Error trying to connect to route")
	a.reroute(Cluster{ServerTLS: otherServer, ClientTLS: otherClient})
	a.expect("up b")
	b.expect("up a")
}
