package api

import (
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/model/stream"
	"weir/model/subject"
)

// deletedMax bounds the deleted sequences that one info response lists.
const deletedMax = 1 << 20

// describe is what is said about a stream, of which create, update, info and list show different parts.
func (a *API) describe(entry *meta.Stream, s Stream) *jsapi.StreamInfo {
	return &jsapi.StreamInfo{
		Config:    *s.Config(),
		Created:   jsapi.Time(entry.Created),
		State:     s.State(),
		Domain:    a.config.Domain,
		Cluster:   a.members(entry.Group),
		Mirror:    a.backend.Mirror(entry.Group),
		TimeStamp: jsapi.Time(a.backend.Now()),
	}
}

// alternates are the stream and its mirrors, if it has any, in a cluster. Which cluster suits a client best does not matter as
// long as there is one.
func (a *API) alternates(entry *meta.Stream) []jsapi.StreamAlternate {
	mirrors := a.backend.Catalog().Mirrors(entry.Account, entry.Name)
	if !a.clustered() || len(mirrors) == 0 {
		return nil
	}
	list := []jsapi.StreamAlternate{{Name: entry.Name, Domain: a.config.Domain, Cluster: a.config.Cluster}}
	for _, mirror := range mirrors {
		list = append(list, jsapi.StreamAlternate{Name: mirror.Name, Domain: a.config.Domain, Cluster: a.config.Cluster})
	}
	return list
}

// members describes the group of a stream to clients.
func (a *API) members(group uint64) *jsapi.ClusterInfo {
	if !a.clustered() {
		return &jsapi.ClusterInfo{Leader: a.config.ServerName}
	}
	return a.backend.Members(group)
}

// streamInfo answers STREAM.INFO.
func (c *call) streamInfo(body []byte) {
	var request jsapi.StreamInfoRequest
	if !c.decodeOptional(body, &request) {
		return
	}
	c.withStream(func(entry *meta.Stream, s Stream) {
		response := jsapi.StreamInfoResponse{Response: c.response(), StreamInfo: c.api.describe(entry, s)}
		response.Config = response.Config.Shown()
		response.Alternates = c.api.alternates(entry)
		if request.DeletedDetails {
			response.State.Deleted = s.Deleted(deletedMax)
		}
		if request.SubjectsFilter != "" && subject.Valid(request.SubjectsFilter) {
			offset := max(request.Offset, 0)
			counts, total := s.SubjectCounts(request.SubjectsFilter, offset, jsapi.SubjectsPageMax)
			if total > 0 {
				response.Page = jsapi.Page{Total: total, Offset: offset, Limit: jsapi.SubjectsPageMax}
				response.State.Subjects = countsBySubject(counts)
			}
		}
		c.respond(response)
	})
}

func countsBySubject(counts []stream.SubjectCount) map[string]uint64 {
	bySubject := make(map[string]uint64, len(counts))
	for _, count := range counts {
		bySubject[count.Subject] = count.Msgs
	}
	return bySubject
}

// selected runs then with the streams of the account that may hold the subject, all for an empty one, ascending by name.
func (c *call) selected(filter string, then func([]*meta.Stream)) {
	c.backend.Barrier(meta.Group, func(err *jsapi.Error) {
		if err != nil {
			c.refuse(err)
			return
		}
		var streams []*meta.Stream
		for _, entry := range c.backend.Catalog().Streams(c.account) {
			if filter == "" || captures(entry.Config, filter) {
				streams = append(streams, entry)
			}
		}
		then(streams)
	})
}

func captures(config *jsapi.StreamConfig, filter string) bool {
	for _, captured := range config.Subjects {
		if subject.Overlaps(captured, filter) {
			return true
		}
	}
	return false
}

// streamNames answers STREAM.NAMES.
func (c *call) streamNames(body []byte) {
	var request jsapi.StreamsRequest
	if !c.decodeOptional(body, &request) {
		return
	}
	c.selected(request.Subject, func(streams []*meta.Stream) {
		response := jsapi.StreamNamesResponse{Response: c.response()}
		var lo, hi int
		response.Page, lo, hi = page(len(streams), request.Offset, jsapi.NamesPageMax)
		for _, entry := range streams[lo:hi] {
			response.Streams = append(response.Streams, entry.Name)
		}
		c.respond(response)
	})
}

// streamList answers STREAM.LIST. Streams that cannot be read here are listed as missing.
func (c *call) streamList(body []byte) {
	var request jsapi.StreamsRequest
	if !c.decodeOptional(body, &request) {
		return
	}
	c.selected(request.Subject, func(streams []*meta.Stream) {
		response := jsapi.StreamListResponse{Response: c.response(), Streams: []*jsapi.StreamInfo{}}
		var lo, hi int
		response.Page, lo, hi = page(len(streams), request.Offset, jsapi.ListPageMax)
		c.gather(streams[lo:hi], &response)
	})
}

// gather asks the leader of each stream and answers when all have answered or time is over.
func (c *call) gather(streams []*meta.Stream, response *jsapi.StreamListResponse) {
	infos := make([]*jsapi.StreamInfo, len(streams))
	waiting := len(streams) + 1
	finish := func() {
		waiting--
		if waiting > 0 {
			return
		}
		for i, info := range infos {
			if info != nil {
				response.Streams = append(response.Streams, info)
			} else if c.backend.Catalog().ByGroup(streams[i].Group) != nil { // it was not deleted meanwhile
				response.Missing = append(response.Missing, streams[i].Name)
			}
		}
		c.respond(response)
	}
	for i, entry := range streams {
		c.info(entry, 0, listWaitNanos, func(info *jsapi.StreamInfo, err *jsapi.Error) {
			if err == nil {
				infos[i] = info // lists do not show versions
				if c.api.clustered() {
					info.Domain = ""
				} else {
					info.Cluster = nil
				}
			}
			finish()
		})
	}
	finish()
}
