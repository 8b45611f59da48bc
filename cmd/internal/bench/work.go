package bench

import (
	"fmt"
	"strings"
)

// The names of the rows.
const (
	publishAsync   = "publish-async"
	publishSync1   = "publish-sync-1"
	publishSync16  = "publish-sync-16"
	bareAppend     = "fdatasync-loop"
	bareFilled     = "fdatasync-loop-filled"
	consume        = "consume"
	fetch          = "fetch-100"
	kvGet          = "kv-get"
	core0          = "core-publish-0"
	core1          = "core-publish-1"
	restart        = "restart"
	restartStopped = "restart-stopped"
	restartKilled  = "restart-killed"
	memory         = "memory-per-message"
	kvPut          = "kv-put"
	failover       = "failover"
	streams        = "streams"
	streamsCreate  = "streams-create"
	streamsIdle    = "streams-idle"
	streamsFrames  = "streams-frames"
	fewFrames      = "streams-frames-few"
	streamsRestart = "streams-restart"
	catchUp        = "catch-up"
	catchUpBefore  = "catch-up-publish-before"
	catchUpDuring  = "catch-up-publish"
)

// work is one thing that is measured.
type work struct {
	name    string
	about   string
	drive   func(*trial) (sample, error)
	always  bool              // also on the reference with sync always
	once    bool              // one round is enough, and long
	targets map[string]string // row -> what Weir is held to
}

var works = []work{
	{name: publishAsync, about: "asynchronous publish, 500 in flight, 128 B", drive: drivePublishAsync, always: true,
		targets: map[string]string{publishAsync: ">= 1.3, always >= 30"}},
	{name: publishSync1, about: "synchronous publish, one client; and bare loops of write and fdatasync beside it", drive: drivePublishSync1, always: true,
		targets: map[string]string{publishSync1: "always >= 1.3, bare >= 0.65"}},
	{name: publishSync16, about: "synchronous publish, 16 clients", drive: drivePublishSync16, always: true,
		targets: map[string]string{publishSync16: "always >= 4"}},
	{name: consume, about: "pull consumer, each message acked", drive: driveConsume,
		targets: map[string]string{consume: ">= 1.0"}},
	{name: fetch, about: "fetch by 100, each message acked", drive: driveFetch,
		targets: map[string]string{fetch: ">= 1.0"}},
	{name: kvGet, about: "KV get, one client", drive: driveKVGet, targets: map[string]string{kvGet: ">= 1.0"}},
	{name: core0, about: "core publish, no subscriber", drive: driveCore0, targets: map[string]string{core0: ">= 0.7"}},
	{name: core1, about: "core publish, one subscriber", drive: driveCore1, targets: map[string]string{core1: ">= 0.7"}},
	{name: restart, about: "start with many messages stored, and the memory they take", drive: driveRestart, once: true,
		targets: map[string]string{restartStopped: "< 1000 ms", restartKilled: "< 1000 ms", memory: "< 50 B"}},
}

// clusterWorks are measured on three servers with as many replicas of each stream.
var clusterWorks = []work{
	{name: publishAsync, about: "asynchronous publish, 500 in flight, 128 B", drive: drivePublishAsync, always: true,
		targets: map[string]string{publishAsync: ">= 1.2, always >= 2"}},
	{name: publishSync1, about: "synchronous publish, one client", drive: drivePublishSync1, always: true,
		targets: map[string]string{publishSync1: "always >= 2"}},
	{name: publishSync16, about: "synchronous publish, 16 clients", drive: drivePublishSync16, always: true,
		targets: map[string]string{publishSync16: "always >= 2"}},
	{name: kvPut, about: "KV put, one client", drive: driveKVPut, always: true, targets: map[string]string{kvPut: "always >= 2"}},
	{name: kvGet, about: "KV get, one client; linearizable against a read of any replica", drive: driveKVGet,
		targets: map[string]string{kvGet: ">= 0.5"}},
	{name: consume, about: "pull consumer, each message acked", drive: driveConsume, targets: map[string]string{consume: ">= 1.0"}},
	{name: fetch, about: "fetch by 100, each message acked", drive: driveFetch, targets: map[string]string{fetch: ">= 1.0"}},
	{name: failover, about: "time without an acknowledgement after the stream's leader is killed", drive: driveFailover, once: true,
		targets: map[string]string{failover: "< 2000 ms, >= 2"}},
	{name: streams, about: "many streams with one consumer each: to make them, at rest, and a server that starts with all of them", drive: driveStreams, once: true,
		targets: map[string]string{
			streamsCreate: ">= 1.0", streamsIdle: "< 3 % of a core", streamsFrames: "<= with few", streamsRestart: "< 5000 ms",
		}},
	{name: catchUp, about: "a follower that missed many messages, while publishing goes on", drive: driveCatchUp, once: true,
		targets: map[string]string{catchUp: "> 100 MB/s", catchUpDuring: ">= half of before"}},
}

// ReplicasOfClusters is how many servers the works on a cluster are measured on.
const ReplicasOfClusters = 3

func worksOf(replicas int) []work {
	if replicas == 1 {
		return works
	}
	return clusterWorks
}

// Works returns a line for each work with so many replicas: its name and what it does.
func Works(replicas int) []string {
	var lines []string
	for _, w := range worksOf(replicas) {
		lines = append(lines, fmt.Sprintf("%-22s %s", w.name, w.about))
	}
	return lines
}

// choose returns the works of the given names in the order of the table, all for none.
func choose(names []string, works []work) ([]work, error) {
	if len(names) == 0 {
		return works, nil
	}
	var chosen []work
	for _, w := range works {
		for _, name := range names {
			if w.name == name {
				chosen = append(chosen, w)
				break
			}
		}
	}
	for _, name := range names {
		known := false
		for _, w := range works {
			known = known || w.name == name
		}
		if !known {
			var all []string
			for _, w := range works {
				all = append(all, w.name)
			}
			return nil, fmt.Errorf("no work is called %q; there are: %s", name, strings.Join(all, ", "))
		}
	}
	return chosen, nil
}
