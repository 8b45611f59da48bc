package api

import (
	"fmt"
	"slices"
	"strings"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
)

// fleet is a cluster of nodes without log and disk, which share one world: the catalog is the same everywhere, streams
// are on the node that leads them.
type fleet struct {
	*world
	nodes   []*node
	leaders map[uint64]uint64 // by group, the server
	down    map[uint64]bool
	refused *jsapi.Error // what steps down is told
	stepped []string     // "group to", in order
	late    bool         // the catalog learns of streams behind its barrier only
}

// node is one server of a fleet.
type node struct {
	*fleet
	id  uint64
	api *API
}

func newFleet(servers int) *fleet {
	f := &fleet{world: newWorld(), leaders: map[uint64]uint64{}, down: map[uint64]bool{}}
	f.limits.Clustered = true
	for i := range servers {
		n := &node{fleet: f, id: uint64(i + 1)}
		n.api = New(Config{ServerName: fmt.Sprintf("n%d", n.id), Cluster: "C1", Strict: true, SystemAccount: "SYS", PendingBytes: 64 << 20},
			Backend{State: n, Groups: n, Broker: n, Cluster: n})
		f.nodes = append(f.nodes, n)
		register := new(meta.View).Register(&meta.Server{ID: n.id, Name: fmt.Sprintf("n%d", n.id), Cluster: "C1", Tags: []string{fmt.Sprintf("az:%d", n.id)}})
		f.world.Propose(meta.Group, &register, func(r *effect.Effect) {
			if r.Err != nil {
				panic(r.Err)
			}
		})
	}
	f.leaders[meta.Group] = 1
	f.world.api = f.nodes[0].api
	return f
}

// leads is who leads the group: the preferred leader of a stream until it is told otherwise.
func (f *fleet) leads(group uint64) uint64 {
	if f.leaders[group] == 0 {
		if entry := f.catalog.ByGroup(group); entry != nil && len(entry.Replicas) > 0 {
			f.leaders[group] = entry.Replicas[0].Server
		}
	}
	if f.down[f.leaders[group]] {
		return 0
	}
	return f.leaders[group]
}

func (n *node) Catalog() *meta.Machine {
	if n.late {
		return meta.New()
	}
	return n.catalog
}

func (n *node) Limits(account string) (*jsapi.Limits, bool) { return &n.limits, account != "SYS" }

func (n *node) Stream(group uint64) (Stream, bool) {
	if n.leads(group) != n.id {
		return nil, false
	}
	return n.world.Stream(group)
}

func (n *node) Barrier(group uint64, then func(*jsapi.Error)) {
	n.later(func() {
		if n.leads(group) != n.id {
			then(jsapi.CodeClusterNotAvail.Err())
			return
		}
		n.fleet.late = false
		then(nil)
	})
}

func (n *node) Consult(group uint64, done func(bool)) {
	n.later(func() { done(n.leads(group) == n.id) })
}

func (n *node) Propose(group uint64, c *command.Command, done func(*effect.Effect)) {
	if n.leads(group) != n.id {
		n.later(func() { done(&effect.Effect{Kind: effect.Result, Err: jsapi.CodeClusterNotAvail.Err()}) })
		return
	}
	n.world.Propose(group, c, done)
}

func (n *node) Members(group uint64) *jsapi.ClusterInfo {
	info := &jsapi.ClusterInfo{Name: "C1"}
	if leader := n.leads(group); leader != 0 {
		info.Leader = fmt.Sprintf("n%d", leader)
	}
	servers := []uint64{}
	if entry := n.catalog.ByGroup(group); entry != nil {
		for _, r := range entry.Replicas {
			servers = append(servers, r.Server)
		}
	} else {
		for _, s := range n.catalog.Servers() {
			servers = append(servers, s.ID)
		}
	}
	if len(servers) == 1 && info.Leader != "" {
		return info
	}
	slices.Sort(servers)
	for _, id := range servers {
		if name := fmt.Sprintf("n%d", id); name != info.Leader {
			info.Replicas = append(info.Replicas, &jsapi.PeerInfo{Name: name, Current: !n.down[id], Offline: n.down[id], Peer: "peer" + name})
		}
	}
	return info
}

func (n *node) Leads(group uint64) bool { return n.leads(group) == n.id }

func (n *node) Leader(group uint64) uint64 { return n.leads(group) }

func (n *node) Servers() []uint64 {
	var ids []uint64
	for _, o := range n.nodes {
		if !n.down[o.id] {
			ids = append(ids, o.id)
		}
	}
	return ids
}

func (n *node) Ask(q *Question, done func([]byte)) {
	to := q.Server
	if q.Group != 0 {
		to = n.leads(q.Group)
	}
	n.later(func() {
		if to == 0 || n.down[to] {
			done(nil)
			return
		}
		n.nodes[to-1].api.Answer(q, done)
	})
}

func (n *node) StepDown(group uint64, to string, done func(*jsapi.Error)) {
	n.stepped = append(n.stepped, strings.TrimSpace(fmt.Sprint(group, " ", to)))
	done(n.refused)
}

func (n *node) Forward(r *Request) { n.dispatch(r) }

func (n *node) LeasesEnd(done func()) { done() }

func (n *node) Ended(_, index uint64, done func(bool)) { done(n.Catalog().Applied() >= index) }

// dispatch gives a request to the node that it is for.
func (f *fleet) dispatch(r *Request) Outcome {
	group, ok := f.nodes[0].api.Target(r.Account, r.Subject)
	if !ok {
		return Ignored
	}
	leader := f.leads(group)
	if leader == 0 {
		return f.nodes[0].api.Unavailable(r)
	}
	return f.nodes[leader-1].api.Handle(r)
}

// ask sends a request of the account and returns the answer, "" when there is none.
func (f *fleet) ask(account, tail, body string) string {
	f.replies = nil
	f.dispatch(&Request{Account: account, Subject: "$JS.API." + tail, Reply: "_INBOX.1", Body: []byte(body)})
	f.drain()
	var answers []string
	for _, p := range f.replies {
		if strings.HasPrefix(p.subject, "_INBOX.") {
			answers = append(answers, string(p.body))
		}
	}
	return strings.Join(answers, "\n")
}
