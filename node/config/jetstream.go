package config

import (
	"math"
	"strings"
)

// enabled reads what turns a thing on or off in one word.
func (v value) enabled(dst *bool) bool {
	switch raw := v.raw.(type) {
	case bool:
		*dst = raw
		return true
	case string:
		switch strings.ToLower(raw) {
		case "enabled", "enable":
			*dst = true
			return true
		case "disabled", "disable":
			*dst = false
			return true
		}
		v.problem("Expected 'enabled' or 'disabled' for string value, got '%s'", raw)
		return true
	}
	return false
}

// take reads the jetstream option: one word, or a block, which enables unless it says otherwise.
func (j *JetStream) take(v value) {
	if v.enabled(&j.Enabled) {
		return
	}
	j.Enabled = true
	v.block([]field{
		{"enabled enable", func(v value) { v.truth(&j.Enabled) }},
		{"strict", func(v value) { v.truth(&j.Strict) }},
		{"store_dir store storedir", func(v value) { j.takeStoreDir(v) }},
		{"sync_interval sync", func(v value) { j.takeSync(v) }},
		{"sync_always", func(v value) { v.truth(&j.SyncAlways) }},
		{"max_memory_store max_mem_store max_mem", func(v value) { v.size(&j.MaxMemoryBytes) }},
		{"max_file_store max_file", func(v value) { v.size(&j.MaxFileBytes) }},
		{"domain", func(v value) { j.takeDomain(v) }},
		{"read_lease", func(v value) { v.truth(&j.ReadLease) }},
		{"unique_tag", func(v value) { v.text(&j.UniqueTag) }},
		{"limits", func(v value) { j.Limits.take(v) }},
		// Bounds of the reference server's queues between its parts; this server's queues have fixed bounds.
		{"max_outstanding_catchup max_buffered_size", func(v value) { var n int64; v.size(&n) }},
		{"max_buffered_msgs request_queue_limit info_queue_limit", func(v value) { v.number(0, math.MaxInt32) }},
		unsupported("extension_hint"),
		unsupported("cipher key ek encryption_key prev_key prev_ek prev_encryption_key tpm"),
		unsupported("meta_compact meta_compact_size meta_compact_sync max_concurrent_io"),
	})
}

func (j *JetStream) takeDomain(v value) {
	v.text(&j.Domain)
	if strings.ContainsAny(j.Domain, " \t.*>") {
		v.problem("invalid domain name: %q may not contain ., * or >", j.Domain)
	}
}

func (j *JetStream) takeStoreDir(v value) {
	if j.StoreDir != "" {
		v.problem("Duplicate 'store_dir' configuration")
		return
	}
	v.text(&j.StoreDir)
}

// takeSync reads "always" or a duration.
func (j *JetStream) takeSync(v value) {
	if text, ok := v.raw.(string); ok && strings.EqualFold(text, "always") {
		j.SyncAlways = true
		return
	}
	v.duration(&j.SyncIntervalNanos)
}

func (l *JetStreamLimits) take(v value) {
	v.block([]field{
		{"max_ack_pending", func(v value) { v.integer64(&l.MaxAckPending, -1, math.MaxInt32) }},
		{"max_request_batch", func(v value) { v.integer64(&l.MaxRequestBatch, -1, math.MaxInt32) }},
		{"default_max_consumers", func(v value) { v.integer64(&l.MaxConsumers, -1, math.MaxInt32) }},
		{"duplicate_window", func(v value) { v.duration(&l.DuplicateWindowNanos) }},
		unsupported("max_ha_assets batch"),
	})
}

// take reads the jetstream option of an account.
func (a *Account) takeJetStream(v value) {
	on := true
	if !v.enabled(&on) {
		limits := Unlimited()
		a.JetStream = &limits
		v.block([]field{
			{"enabled enable", func(v value) { v.truth(&on) }},
			{"max_memory max_mem mem memory", func(v value) { v.size(&limits.MaxMemoryBytes) }},
			{"max_store max_file max_disk store disk", func(v value) { v.size(&limits.MaxFileBytes) }},
			{"max_streams streams", func(v value) { v.integer64(&limits.MaxStreams, -1, math.MaxInt32) }},
			{"max_consumers consumers", func(v value) { v.integer64(&limits.MaxConsumers, -1, math.MaxInt32) }},
			{"max_ack_pending", func(v value) { v.integer64(&limits.MaxAckPending, -1, math.MaxInt32) }},
			{"max_bytes_required max_stream_bytes max_bytes", func(v value) { v.truth(&limits.MaxBytesRequired) }},
			{"mem_max_stream_bytes memory_max_stream_bytes", func(v value) { v.size(&limits.MemoryMaxStreamBytes) }},
			{"disk_max_stream_bytes store_max_stream_bytes", func(v value) { v.size(&limits.FileMaxStreamBytes) }},
			unsupported("cluster_traffic"),
		})
	} else if on {
		limits := Unlimited()
		a.JetStream = &limits
	}
	if !on {
		a.JetStream = nil
	}
}
