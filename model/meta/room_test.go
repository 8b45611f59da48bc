package meta

import (
	"fmt"
	"math"
	"testing"

	"weir/model/jsapi"
)

func TestMemoryIsReservedApartFromDisk(t *testing.T) {
	w := newWorld(t, 0)
	w.view.Online = nil
	w.apply(w.view.Register(&Server{ID: 7, Name: "n", Cluster: "C", StoreMax: 10, MemoryMax: 100}))
	w.must(w.create(jsapi.StreamConfig{Name: "M", Storage: jsapi.MemoryStorage, MaxBytes: 60}))
	if err := w.create(jsapi.StreamConfig{Name: "N", Storage: jsapi.MemoryStorage, MaxBytes: 41}); !jsapi.CodeClusterNoPeers.Is(err) {
		t.Fatalf("beyond the memory of the server: %v", err)
	}
	if err := w.update(jsapi.StreamConfig{Name: "M", Storage: jsapi.MemoryStorage, MaxBytes: 101}); !jsapi.CodeMemoryResourcesExceeded.Is(err) {
		t.Fatalf("an update beyond the memory of the server: %v", err)
	}
	limits := clusterLimits()
	limits.Account.MaxMemory = 100
	config := clustered(t, jsapi.StreamConfig{Name: "N", Storage: jsapi.MemoryStorage, MaxBytes: 41})
	if err := w.apply(w.view.Create("A", config, limits)).Err; !jsapi.CodeMemoryResourcesExceeded.Is(err) {
		t.Fatalf("beyond the memory of the account: %v", err)
	}
	if l := w.m.Load(7); l.Memory != 60 || l.Store != 0 {
		t.Fatalf("load: %+v", l)
	}
}

func TestHugeReservationsDoNotOverflow(t *testing.T) {
	w := newWorld(t, 0)
	w.apply(w.view.Register(&Server{ID: 7, Name: "n", Cluster: "C"}))
	w.view.Online = nil
	for i := range 5 {
		w.must(w.create(jsapi.StreamConfig{Name: fmt.Sprint("S", i), MaxBytes: math.MaxInt64}))
	}
	if _, store := w.m.Reserved("A"); store != math.MaxInt64 || w.m.Load(7).Store != math.MaxInt64 {
		t.Fatalf("five times the largest number are %d", store)
	}
	for i := range 4 {
		w.must(w.apply(Delete(w.m.Stream("A", fmt.Sprint("S", i)))).Err)
	}
	w.must(w.update(jsapi.StreamConfig{Name: "S4", MaxBytes: 3}))
	if _, store := w.m.Reserved("A"); store != 3 {
		t.Fatalf("the sum of 3 is %d", store)
	}
}

func TestAccountPaysForReplicasAndServersHaveRoom(t *testing.T) {
	w := newWorld(t, 3)
	limits := clusterLimits()
	limits.Account.MaxStore = 2400
	put := func(config jsapi.StreamConfig, update bool) *jsapi.Error {
		c := clustered(t, config)
		if update {
			return w.apply(w.view.Update("A", c, limits)).Err
		}
		return w.apply(w.view.Create("A", c, limits)).Err
	}
	w.must(put(jsapi.StreamConfig{Name: "S", Replicas: 3, MaxBytes: 600}, false))
	if err := put(jsapi.StreamConfig{Name: "T", Replicas: 2, MaxBytes: 301}, false); !jsapi.CodeStorageResourcesExceeded.Is(err) {
		t.Fatalf("beyond the account: %v", err)
	}
	w.must(put(jsapi.StreamConfig{Name: "T", Replicas: 1, MaxBytes: 400}, false))
	if err := put(jsapi.StreamConfig{Name: "T", Replicas: 2, MaxBytes: 400}, true); !jsapi.CodeStorageResourcesExceeded.Is(err) {
		t.Fatalf("one more replica beyond the account: %v", err)
	}
	w.must(w.update(jsapi.StreamConfig{Name: "T", Replicas: 1, MaxBytes: 300}))
	if err := w.update(jsapi.StreamConfig{Name: "T", Replicas: 1, MaxBytes: 401}); !jsapi.CodeStorageResourcesExceeded.Is(err) {
		t.Fatalf("beyond the server: %v", err)
	}
	if memory, store := w.m.Reserved("A"); memory != 0 || store != 900 {
		t.Fatalf("reserved %d, %d", memory, store)
	}
	server := w.m.Stream("A", "T").Replicas[0].Server
	if l := w.m.Load(server); l.Store != 900 || l.Replicas != 2 {
		t.Fatalf("load of server %d: %+v", server, l)
	}
}
