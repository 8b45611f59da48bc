package replica

import (
	"testing"

	"weir/model/command"
	"weir/model/effect"
)

// TestLoadOfAllGroupsIsBounded gathers messages in several groups that share a node.
func TestLoadOfAllGroupsIsBounded(t *testing.T) {
	load := &Load{}
	var groups [3]*Replica
	for i := range groups {
		groups[i] = &Replica{config: Config{Load: load}}
	}
	payload := make([]byte, 1<<20)
	sent, told := 0, 0
	for i := 0; !groups[i%len(groups)].Full(); i++ {
		groups[i%len(groups)].Publish(&Published{Subject: []byte("s"), Payload: payload, Reply: []byte("r")})
		sent += len(payload)
	}
	if sent > LoadBytesMax || sent < LoadBytesMax/10*9 {
		t.Fatalf("%d bytes were taken, the bound is %d", sent, LoadBytesMax)
	}
	for i, g := range groups {
		if !g.Full() || g.Jammed() {
			t.Errorf("group %d: full %v, jammed %v", i, g.Full(), g.Jammed())
		}
	}
	groups[0].Propose(&command.Command{Kind: command.Tick}, func(*effect.Effect) { told++ })
	groups[0].Fail(ErrRetired)
	if groups[0].waitingBytes != 0 || groups[1].Full() || told != 1 {
		t.Errorf("after a group has ended: %d bytes of it, others full: %v, told %d times", groups[0].waitingBytes, groups[1].Full(), told)
	}
	groups[1].Retire()
	groups[2].Retire()
	if load.bytes != 0 {
		t.Errorf("%d bytes are left", load.bytes)
	}
}

// TestReadsAreAnsweredInTheirOrder lets reads ask for further reads while they are answered.
func TestReadsAreAnsweredInTheirOrder(t *testing.T) {
	r := &Replica{config: Config{Load: &Load{}}, leader: true, serving: true}
	var got []int
	r.Publish(&Published{Subject: []byte("s")})
	for i := range 3 {
		r.Read(func(ok bool) {
			got = append(got, i)
			if i == 1 {
				r.Read(func(bool) { got = append(got, 10+i) })
			}
		})
	}
	r.Publish(&Published{Subject: []byte("s")})
	r.runReads()
	if len(got) != 0 {
		t.Fatalf("reads %v were answered before what was proposed", got)
	}
	r.open = nil
	r.runReads()
	if want := []int{0, 1, 11, 2}; len(got) != 4 || got[0] != want[0] || got[1] != want[1] || got[3] != want[3] {
		t.Fatalf("answered in the order %v, want %v", got, want)
	}
}
