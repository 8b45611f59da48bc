package msgstore

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"weir/disk/memfs"
)

// stateOf returns what a checkpoint would say of a block.
func stateOf(t *testing.T, x *Index, id BlockID) BlockState {
	t.Helper()
	for _, b := range x.blocks {
		if b.id == id {
			s, err := decodeBlockState(StateSection{ID: uint64(id), Data: b.appendState(nil)})
			must(t, err)
			return s
		}
	}
	t.Fatalf("block %d is not in the index", id)
	return BlockState{}
}

// filled returns files with the messages of some sequences, all of one size, in one block that was copied from another, so
// that it lists its sequences.
func filled(t *testing.T, seqs []uint64) (*Files, *Index, BlockID) {
	t.Helper()
	files := NewFiles(memfs.New(memfs.Options{}), "s", Plant{})
	x := NewIndex(IndexOptions{BlockBytes: 1 << 20})
	rng := rand.New(rand.NewPCG(1, 1))
	for seq := uint64(1); seq <= 300; seq++ {
		m := message(rng, seq)
		m.Subject, m.Header, m.Payload = []byte("s"), nil, bytes.Repeat([]byte{byte(seq)}, 50)
		x.Append(m)
	}
	x.seal(x.blocks[0])
	for seq := uint64(1); seq <= 300; seq++ {
		if !contains(seqs, seq) {
			x.Forget(seq)
		}
	}
	must(t, files.Write(x.TakeWrites(nil)))
	order, ok := x.TakeRewrite()
	if !ok {
		t.Fatal("nothing to copy")
	}
	done, err := files.Rewrite(&order)
	must(t, err)
	x.Rewritten(done)
	must(t, files.Sync())
	return files, x, order.To
}

func contains(seqs []uint64, seq uint64) bool {
	for _, s := range seqs {
		if s == seq {
			return true
		}
	}
	return false
}

// TestBlockWithOtherMessagesDoesNotSuit compares blocks of one id, size, first and last sequence and number of messages.
func TestBlockWithOtherMessagesDoesNotSuit(t *testing.T) {
	one, x, id := filled(t, []uint64{3, 50, 299})
	_, other, otherID := filled(t, []uint64{3, 60, 299})
	if id != otherID {
		t.Fatalf("blocks %d and %d", id, otherID)
	}
	same, different := stateOf(t, x, id), stateOf(t, other, id)
	if same.First != different.First || same.Last != different.Last || same.Size != different.Size || !same.Sparse {
		t.Fatalf("%+v and %+v", same, different)
	}
	for _, whole := range []bool{false, true} {
		if ok, _, err := one.Suits(&same, whole); !ok || err != nil {
			t.Errorf("whole %t: the block itself does not suit: %v", whole, err)
		}
		if ok, _, _ := one.Suits(&different, whole); ok {
			t.Errorf("whole %t: a block with another message suits", whole)
		}
	}
}

// TestSuitingBlockIsWhole spoils every byte of a block: one that was read whole and suits still gives every message.
func TestSuitingBlockIsWhole(t *testing.T) {
	files, x, id := filled(t, []uint64{3, 50, 299})
	state := stateOf(t, x, id)
	clean := files.fs.(*memfs.FS)
	for off := range state.Length() {
		fs := clean.Crash(memfs.KeepAll, 1)
		must(t, fs.Damage("s/"+FileName(id), memfs.RotBit, off))
		spoiled := NewFiles(fs, "s", Plant{})
		ok, _, err := spoiled.Suits(&state, true)
		must(t, err)
		order, _ := x.TakeScrub(0)
		scrubbed := spoiled.Scrub(&order)
		if scrubbed != nil && !errors.Is(scrubbed, ErrCorrupt) || ok && scrubbed != nil {
			t.Fatalf("damage at %d: suits %t, scrub %v", off, ok, scrubbed)
		}
		for _, seq := range []uint64{3, 50, 299} {
			loc, _ := x.Lookup(seq)
			if _, err := spoiled.Read(loc); (ok || scrubbed == nil) && err != nil {
				t.Fatalf("damage at %d: suits %t, scrub %v, message %d: %v", off, ok, scrubbed, seq, err)
			}
		}
	}
}

// TestScrubLooksAtWhatIsWritten spoils a message of a block that still grows: it is found, and what is not written yet is
// not missed.
func TestScrubLooksAtWhatIsWritten(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	files := NewFiles(fs, "s", Plant{})
	x := NewIndex(IndexOptions{BlockBytes: 4096})
	if order, ok := x.TakeScrub(0); ok {
		t.Fatalf("an empty index orders %+v", order)
	}
	fill := func(seq uint64) {
		x.Append(Msg{Seq: seq, Subject: []byte("s"), Payload: bytes.Repeat([]byte{byte(seq)}, 50)})
	}
	fill(1)
	if order, ok := x.TakeScrub(0); ok {
		t.Fatalf("nothing is written, and it orders %+v", order)
	}
	fill(2)
	must(t, files.Write(x.TakeWrites(nil)))
	fill(3)
	order, ok := x.TakeScrub(0)
	if !ok {
		t.Fatal("a block that grows is not verified")
	}
	must(t, files.Scrub(&order))
	loc, _ := x.Lookup(2)
	must(t, files.Sync())
	must(t, fs.Damage("s/"+FileName(loc.Block), memfs.RotBit, int64(loc.Offset)+40))
	if err := files.Scrub(&order); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("the damage was not found: %v", err)
	}
}

// TestEraseClearsBothPlaces erases a message just after a block was copied, by its old place and by its new one.
func TestEraseClearsBothPlaces(t *testing.T) {
	secret := bytes.Repeat([]byte{50}, 50)
	for _, old := range []bool{true, false} {
		files := NewFiles(memfs.New(memfs.Options{}), "s", Plant{})
		x := NewIndex(IndexOptions{BlockBytes: 4096})
		for seq := uint64(1); seq <= 100; seq++ {
			x.Append(Msg{Seq: seq, Subject: []byte("s"), Payload: bytes.Repeat([]byte{byte(seq)}, 50)})
		}
		for seq := uint64(1); seq <= 45; seq++ {
			if seq%10 != 0 {
				x.Forget(seq)
			}
		}
		x.Forget(51)
		for seq := uint64(52); seq <= 90; seq++ {
			x.Forget(seq)
		}
		must(t, files.Write(x.TakeWrites(nil)))
		loc, _ := x.Lookup(50)
		order, ok := x.TakeRewrite()
		if !ok {
			t.Fatal("nothing to copy")
		}
		done, err := files.Rewrite(&order)
		must(t, err)
		if !old {
			x.Rewritten(done)
			loc, _ = x.Lookup(50)
		}
		must(t, files.Erase(loc))
		must(t, files.Sync())
		for _, id := range []BlockID{done.To, order.From[0].Block} {
			data, err := readWhole(files, id)
			must(t, err)
			if bytes.Contains(data, secret) {
				t.Errorf("old place %t: block %d still holds the message", old, id)
			}
		}
	}
}

func readWhole(f *Files, id BlockID) ([]byte, error) {
	file, err := f.file(id)
	if err != nil {
		return nil, err
	}
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	return data, f.ReadRange(id, 0, data)
}
