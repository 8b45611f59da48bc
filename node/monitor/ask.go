package monitor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"weir/spec/assert"
)

// Question is a request for what the monitoring port answers, made by a client on $SYS.
type Question struct {
	// What is one of Questions.
	What string
	// Body is JSON: filters that say which servers are meant, and what a query would say on the monitoring port.
	Body []byte
	// Account, when it is not empty, is the only account that the answer is about.
	Account string
}

// Reply is the answer to a Question: Data, or an error.
type Reply struct {
	// Data is a JSON document: null when the question could not be answered, nil when it could not even be read.
	Data []byte
	// Code and Error are an error; Code is 0 without one.
	Code  int
	Error string
}

// The codes of errors in replies.
const (
	codeBadBody = 400
	codeFailed  = 500
)

// paths are the documents that a Question may be about.
var paths = map[string]string{
	"VARZ": "/varz", "CONNZ": "/connz", "SUBSZ": "/subsz", "JSZ": "/jsz", "HEALTHZ": "/healthz", "ROUTEZ": "/routez",
	"GATEWAYZ": "/gatewayz", "LEAFZ": "/leafz", "ACCOUNTZ": "/accountz", "STATZ": "/accstatz", "INFO": "/accountz", "STATSZ": "",
}

// Questions are the words of a Question, in order.
func Questions() []string { return slices.Sorted(maps.Keys(paths)) }

// filters say which servers a question is meant for. All of those that are set have to match.
type filters struct {
	Name    string   `json:"server_name"`
	Cluster string   `json:"cluster"`
	Host    string   `json:"host"`
	Exact   bool     `json:"exact_match"`
	Tags    []string `json:"tags"`
	Domain  string   `json:"domain"`
}

// match reports whether this server is meant.
func (f *filters) match(source Source) bool {
	s := source.Server()
	matches := func(have, want string) bool {
		return want == "" || have == want || !f.Exact && strings.Contains(have, want)
	}
	for _, tag := range f.Tags {
		if !slices.Contains(s.Tags, tag) {
			return false
		}
	}
	now := source.Snapshot(Want{})
	domain, cluster := "", ""
	if now.JetStream != nil {
		domain = now.JetStream.Domain
	}
	if now.Cluster != nil {
		cluster = now.Cluster.Name
	}
	return matches(s.Name, f.Name) && matches(s.Host, f.Host) && matches(cluster, f.Cluster) && (f.Domain == "" || f.Domain == domain)
}

// Ask answers a question; false says that it is meant for other servers.
func Ask(q Question, source Source) (Reply, bool) {
	query, meant, err := q.query(source)
	switch {
	case err != nil:
		return Reply{Code: codeBadBody, Error: err.Error()}, true
	case !meant:
		return Reply{}, false
	case q.What == "STATSZ":
		data, err := json.Marshal((&request{query: query, source: source}).statsz())
		assert.True(err == nil, "a document of plain fields encodes")
		return Reply{Data: data}, true
	case query.Get("filter_subject") != "":
		return failed("filter by subject is not supported by this server"), true
	}
	path, known := paths[q.What]
	assert.True(known, "a question is one of those that there are")
	a := Handle(path, query, source)
	if q.What == "HEALTHZ" && a.ContentType == "application/json" {
		return Reply{Data: withStatus(a)}, true
	}
	if a.Status != statusOK {
		if string(a.Body) == errNotLeader.Error() {
			return Reply{}, false // the one that leads answers
		}
		return failed(string(a.Body)), true
	}
	return q.part(a.Body), true
}

// part is the document, or the part of it that is about the one account that was asked for.
func (q *Question) part(body []byte) Reply {
	var doc struct {
		JetStream []json.RawMessage `json:"account_details"`
		Account   json.RawMessage   `json:"account_detail"`
	}
	if q.Account == "" || q.What != "JSZ" && q.What != "INFO" {
		return Reply{Data: compact(body)}
	}
	err := json.Unmarshal(body, &doc)
	assert.True(err == nil, "a document is JSON")
	switch {
	case q.What == "INFO":
		return Reply{Data: compact(doc.Account)}
	case len(doc.JetStream) == 1:
		return Reply{Data: compact(doc.JetStream[0])}
	}
	return failed(fmt.Sprintf("account %q not found", q.Account))
}

func failed(text string) Reply { return Reply{Data: []byte("null"), Code: codeFailed, Error: text} }

// query reads the body as filters and as the query that it stands for.
func (q *Question) query(source Source) (query url.Values, meant bool, err error) {
	query = url.Values{}
	var f filters
	if len(q.Body) > 0 {
		var members map[string]any
		if err := json.Unmarshal(q.Body, &f); err != nil {
			return nil, false, err
		}
		d := json.NewDecoder(bytes.NewReader(q.Body))
		d.UseNumber()
		if err := d.Decode(&members); err != nil {
			return nil, false, err
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			for _, text := range texts(members[name]) {
				q.translate(query, name, text)
			}
		}
	}
	if q.Account != "" {
		query["acc"] = []string{q.Account}
	}
	return query, f.match(source), nil
}

// texts are the values of a member as a query has them.
func texts(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case bool:
		if v {
			return []string{"true"}
		}
	case json.Number:
		return []string{v.String()}
	case []any:
		var list []string
		for _, element := range v {
			list = append(list, texts(element)...)
		}
		return list
	}
	return nil
}

// translate adds a member of the body to the query, under the name that it has there.
func (q *Question) translate(query url.Values, name, text string) {
	switch name {
	case "account", "accounts":
		if name == "account" && q.What != "HEALTHZ" || q.What == "STATZ" {
			name = "acc"
		}
	case "subscriptions":
		name = "subs"
	case "subscriptions_detail":
		name, text = "subs", "detail"
	case "consumer":
		if q.What == "JSZ" {
			name = "consumers"
		}
	case "state":
		if state := map[string]string{"0": "open", "1": "closed", "2": "any"}[text]; state != "" {
			text = state
		}
	case "include_unused":
		name = "unused"
	case "leader_only", "stream_leader_only", "direct_consumer":
		name = strings.ReplaceAll(name, "_", "-")
	}
	if name == "acc" {
		query.Add(name, text)
		return
	}
	query.Set(name, text)
}

// withStatus adds the HTTP status to the document of a probe.
func withStatus(a Answer) []byte {
	var doc struct {
		Status string        `json:"status"`
		Code   int           `json:"status_code,omitempty"`
		Error  string        `json:"error,omitempty"`
		Errors []healthError `json:"errors,omitempty"`
	}
	err := json.Unmarshal(a.Body, &doc)
	doc.Code = a.Status
	data, encodeErr := json.Marshal(&doc)
	assert.True(err == nil && encodeErr == nil, "a document that was encoded can be decoded")
	return data
}

func compact(body []byte) []byte {
	var out bytes.Buffer
	err := json.Compact(&out, body)
	assert.True(err == nil, "a document is JSON")
	return out.Bytes()
}
