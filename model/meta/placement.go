package meta

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"weir/model/jsapi"
	"weir/spec/assert"
)

// tagExclude is the tag by which a server asks to be left out of placement (reference server).
const tagExclude = "!jetstream"

// search is one search for servers that may have a replica of a stream.
type search struct {
	m         *Machine
	config    *jsapi.StreamConfig
	view      *View
	clustered bool // whether placement and the room of servers count
	online    map[uint64]struct{}
	keep      []Replica // replicas that stay
	skip      []Replica // replicas on servers that must not be chosen
	why       refusal
}

// candidate is a server that may have a replica.
type candidate struct {
	server  *Server
	offline bool
	load    Load
	order   int64 // reserved bytes of the storage
}

// refusal collects why servers were not chosen, in the words of the reference server.
type refusal struct {
	offline, excluded, storage, unique bool
	missing, forbidden                 map[string]struct{} // tags
}

// text is the description of the error.
func (r *refusal) text() string {
	text := "no suitable peers for placement"
	for _, reason := range []struct {
		given bool
		text  string
	}{
		{r.offline, "peer offline"}, {r.excluded, "exclude tag set"}, {r.storage, "insufficient storage"},
		{r.unique, "server tag not unique"},
	} {
		if reason.given {
			text += ", " + reason.text
		}
	}
	return text + tagList(", tags not matched", r.missing) + tagList(", tags excluded", r.forbidden)
}

func tagList(title string, tags map[string]struct{}) string {
	if len(tags) == 0 {
		return ""
	}
	return title + " ['" + strings.Join(slices.Sorted(maps.Keys(tags)), "', '") + "']"
}

// newSearch prepares a search. keep are the replicas that stay, skip those whose servers can not be chosen.
func (m *Machine) newSearch(p *proposal, keep, skip []Replica) *search {
	s := &search{m: m, config: p.Config, view: &p.View, clustered: p.Limits.Clustered, keep: keep, skip: skip}
	if len(p.View.Online) > 0 {
		s.online = make(map[uint64]struct{}, len(p.View.Online))
		for _, id := range p.View.Online {
			s.online[id] = struct{}{}
		}
	}
	return s
}

// isOnline reports whether the proposer reached the server.
func (s *search) isOnline(server uint64) bool {
	if s.online == nil {
		return true
	}
	_, ok := s.online[server]
	return ok
}

// choose returns the servers of a stream with the number of replicas: those that stay, in their order, and new ones. It
// prefers servers that are there, then those with the fewest replicas, then those with the fewest reserved bytes. It
// refuses when there are too few, or when too few of them are there for a majority (in the words of the reference).
func (s *search) choose(replicas int) ([]uint64, *jsapi.Error) {
	wanted := replicas - len(s.keep)
	assert.True(wanted >= 0, "a search does not take replicas away", uint64(replicas))
	found := s.candidates()
	there := len(s.keep)
	for i := range found {
		if !found[i].offline {
			there++
		}
	}
	if len(found) < wanted || there < replicas/2+1 {
		if len(found) >= wanted {
			s.why.offline = true
		}
		return nil, jsapi.CodeClusterNoPeers.With(s.why.text())
	}
	servers := make([]uint64, 0, replicas)
	for _, r := range s.keep {
		servers = append(servers, r.Server)
	}
	for _, c := range found[:wanted] {
		servers = append(servers, c.server.ID)
	}
	return servers, nil
}

// candidates returns the servers that may get a replica, the best first.
func (s *search) candidates() []candidate {
	var found []candidate
	for _, server := range s.m.roster {
		if s.taken(server.ID) || !s.suits(server) {
			continue
		}
		if s.clustered && s.config.MaxBytes > 0 && !s.m.fits(server.ID, s.config.Storage, s.config.MaxBytes) {
			s.why.storage = true
			continue
		}
		l := s.m.Load(server.ID)
		reserved := l.Store
		if s.config.Storage == jsapi.MemoryStorage {
			reserved = l.Memory
		}
		found = append(found, candidate{server: server, offline: !s.isOnline(server.ID), load: l, order: reserved})
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(rank(a.offline, b.offline), cmp.Compare(a.load.Replicas, b.load.Replicas),
			cmp.Compare(a.order, b.order), cmp.Compare(a.load.Preferred, b.load.Preferred), cmp.Compare(a.server.ID, b.server.ID))
	})
	return s.distinctTags(found)
}

func rank(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (s *search) taken(server uint64) bool {
	_, kept := replicaOn(s.keep, server)
	_, skipped := replicaOn(s.skip, server)
	return kept || skipped
}

// suits reports whether the placement of the stream allows the server, and notes why not.
func (s *search) suits(server *Server) bool {
	if !s.clustered {
		return true
	}
	cluster := s.view.Cluster
	var tags []string
	if p := s.config.Placement; p != nil {
		cluster, tags = cmp.Or(p.Cluster, cluster), p.Tags
	}
	if cluster != "" && server.Cluster != cluster {
		return false
	}
	if hasTag(server, tagExclude) {
		s.why.excluded = true
		return false
	}
	for _, tag := range tags {
		name, forbidden := strings.CutPrefix(tag, "!")
		if has := hasTag(server, name); has == !forbidden {
			continue
		}
		set := &s.why.missing
		if forbidden {
			set = &s.why.forbidden
		}
		if *set == nil {
			*set = make(map[string]struct{})
		}
		(*set)[name] = struct{}{}
		return false
	}
	return true
}

// hasTag compares tags as the reference server does, without regard to case and surrounding space.
func hasTag(server *Server, tag string) bool {
	tag = strings.ToLower(strings.TrimSpace(tag))
	return slices.ContainsFunc(server.Tags, func(t string) bool { return strings.ToLower(strings.TrimSpace(t)) == tag })
}

// distinctTags leaves out the servers that share the tag in which servers of a stream have to differ with a better one,
// or lack such a tag. A placement that names a tag of the kind itself switches the rule off.
func (s *search) distinctTags(found []candidate) []candidate {
	prefix := s.view.UniqueTag
	if prefix == "" || !s.clustered {
		return found
	}
	if p := s.config.Placement; p != nil {
		for _, tag := range p.Tags {
			if strings.HasPrefix(strings.TrimPrefix(tag, "!"), prefix) {
				return found
			}
		}
	}
	used := make(map[string]struct{})
	for _, r := range s.keep {
		if tag, ok := tagOf(s.m.servers[r.Server], prefix); ok {
			used[tag] = struct{}{}
		}
	}
	return slices.DeleteFunc(found, func(c candidate) bool {
		tag, ok := tagOf(c.server, prefix)
		if _, twice := used[tag]; !ok || twice {
			s.why.unique = true
			return true
		}
		used[tag] = struct{}{}
		return false
	})
}

func tagOf(server *Server, prefix string) (string, bool) {
	for _, tag := range server.Tags {
		if strings.HasPrefix(tag, prefix) {
			return tag, true
		}
	}
	return "", false
}
