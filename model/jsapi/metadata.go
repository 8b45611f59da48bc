package jsapi

import (
	"maps"
	"strconv"
	"strings"
)

// The reserved metadata keys (ADR-44). The first is stored, the other two exist in responses only.
const (
	MetadataRequiredLevel = "_nats.req.level"
	MetadataServerVersion = "_nats.ver"
	MetadataServerLevel   = "_nats.level"
)

const reservedPrefix = "_nats."

func metadataBytes(metadata map[string]string) int {
	total := 0
	for key, value := range metadata { // order-free: a sum
		total += len(key) + len(value)
	}
	return total
}

// storedMetadata returns the metadata that is stored: without the keys of responses, with the required level that the
// server computed, whatever the client sent.
func storedMetadata(metadata map[string]string, level int) map[string]string {
	stored := make(map[string]string, len(metadata)+1)
	maps.Copy(stored, metadata)
	delete(stored, MetadataServerVersion)
	delete(stored, MetadataServerLevel)
	stored[MetadataRequiredLevel] = strconv.Itoa(level)
	return stored
}

// shownMetadata returns the metadata of a response.
func shownMetadata(metadata map[string]string) map[string]string {
	shown := make(map[string]string, len(metadata)+2)
	maps.Copy(shown, metadata)
	shown[MetadataServerVersion] = Version
	shown[MetadataServerLevel] = strconv.Itoa(APILevel)
	return shown
}

func comparedMetadata(metadata map[string]string) map[string]string {
	compared := maps.Clone(metadata)
	maps.DeleteFunc(compared, func(key, _ string) bool { return strings.HasPrefix(key, reservedPrefix) })
	return compared
}

// Shown returns the configuration as create, update and info responses show it: with the version and level of the
// server in the metadata. It shares everything else with c.
func (c *StreamConfig) Shown() StreamConfig {
	shown := *c
	shown.Metadata = shownMetadata(c.Metadata)
	return shown
}

// Shown returns the configuration as create and info responses show it: with the version and level of the server in
// the metadata. It shares everything else with c.
func (c *ConsumerConfig) Shown() *ConsumerConfig {
	shown := *c
	shown.Metadata = shownMetadata(c.Metadata)
	return &shown
}

// Equal reports whether two normalised configurations are the same, reserved metadata aside.
func (c *StreamConfig) Equal(other *StreamConfig) bool {
	a, b := *c, *other
	a.Metadata, b.Metadata = comparedMetadata(a.Metadata), comparedMetadata(b.Metadata)
	return string(a.AppendJSON(nil)) == string(b.AppendJSON(nil))
}

// Equal reports whether two normalised configurations are the same, reserved metadata aside.
func (c *ConsumerConfig) Equal(other *ConsumerConfig) bool {
	a, b := *c, *other
	a.Metadata, b.Metadata = comparedMetadata(a.Metadata), comparedMetadata(b.Metadata)
	return string(a.AppendJSON(nil)) == string(b.AppendJSON(nil))
}
