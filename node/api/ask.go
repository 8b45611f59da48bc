package api

import (
	"encoding/json"
	"slices"
	"strconv"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/spec/assert"
)

// asked is the answer to AskInfo and AskLimits: Info, or why there is none that will not pass.
type asked struct {
	Info  *jsapi.StreamInfo `json:"info,omitempty"`
	Error *jsapi.Error      `json:"error,omitempty"`
}

// usage is what one stream uses, in the answer to AskUsage. Of two answers about one stream that with the higher index is
// the newer.
type usage struct {
	Group     uint64 `json:"group"`
	Index     uint64 `json:"index"`
	Bytes     uint64 `json:"bytes"`
	Consumers int    `json:"consumers"`
}

// Answer answers a question that another server asked, or this one itself. It calls done once, now or later, with nil
// when this server is not (yet) the one to ask.
func (a *API) Answer(q *Question, done func(answer []byte)) {
	switch q.What {
	case AskInfo:
		a.streamInfo(q.Group, q.Version, func(info *jsapi.StreamInfo, err *jsapi.Error) { reply(done, info, err) })
	case AskLimits:
		a.suits(q.Group, q.Body, func(err *jsapi.Error) { reply(done, nil, err) })
	case AskEnded:
		group, err := strconv.ParseUint(string(q.Body), 10, 64)
		if err != nil {
			done(nil)
			return
		}
		a.backend.Ended(group, q.Version, func(known bool) {
			if !known {
				done(nil)
				return
			}
			done([]byte("{}"))
		})
	case AskMajority:
		a.backend.Consult(q.Group, func(ok bool) {
			if !ok {
				done(nil)
				return
			}
			done([]byte("{}"))
		})
	case AskUsage:
		done(jsapi.AppendJSON(nil, a.usage(q.Account)))
	default:
		done(nil) // a question of a later version
	}
}

func reply(done func([]byte), info *jsapi.StreamInfo, err *jsapi.Error) {
	if passing(err) {
		done(nil)
		return
	}
	done(jsapi.AppendJSON(nil, asked{info, err}))
}

// passing reports whether an error says no more than that another server is to be asked, or this one again.
func passing(err *jsapi.Error) bool {
	return jsapi.CodeClusterNotAvail.Is(err) || jsapi.CodeStreamOffline.Is(err) || jsapi.CodeClusterNotLeader.Is(err)
}

// info calls done with what the leader of the stream's group says about it, once it has the version of the configuration.
// Without an answer in time the system is not available.
func (c *call) info(entry *meta.Stream, version uint64, wait int64, done func(*jsapi.StreamInfo, *jsapi.Error)) {
	if !c.api.clustered() || c.backend.Leads(entry.Group) {
		c.api.streamInfo(entry.Group, version, func(info *jsapi.StreamInfo, err *jsapi.Error) {
			if c.api.clustered() && passing(err) {
				c.askInfo(entry, version, wait, done) // the leadership moved meanwhile
				return
			}
			done(info, err)
		})
		return
	}
	c.askInfo(entry, version, wait, done)
}

func (c *call) askInfo(entry *meta.Stream, version uint64, wait int64, done func(*jsapi.StreamInfo, *jsapi.Error)) {
	q := &Question{What: AskInfo, Group: entry.Group, Version: version, WaitNanos: wait}
	c.backend.Ask(q, func(answer []byte) {
		var got asked
		if answer == nil || json.Unmarshal(answer, &got) != nil || got.Info == nil && got.Error == nil {
			got.Error = c.orGone(entry, jsapi.CodeClusterNotAvail.Err())
		}
		done(got.Info, got.Error)
	})
}

// streamInfo calls done with what this node, as the leader, says about the stream of the group.
func (a *API) streamInfo(group, version uint64, done func(*jsapi.StreamInfo, *jsapi.Error)) {
	entry := a.backend.Catalog().ByGroup(group)
	if entry == nil || entry.Version < version {
		done(nil, jsapi.CodeClusterNotAvail.Err()) // this node's catalog is behind
		return
	}
	a.backend.Barrier(group, func(err *jsapi.Error) {
		s, ok := a.backend.Stream(group)
		switch {
		case a.backend.Catalog().ByGroup(group) == nil:
			done(nil, jsapi.CodeStreamNotFound.Err())
		case err != nil:
			done(nil, err)
		case !ok:
			done(nil, jsapi.CodeStreamOffline.Err())
		case s.ConfigVersion() < version:
			a.takeOver(group, version, done)
		default:
			done(a.describe(entry, s), nil)
		}
	})
}

// takeOver brings the group of an updated stream to the newest configuration of the catalog and describes it.
func (a *API) takeOver(group, version uint64, done func(*jsapi.StreamInfo, *jsapi.Error)) {
	entry := a.backend.Catalog().ByGroup(group)
	assert.True(entry != nil && entry.Version >= version, "the catalog has the version that is to be taken over", version)
	put := command.Command{Kind: command.PutStream, Config: entry.JSON, Version: entry.Version}
	a.backend.Propose(group, &put, func(r *effect.Effect) {
		s, ok := a.backend.Stream(group)
		switch {
		case a.backend.Catalog().ByGroup(group) == nil:
			done(nil, jsapi.CodeStreamNotFound.Err())
		case r.Err != nil:
			done(nil, r.Err)
		case !ok:
			done(nil, jsapi.CodeStreamOffline.Err())
		default:
			done(a.describe(entry, s), nil)
		}
	})
}

// suits calls done with why the limits for consumers in a configuration do not suit the consumers that there are.
func (a *API) suits(group uint64, body []byte, done func(*jsapi.Error)) {
	var config jsapi.StreamConfig
	if json.Unmarshal(body, &config) != nil {
		done(jsapi.CodeBadRequest.Err())
		return
	}
	a.backend.Barrier(group, func(err *jsapi.Error) {
		s, ok := a.backend.Stream(group)
		switch {
		case err != nil:
			done(err)
		case !ok:
			done(jsapi.CodeStreamOffline.Err())
		default:
			done(checkConsumerLimits(&config, s))
		}
	})
}

// checkLimits calls done with why a new configuration of a stream does not suit its consumers.
func (c *call) checkLimits(entry *meta.Stream, config *jsapi.StreamConfig, done func(*jsapi.Error)) {
	if !c.api.clustered() {
		c.current(entry, func(s Stream) { done(checkConsumerLimits(config, s)) })
		return
	}
	if !limitsChange(config, entry.Config) {
		done(nil)
		return
	}
	q := &Question{What: AskLimits, Group: entry.Group, Body: config.AppendJSON(nil), WaitNanos: createWaitNanos}
	c.backend.Ask(q, func(answer []byte) {
		var got asked
		if answer == nil || json.Unmarshal(answer, &got) != nil {
			got.Error = c.orGone(entry, jsapi.CodeClusterNotAvail.Err())
		}
		done(got.Error)
	})
}

// Ended calls done once so many servers know of the end of a stream, at the index of the catalog, that no others can serve it
// any more: that nobody is told of the end before. Without enough of them in time it calls done with those that are missing. A
// server that was removed from the cluster, or replaced, and is not there does not count: who removed it has said that it serves
// nobody. A leader that has a lease to read needs nobody for as long, so that the end of leases is waited for, unless all
// servers know.
func (a *API) Ended(entry *meta.Stream, index uint64, done func(missing []uint64)) {
	if !a.clustered() {
		done(nil)
		return
	}
	servers, gone := a.holders(entry)
	// Of the members that have settled a majority serves; while they change every one may be a majority.
	wanted := len(servers)
	if entry.IsSettled() {
		wanted -= (len(servers) + gone) / 2
	}
	open, unaware := len(servers), slices.Clone(servers)
	if wanted <= 0 {
		a.backend.LeasesEnd(func() { done(nil) })
		return
	}
	told := false
	ended := func() {
		if !told {
			told = true
			done(nil)
		}
	}
	for _, server := range servers {
		q := &Question{
			What: AskEnded, Server: server, Version: index, Body: strconv.AppendUint(nil, entry.Group, 10), WaitNanos: createWaitNanos,
		}
		a.backend.Ask(q, func(answer []byte) {
			open--
			if answer != nil {
				wanted--
				unaware = slices.DeleteFunc(unaware, func(s uint64) bool { return s == server })
			}
			switch {
			case len(unaware) == 0:
				ended()
			case wanted == 0 && answer != nil:
				a.backend.LeasesEnd(ended)
			case wanted > 0 && open < wanted && open+1 >= wanted && answer == nil:
				done(unaware)
			}
		})
	}
}

// holders are the servers that may have a replica of a stream, and how many more that are gone from the cluster had one.
func (a *API) holders(entry *meta.Stream) (servers []uint64, gone int) {
	online := a.backend.Servers()
	var seen []uint64
	for _, r := range slices.Concat(entry.Replicas, entry.Former) {
		if slices.Contains(seen, r.Server) {
			continue
		}
		seen = append(seen, r.Server)
		if s := a.backend.Catalog().Server(r.Server); s != nil && s.Removed && !slices.Contains(online, r.Server) {
			gone++
			continue
		}
		servers = append(servers, r.Server)
	}
	return servers, gone
}

// usage is what the streams of the account use that this node leads.
func (a *API) usage(account string) []usage {
	list := []usage{}
	for _, entry := range a.backend.Catalog().Streams(account) {
		if a.backend.Leads(entry.Group) {
			if s, ok := a.backend.Stream(entry.Group); ok {
				state := s.State()
				list = append(list, usage{entry.Group, s.Applied(), state.Bytes, state.Consumers})
			}
		}
	}
	return list
}
