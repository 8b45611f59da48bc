package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"
)

// twinRun sends the same requests to the target and to the reference server.
type twinRun struct {
	t *rapid.T
	// prefix keeps names and subjects of the runs apart.
	prefix string
	trace  []string
}

// request asks both servers and compares the answers. It reports whether both agreed to do what was asked.
func (r *twinRun) request(api, body string) bool {
	r.t.Helper()
	subject := "$JS.API." + api
	want, got := r.answer(reference, subject, body), r.answer(conn, subject, body)
	r.trace = append(r.trace, fmt.Sprintf("%s %s\n   -> %v", api, body, want["error"]))
	if unsupported(got) {
		// What Weir does not have yet is refused; then the reference server must not have it either.
		r.undo(api)
		return false
	}
	if strings.HasPrefix(api, "STREAM.MSG.DELETE.") && want["error"] != nil && got["error"] != nil {
		// The reference server's answer about a missing sequence depends on the kind of storage; see TestStreamAgreesWithOracle.
		return false
	}
	if !reflect.DeepEqual(want, got) {
		r.t.Fatalf("%s %s\n-reference +target\n%s\n%s", api, body, cmp.Diff(want, got), strings.Join(r.trace, "\n"))
	}
	return want["error"] == nil
}

func (r *twinRun) answer(nc *nats.Conn, subject, body string) map[string]any {
	r.t.Helper()
	msg, err := nc.Request(subject, []byte(body), requestTimeout)
	if err != nil {
		r.t.Fatalf("%s %s: %v\n%s", subject, body, err, strings.Join(r.trace, "\n"))
	}
	var answer map[string]any
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		r.t.Fatalf("answer to %s: %v in %q", subject, err, msg.Data)
	}
	normalize(answer)
	return answer
}

// unsupported says that the target refuses a feature that it does not have yet.
func unsupported(answer map[string]any) bool {
	failure, _ := answer["error"].(map[string]any)
	text, _ := failure["description"].(string)
	return strings.Contains(text, "not supported by this server")
}

// undo removes what the reference server made of a request that the target does not support.
func (r *twinRun) undo(api string) {
	tokens := strings.Split(api, ".")
	if tokens[0] == "STREAM" {
		r.answer(reference, "$JS.API.STREAM.DELETE."+tokens[2], "")
		r.answer(conn, "$JS.API.STREAM.DELETE."+tokens[2], "")
		return
	}
	if i := slices.Index(tokens, "CREATE"); i > 0 && len(tokens) > i+2 {
		r.answer(reference, "$JS.API.CONSUMER.DELETE."+tokens[i+1]+"."+tokens[i+2], "")
		r.answer(conn, "$JS.API.CONSUMER.DELETE."+tokens[i+1]+"."+tokens[i+2], "")
	}
}

// normalize removes what depends on the clock and on the server's name.
func normalize(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v { // order-free: each member on its own
			switch key {
			case "created", "ts", "time", "first_ts", "last_ts", "last_active", "cluster", "leader":
				delete(v, key)
			case "metadata":
				normalizeMetadata(v, inner)
			case "deleted":
				// A file stream of the reference server that never held a message has a deleted sequence 0.
				if list, ok := inner.([]any); ok && len(list) == 1 && list[0] == 0.0 {
					delete(v, key)
					delete(v, "num_deleted")
				}
			case "description":
				// The decoder's own words name types of the program.
				if text, ok := inner.(string); ok && strings.HasPrefix(text, "invalid JSON: ") {
					v[key] = "invalid JSON"
				}
			default:
				normalize(inner)
			}
		}
	case []any:
		for _, inner := range v {
			normalize(inner)
		}
	}
}

func normalizeMetadata(of map[string]any, inner any) {
	metadata, _ := inner.(map[string]any)
	for key := range metadata { // order-free: each member on its own
		if strings.HasPrefix(key, "_nats.") {
			delete(metadata, key)
		}
	}
	if len(metadata) == 0 {
		delete(of, "metadata")
	}
}

// drawObject draws a JSON object: one in six of the members with good values, one in sixty of those with bad ones.
func drawObject(t *rapid.T, good, bad map[string][]any) map[string]any {
	object := map[string]any{}
	draw := func(share int, members map[string][]any) {
		for _, key := range slices.Sorted(maps.Keys(members)) {
			if rapid.IntRange(0, share-1).Draw(t, key+"?") == share-1 {
				object[key] = rapid.SampledFrom(members[key]).Draw(t, key)
			}
		}
	}
	draw(6, good)
	draw(60, bad)
	return object
}

func encode(t *rapid.T, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encode %v: %v", value, err)
	}
	return string(text)
}

func (r *twinRun) drawStream() string { return r.prefix + oneOf(r.t, "stream", "A", "A", "B", "C") }

// streamMembers are values for the members of a stream's configuration, good and bad ones.
func (r *twinRun) streamMembers() (good, bad map[string][]any) {
	p := r.prefix
	good = map[string][]any{
		"description": {"text"}, "subjects": {[]string{p + ".a"}, []string{p + ".>"}, []string{p + ".b", p + ".c.*"}},
		"max_msgs": {0, -1, 5, -7}, "max_bytes": {0, -1, 1000, -7}, "max_msgs_per_subject": {0, -1, 2, -7},
		"max_msg_size": {0, -1, 100, -7}, "max_consumers": {0, -1, 1, 2, -7},
		"max_age": {0, int64(100e6), int64(3600e9), int64(60e9)},
		"discard": {"old", "new", "New"}, "storage": {"file", "memory"}, "num_replicas": {0, 1}, "no_ack": {true, false},
		"duplicate_window": {0, int64(1e9)}, "compression": {"none", "s2"}, "allow_direct": {true, false},
		"discard_new_per_subject": {true}, "deny_delete": {true}, "deny_purge": {true}, "allow_rollup_hdrs": {true},
		"consumer_limits": {map[string]any{"max_ack_pending": 50, "inactive_threshold": int64(10e9)}, map[string]any{}},
		"metadata":        {map[string]string{"k": "v"}}, "persist_mode": {"default"},
		"placement": {map[string]any{}}, "mirror": {nil}, "sources": {nil},
	}
	bad = map[string][]any{
		"description": {strings.Repeat("x", 5000)},
		"subjects": {[]string{p + ".a", p + ".a"}, []string{p + ".*", p + ".a"}, []string{"bad..subject"}, []string{">"},
			[]string{"$JS.API.x"}, []string{"$SYS.x"}, []string{""}, []string{p + ".d ."}, "text"},
		"retention": {"bogus"}, "max_age": {int64(99e6), int64(-1)}, "discard": {"bogus"}, "storage": {"bogus"},
		"num_replicas": {3, 6, -1}, "duplicate_window": {int64(50e6), int64(-1), int64(7200e9)}, "compression": {"bogus"},
		"mirror_direct": {true}, "sealed": {true}, "metadata": {map[string]string{"k": strings.Repeat("y", 140_000)}},
		"persist_mode": {"bogus"}, "unknown": {1}, "max_msgs": {"5", 1.5},
	}
	return good, bad
}

func (r *twinRun) putStream() {
	name := r.drawStream()
	good, bad := r.streamMembers()
	config := drawObject(r.t, good, bad)
	if config["subjects"] == nil {
		config["subjects"] = []string{r.prefix + ".stream." + name, r.prefix + ".of." + name + ".>"}
	}
	config["name"] = name
	if oneOf(r.t, "misnamed", false, false, false, false, false, false, false, false, false, true) {
		config["name"] = oneOf(r.t, "name", any(""), any("other"), any(name+"*"), any(7))
	}
	config["retention"] = "limits"
	verb := oneOf(r.t, "verb", "CREATE", "CREATE", "UPDATE")
	body := encode(r.t, config)
	if oneOf(r.t, "broken", false, false, false, false, false, false, false, false, true) {
		body = oneOf(r.t, "body", "", "{", "[]", "null", "x", body+"x", body[:len(body)/2])
	}
	r.request("STREAM."+verb+"."+name, body)
}

// consumerMembers are values for the members of a consumer's configuration, good and bad ones.
func (r *twinRun) consumerMembers() (good, bad map[string][]any) {
	p := r.prefix
	good = map[string][]any{
		"description": {"text"}, "deliver_policy": {"all", "last", "new", "undefined"},
		"ack_policy": {"none", "all", "explicit"}, "ack_wait": {0, int64(1e9)}, "max_deliver": {0, -1, 1, 3, -5},
		"filter_subject": {"", p + ".a", ">", p + ".*"}, "replay_policy": {"instant", "original"},
		"sample_freq": {"50", "50%", "200"}, "max_waiting": {0, 10}, "max_ack_pending": {0, 10, -1, -5, 100},
		"headers_only": {true}, "max_batch": {0, 5, -1}, "max_expires": {0, int64(1e9)}, "max_bytes": {0, 1000, -1},
		"inactive_threshold": {0, int64(60e9), int64(5e9)}, "num_replicas": {0, 1}, "mem_storage": {true},
		"metadata": {map[string]string{"k": "v"}},
	}
	bad = map[string][]any{
		"description":    {strings.Repeat("x", 5000)},
		"deliver_policy": {"by_start_sequence", "by_start_time", "last_per_subject", "bogus"},
		"opt_start_seq":  {0, 1, 5}, "opt_start_time": {"2024-01-01T00:00:00Z"}, "ack_policy": {"bogus"}, "ack_wait": {int64(-1)},
		"backoff": {[]int64{1e9}, []int64{1e9, 2e9, 3e9}, []int64{-1}}, "filter_subject": {"x..y"},
		"filter_subjects": {[]string{p + ".a"}, []string{p + ".a", p + ".b"}, []string{p + ".a", p + ".*"}, []string{""}, []string{}},
		"replay_policy":   {"bogus"}, "rate_limit_bps": {0, 1000}, "sample_freq": {"x"}, "max_waiting": {-1}, "flow_control": {true},
		"max_expires": {500}, "deliver_subject": {p + ".out", "D." + p, "bad.*", "x..y"}, "deliver_group": {"g"},
		"idle_heartbeat": {int64(1e9), int64(50e6), int64(-1)}, "inactive_threshold": {int64(-1)}, "num_replicas": {3, -1},
		"metadata": {map[string]string{"k": strings.Repeat("y", 140_000)}}, "unknown": {1},
	}
	if oneOf(r.t, "push", false, false, true) {
		good["deliver_subject"], good["idle_heartbeat"], good["flow_control"] = []any{"D." + p}, []any{int64(1e9)}, []any{true}
		good["deliver_group"], good["rate_limit_bps"] = []any{"g"}, []any{1000}
	}
	if oneOf(r.t, "start", false, false, true) {
		good["deliver_policy"], good["opt_start_seq"] = []any{"by_start_sequence"}, []any{1, 5}
	}
	return good, bad
}

func (r *twinRun) putConsumer() {
	stream := r.drawStream()
	name := oneOf(r.t, "consumer", "c1", "c2", "c1", "c3")
	good, bad := r.consumerMembers()
	config := drawObject(r.t, good, bad)
	for _, key := range []string{"durable_name", "name"} {
		if oneOf(r.t, key+"?", true, true, false) {
			config[key] = oneOf(r.t, key, name, name, name, name, name, name, name, name, name, name, name, name, "c4", "a.b", "a b")
		}
	}
	request := map[string]any{"stream_name": oneOf(r.t, "stream_name", stream, stream, stream, stream, stream, stream, stream, stream, stream, stream, stream, "", "other"), "config": config}
	if oneOf(r.t, "action?", false, false, true) {
		request["action"] = oneOf(r.t, "action", "", "create", "update", "bogus")
	}
	api := "CONSUMER.CREATE." + stream + "." + name
	switch oneOf(r.t, "form", "create", "create", "create", "durable", "filter") {
	case "durable":
		api = "CONSUMER.DURABLE.CREATE." + stream + "." + name
	case "filter":
		api += "." + r.prefix + oneOf(r.t, "tail", ".a", ".*")
	}
	body := encode(r.t, request)
	if oneOf(r.t, "broken", false, false, false, false, false, false, false, false, true) {
		body = oneOf(r.t, "body", "", "{", "[]", "null", "x", body[:len(body)/2])
	}
	r.request(api, body)
}

// ask makes one of the other requests.
func (r *twinRun) ask() {
	stream, consumer := r.drawStream(), oneOf(r.t, "consumer", "c1", "c2", "c3", "none")
	p := r.prefix
	one := func(bodies ...string) string { return rapid.SampledFrom(bodies).Draw(r.t, "body") }
	switch oneOf(r.t, "api", "STREAM.INFO", "STREAM.NAMES", "STREAM.LIST", "STREAM.PURGE", "STREAM.MSG.GET", "STREAM.MSG.DELETE",
		"STREAM.DELETE", "CONSUMER.INFO", "CONSUMER.NAMES", "CONSUMER.LIST", "CONSUMER.DELETE") {
	case "STREAM.INFO":
		r.request("STREAM.INFO."+stream, one("", "{}", `{"deleted_details":true}`, `{"subjects_filter":">"}`, `{"subjects_filter":"`+p+`.*"}`,
			`{"subjects_filter":">","offset":1}`, "x", "{", `{"unknown":1}`))
	case "STREAM.NAMES":
		r.request("STREAM.NAMES", one(`{"subject":"`+p+`.a"}`, `{"subject":"`+p+`.*"}`, `{"subject":"`+p+`.>","offset":1}`, `{"subject":"`+p+`.>","offset":100}`, "{"))
	case "STREAM.LIST":
		r.request("STREAM.LIST", one(`{"subject":"`+p+`.a"}`, `{"subject":"`+p+`.>"}`, `{"subject":"`+p+`.>","offset":1}`, "{"))
	case "STREAM.PURGE":
		r.request("STREAM.PURGE."+stream, one("", "{}", "zzz", `{"filter":"`+p+`.a"}`, `{"seq":3}`, `{"keep":1}`, `{"seq":2,"keep":1}`, "{", `{"unknown":1}`))
	case "STREAM.MSG.GET":
		r.request("STREAM.MSG.GET."+stream, one("", "{}", `{"seq":1}`, `{"seq":2}`, `{"last_by_subj":"`+p+`.a"}`, `{"seq":1,"last_by_subj":"x"}`,
			`{"next_by_subj":"`+p+`.>"}`, `{"seq":2,"next_by_subj":"`+p+`.*"}`, `{"start_time":"2020-01-01T00:00:00Z"}`, `{"batch":2}`, "x", "{",
			`{"seq":1,"no_hdr":true}`, `{"multi_last":["x"]}`, `{"seq":0}`))
	case "STREAM.MSG.DELETE":
		r.request("STREAM.MSG.DELETE."+stream, one("", "{}", `{"seq":1}`, `{"seq":2,"no_erase":true}`, `{"seq":0}`, "x", "{"))
	case "STREAM.DELETE":
		r.request("STREAM.DELETE."+stream, one("", "", "{}", "x", `{"a":1}`))
	case "CONSUMER.INFO":
		r.request("CONSUMER.INFO."+stream+"."+consumer, one("", "{}", "x"))
	case "CONSUMER.NAMES":
		r.request("CONSUMER.NAMES."+stream, one("", "{}", `{"offset":1}`, `{"offset":9}`, "x", "{"))
	case "CONSUMER.LIST":
		r.request("CONSUMER.LIST."+stream, one("", "{}", `{"offset":1}`, "{"))
	case "CONSUMER.DELETE":
		r.request("CONSUMER.DELETE."+stream+"."+consumer, one("", "{}", "x"))
	}
}

// publish sends a message to both. The subject may belong to no stream.
func (r *twinRun) publish() {
	subject := r.prefix + oneOf(r.t, "subject", ".a", ".b", ".c.x", ".stream."+r.prefix+"A", ".of."+r.prefix+"A.x", ".of."+r.prefix+"A.y", ".of."+r.prefix+"B.x")
	var answers [2]string
	for i, nc := range []*nats.Conn{reference, conn} {
		msg := nats.NewMsg(subject)
		msg.Data = []byte("payload")
		msg.Header.Set("A", "b")
		answer, err := nc.RequestMsg(msg, requestTimeout)
		if err != nil {
			answers[i] = err.Error()
			continue
		}
		answers[i] = string(answer.Data)
	}
	r.trace = append(r.trace, "publish "+subject+" -> "+answers[0])
	if answers[0] != answers[1] {
		r.t.Fatalf("publish %s\nreference: %s\ntarget:    %s\n%s", subject, answers[0], answers[1], strings.Join(r.trace, "\n"))
	}
}

// TestTargetAgreesWithReference compares answers of the API member by member.
func TestTargetAgreesWithReference(t *testing.T) {
	if *target == "" {
		t.Skip("there is no -target to compare with the reference server")
	}
	bound := newBudget()
	rapid.Check(t, func(t *rapid.T) {
		if bound.spent() {
			return
		}
		r := &twinRun{t: t, prefix: uniqueName("P")}
		defer func() {
			for _, name := range []string{"A", "B", "C"} {
				for _, nc := range []*nats.Conn{reference, conn} {
					if _, err := nc.Request("$JS.API.STREAM.DELETE."+r.prefix+name, nil, requestTimeout); err != nil {
						t.Fatalf("delete: %v", err)
					}
				}
			}
		}()
		for range rapid.IntRange(3, 20).Draw(t, "steps") {
			switch oneOf(t, "step", "stream", "stream", "consumer", "consumer", "ask", "ask", "publish") {
			case "stream":
				r.putStream()
			case "consumer":
				r.putConsumer()
			case "ask":
				r.ask()
			case "publish":
				r.publish()
			}
		}
	})
}
