package meta

import (
	"fmt"
	"testing"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
)

// BenchmarkCreate creates streams in a catalog that has ten thousand of them: nothing about a create may cost as much as
// the catalog is large.
func BenchmarkCreate(b *testing.B) {
	m := New()
	view := View{Cluster: "C"}
	for i := range uint64(3) {
		apply(m, 0, view.Register(&Server{ID: i + 1, Name: fmt.Sprint(i), Cluster: "C"}))
	}
	create := func(i int) {
		name := fmt.Sprint("S", i)
		config := clustered(b, jsapi.StreamConfig{Name: name, Subjects: []string{name + ".>"}, Replicas: 3})
		c := view.Create("A", config, clusterLimits())
		var out effect.List
		m.Apply(m.Applied()+1, command.Append(command.AppendHeader(nil, 1, 1), &c), &out)
	}
	for i := range 10_000 {
		create(i)
	}
	b.ResetTimer()
	for i := range b.N {
		create(10_000 + i)
	}
}
