package replica

import (
	"reflect"
	"unsafe" //det:ok the election timeout is drawn inside of Raft; a simulation has to choose it

	"go.etcd.io/raft/v3"

	"weir/spec/assert"
)

// electionTimeout is the place of Raft's randomised election timeout, which nothing reads but a tick of a replica that
// does not lead. That it is there, under this name and type, is checked: another version of the library fails at once.
func electionTimeout(node *raft.RawNode) *int {
	return hidden[int](node, "raft", "randomizedElectionTimeout")
}

// commitIndex is the place of Raft's commit index, for Plant.CommitEarlierTerm.
func commitIndex(node *raft.RawNode) *uint64 {
	return hidden[uint64](node, "raft", "raftLog", "committed")
}

// hidden is the place of a field of an unexported struct.
func hidden[T any](node *raft.RawNode, path ...string) *T {
	v := reflect.ValueOf(node)
	for _, name := range path {
		assert.True(v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct, "Raft's fields are where they were")
		v = v.Elem().FieldByName(name)
		assert.True(v.IsValid(), "Raft has the field")
	}
	assert.True(v.Type() == reflect.TypeFor[T](), "Raft's field has its type")
	return (*T)(unsafe.Pointer(v.UnsafeAddr()))
}
