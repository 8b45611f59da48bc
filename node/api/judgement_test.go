package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// timeout is how long the reference server may take for an answer; it is never reached.
const timeout = 20 * time.Second

// values are what a random configuration may hold in a field; a nil is left out.
type values map[string][]any

var streamValues = values{
	"subjects": {nil, nil, []string{"a.*"}, []string{"a", "b.>"}, []string{"a.*", "a.b"}, []string{""}, []string{"x", "x"},
		[]string{"$JS.EVENT.x"}, []string{"$SYS.ACCOUNT.x"}, []string{"$KV.x.>"}},
	"description":             {nil, nil, "d", strings.Repeat("d", 4097)},
	"max_consumers":           {nil, 0, -1, -7, 3},
	"max_msgs":                {nil, 0, -1, -7, 3},
	"max_bytes":               {nil, 0, -1, -7, 30},
	"max_msgs_per_subject":    {nil, 0, -1, -7, 3},
	"max_msg_size":            {nil, 0, -1, -7, 30},
	"max_age":                 {nil, nil, 0, -1, 99_999_999, 100_000_000, 3_600_000_000_000},
	"duplicate_window":        {nil, nil, 0, -1, 99_999_999, 100_000_000, 3_600_000_000_001},
	"discard":                 {nil, "old", "new", "NEW"},
	"num_replicas":            {nil, nil, 0, 1, 2, 6, -1},
	"no_ack":                  {nil, nil, true, false},
	"placement":               {nil, nil, map[string]any{}, map[string]any{"preferred": "x"}, map[string]any{"cluster": "x"}},
	"compression":             {nil, "none", "s2"},
	"first_seq":               {nil, nil, 10},
	"allow_direct":            {nil, true},
	"discard_new_per_subject": {nil, nil, nil, true},
	"deny_delete":             {nil, true},
	"deny_purge":              {nil, nil, true},
	"allow_rollup_hdrs":       {nil, nil, true},
	"consumer_limits":         {nil, nil, map[string]any{"inactive_threshold": 5_000_000_000, "max_ack_pending": 7}},
	"metadata":                {nil, nil, map[string]string{"a": "b"}, map[string]string{"_nats.req.level": "9", "_nats.ver": "1"}},
	"pedantic":                {nil, nil, nil, true},
	"mirror_direct":           {nil, nil, nil, true},
	"mirror": {nil, nil, nil, nil, map[string]any{"name": "ORIGIN"}, map[string]any{"name": "NONE"}, map[string]any{"name": "MIRROR"},
		map[string]any{"name": "ORIGIN", "filter_subject": "a.1"}, map[string]any{"name": "ORIGIN", "filter_subject": "a..b"},
		map[string]any{"name": "a.b"}},
}

var consumerValues = values{
	"name":               {nil, nil, "C", "D"},
	"description":        {nil, nil, "d", strings.Repeat("d", 4097)},
	"deliver_policy":     {nil, "all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject", "undefined"},
	"opt_start_seq":      {nil, nil, nil, 2, 20},
	"opt_start_time":     {nil, nil, nil, "2120-01-01T00:00:00Z"},
	"ack_policy":         {nil, "none", "all", "explicit"},
	"ack_wait":           {nil, nil, 0, 5, -5},
	"max_deliver":        {nil, nil, 0, -1, -5, 1, 3},
	"backoff":            {nil, nil, nil, []int{1, 2}, []int{-1}},
	"filter_subject":     {nil, nil, "", "a.1", "b.>", ">", "a..b"},
	"filter_subjects":    {nil, nil, nil, []string{"a.1"}, []string{"a.1", "b.>"}, []string{"b.>", "b.1"}, []string{""}},
	"sample_freq":        {nil, nil, "50", "50%", "x"},
	"max_waiting":        {nil, nil, 0, 7, -7},
	"max_ack_pending":    {nil, nil, 0, 3, -1, -7, 900},
	"flow_control":       {nil, nil, nil, true},
	"headers_only":       {nil, nil, true},
	"max_batch":          {nil, nil, 0, 3, -3},
	"max_expires":        {nil, nil, 0, 5, -5, 5_000_000},
	"max_bytes":          {nil, nil, 0, 5, -5},
	"deliver_subject":    {nil, nil, nil, "push", "a.1", "push.*", "push.."},
	"deliver_group":      {nil, nil, "g"},
	"idle_heartbeat":     {nil, nil, 0, 5, 100_000_000, -5},
	"inactive_threshold": {nil, nil, 4_000_000_000_000},
	"num_replicas":       {nil, nil, 0, 1, 2, -1},
	"mem_storage":        {nil, true},
	"metadata":           {nil, nil, map[string]string{"a": "b"}, map[string]string{"_nats.req.level": "9"}},
	"priority_groups":    {nil, nil, nil, nil, []string{"g"}},
}

// draw makes a configuration in which at most half of the fields are set, so that some pass.
func (v values) draw(t *rapid.T, into map[string]any) map[string]any {
	names := slices.Sorted(maps.Keys(v))
	for _, name := range rapid.Permutation(names).Draw(t, "fields")[:rapid.IntRange(0, len(names)/2).Draw(t, "count")] {
		if value := rapid.SampledFrom(v[name]).Draw(t, name); value != nil {
			into[name] = value
		}
	}
	return into
}

func judge(t *rapid.T, ref *reference, w *world, tail string, request any) {
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	got := ours(w, tail, nil, string(body))
	if len(got) == 1 && strings.Contains(string(got[0].body), "not supported by this server") {
		return
	}
	m, err := ref.nc.Request("$JS.API."+tail, body, timeout)
	if err != nil {
		t.Fatalf("%s %s: %v", tail, body, err)
	}
	if len(got) != 1 || comparable(got[0].body) != comparable(m.Data) {
		t.Fatalf("%s %s\nreference %s\nours      %s", tail, body, comparable(m.Data), comparable(got[0].body))
	}
}

// TestRandomConfigurationsAreJudgedAlike sends random configurations to the reference server and to ours: created,
// created again, changed. Both have to give the same answers, so the same verdicts, texts and defaults.
func TestRandomConfigurationsAreJudgedAlike(t *testing.T) {
	ref, w := startReference(t), newWorld()
	for tail, create := range map[string]string{ // order-free: a mirror may be created before its origin
		"STREAM.CREATE.ORIGIN": `{"name":"ORIGIN","subjects":["origin"],"storage":"memory","max_msg_size":20,"allow_direct":true}`,
		"STREAM.CREATE.MIRROR": `{"name":"MIRROR","mirror":{"name":"NOBODY"},"storage":"memory"}`,
	} {
		w.request(tail, nil, create)
		if _, err := ref.nc.Request("$JS.API."+tail, []byte(create), timeout); err != nil {
			t.Fatal(err)
		}
	}
	count := 0
	rapid.Check(t, func(t *rapid.T) {
		// Fresh names and memory: the reference server cannot always create files where it has just deleted some.
		count++
		name := fmt.Sprintf("S%d", count)
		first := streamValues.draw(t, map[string]any{"name": name, "storage": "memory"})
		second := streamValues.draw(t, map[string]any{"name": name, "storage": "memory"})
		delete(second, "first_seq") // only the one at creation counts
		if first["mirror"] != nil && rapid.IntRange(0, 2).Draw(t, "promote") > 0 {
			delete(first, "subjects")
			second["mirror"] = rapid.SampledFrom([]any{nil, first["mirror"]}).Draw(t, "mirror later")
		}
		judge(t, ref, w, "STREAM.CREATE."+name, first)
		judge(t, ref, w, "STREAM.CREATE."+name, first)
		judge(t, ref, w, "STREAM.CREATE."+name, second)
		judge(t, ref, w, "STREAM.UPDATE."+name, second)
		judge(t, ref, w, "STREAM.DELETE."+name, map[string]any{})
	})
}

// TestRandomConsumersAreJudgedAlike does the same for consumers of a stream that holds messages.
func TestRandomConsumersAreJudgedAlike(t *testing.T) {
	ref, w := startReference(t), newWorld()
	for _, limits := range []string{`{}`, `{"inactive_threshold":5000000000000,"max_ack_pending":7}`} {
		create := fmt.Sprintf(`{"name":"S","subjects":["a.*","b.>"],"consumer_limits":%s}`, limits)
		for _, request := range [][2]string{{"STREAM.DELETE.S", ""}, {"STREAM.CREATE.S", create}} {
			w.request(request[0], nil, request[1])
			if _, err := ref.nc.Request("$JS.API."+request[0], []byte(request[1]), timeout); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 10 {
			to := fmt.Sprintf("%c.%d", 'a'+i%2, i%3)
			if _, err := ref.nc.Request(to, []byte("x"), timeout); err != nil || !w.publish(to, nil, []byte("x")) {
				t.Fatal(err)
			}
		}
		rapid.Check(t, func(t *rapid.T) {
			// Two differences are on purpose. A durable consumer never gets the inactive threshold of the ephemeral that it
			// was before, and creating an ephemeral consumer again with the same configuration succeeds.
			w.request("CONSUMER.DELETE.S.C", nil, "")
			if _, err := ref.nc.Request("$JS.API.CONSUMER.DELETE.S.C", nil, timeout); err != nil {
				t.Fatal(err)
			}
			durable := rapid.Bool().Draw(t, "durable")
			request := func(label string) map[string]any {
				config := consumerValues.draw(t, map[string]any{})
				if durable {
					config["durable_name"] = "C"
				} else if _, set := config["inactive_threshold"]; !set {
					config["inactive_threshold"] = 4_000_000_000_000
				}
				r := map[string]any{"stream_name": "S", "config": config}
				if action := rapid.SampledFrom([]any{nil, nil, "create", "update"}).Draw(t, label); action != nil {
					r["action"] = action
				}
				if rapid.IntRange(0, 9).Draw(t, label) == 0 {
					r["pedantic"] = true
				}
				return r
			}
			first, second := request("first"), request("second")
			for _, field := range []string{"filter_subject", "filter_subjects"} { // positions after that are another matter
				if value, set := first["config"].(map[string]any)[field]; set {
					second["config"].(map[string]any)[field] = value
				} else {
					delete(second["config"].(map[string]any), field)
				}
			}
			judge(t, ref, w, "CONSUMER.CREATE.S.C", first)
			judge(t, ref, w, "CONSUMER.CREATE.S.C", second)
			judge(t, ref, w, "CONSUMER.INFO.S.C", map[string]any{})
		})
	}
}
