package snapshot

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/disk/checkpoint"
	"weir/disk/record"
)

func encode(sections []checkpoint.Section) (part []byte, m Manifest) {
	var d Digest
	for _, s := range sections {
		sum := Sum(s.ID, s.Data)
		part = append(AppendHead(part, s.ID, len(s.Data), sum), s.Data...)
		d = d.Add(s.ID, len(s.Data), sum)
	}
	return part, Manifest{Index: 7, Term: 2, Sections: uint64(len(sections)), Bytes: uint64(len(part)), Digest: uint64(d)}
}

// decode reads part 0 in pieces of random sizes.
func decode(part []byte, m Manifest, rng *rand.Rand) ([]checkpoint.Section, error) {
	var r Reader
	var sections []checkpoint.Section
	var have []byte
	for {
		s, rest, ok, err := r.Next(have)
		if err != nil {
			return sections, err
		}
		if ok {
			sections, have = append(sections, s), rest
			continue
		}
		if len(part) == 0 {
			if len(have) > 0 {
				return sections, ErrCorrupt
			}
			return sections, r.Finish(&m)
		}
		n := 1 + rng.IntN(min(len(part), 40))
		have = append(slices.Clone(have), part[:n]...)
		part = part[n:]
	}
}

func randomSections(rng *rand.Rand) []checkpoint.Section {
	var sections []checkpoint.Section
	id := uint64(0)
	for range rng.IntN(9) {
		id += 1 + rng.Uint64N(1<<60)
		sections = append(sections, checkpoint.Section{ID: id, Data: bytes.Repeat([]byte{byte(id)}, rng.IntN(90))})
	}
	return sections
}

func equal(a, b []checkpoint.Section) bool {
	return slices.EqualFunc(a, b, func(a, b checkpoint.Section) bool { return a.ID == b.ID && bytes.Equal(a.Data, b.Data) })
}

func TestSectionsArriveAsTheyWereSent(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		sections := randomSections(rng)
		part, m := encode(sections)
		got, err := decode(part, m, rng)
		if err != nil || !equal(got, sections) {
			t.Fatalf("seed %d: %v, %v, want %v", seed, got, err, sections)
		}
	}
}

// TestChangedSectionsAreRefused changes a bit, leaves out, repeats or swaps sections.
func TestChangedSectionsAreRefused(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		sections := randomSections(rng)
		part, m := encode(sections)
		switch n := len(sections); {
		case n == 0:
			continue
		case rng.IntN(4) == 0:
			at := rng.IntN(n)
			part, _ = encode(slices.Delete(slices.Clone(sections), at, at+1))
		case rng.IntN(4) == 0 && n > 1:
			other := slices.Clone(sections)
			other[0], other[1] = other[1], other[0]
			part, _ = encode(other)
		case rng.IntN(4) == 0:
			other := slices.Clone(sections)
			other[rng.IntN(n)].Data = []byte("another content of the section")
			part, _ = encode(other)
		default:
			part[rng.IntN(len(part))] ^= 1 << rng.IntN(8)
		}
		if _, err := decode(part, m, rng); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("seed %d: got %v, want ErrCorrupt", seed, err)
		}
	}
}

func TestManifestOfAnotherVersionIsRefused(t *testing.T) {
	data := AppendManifest(nil, &Manifest{Index: 1})
	data[4]++
	sum := record.Checksum(0, data[4:])
	data[0], data[1], data[2], data[3] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
	if _, err := ParseManifest(data); !errors.Is(err, ErrVersion) {
		t.Fatalf("got %v, want ErrVersion", err)
	}
}

// FuzzManifest holds what is parsed against what is appended.
func FuzzManifest(f *testing.F) {
	f.Add(AppendManifest(nil, &Manifest{Index: 9, Term: 3, Sections: 2, Bytes: 40, Digest: 1 << 63, Blocks: 1}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(AppendManifest(nil, &m), data) {
			t.Fatalf("%+v does not give %x", m, data)
		}
	})
}

// FuzzSections reads arbitrary bytes; what is read must be what was given.
func FuzzSections(f *testing.F) {
	part, _ := encode([]checkpoint.Section{{ID: 1, Data: []byte("one")}, {ID: 1 << 62, Data: nil}})
	f.Add(part)
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Reader
		var sections []checkpoint.Section
		rest := data
		for {
			s, more, ok, err := r.Next(rest)
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			if err != nil || !ok {
				break
			}
			sections, rest = append(sections, s), more
		}
		if again, _ := encode(sections); !bytes.Equal(again, data[:len(data)-len(rest)]) {
			t.Fatalf("%v was read from %x", sections, data)
		}
	})
}
