package stream

import (
	"testing"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
)

func newMirror(t *testing.T) *Machine {
	t.Helper()
	config := unlimited()
	config.Name, config.Mirror = "M", &jsapi.StreamSource{Name: "O"}
	return New(Options{Account: "A", Name: "M", Config: &config, Incarnation: 3})
}

// TestHeadOfVersion1IsRead restores a head from before mirrors: it lacks what is copied.
func TestHeadOfVersion1IsRead(t *testing.T) {
	config := unlimited()
	config.Name, config.Subjects = "S", []string{"s"}
	options := Options{Account: "A", Name: "S", Config: &config, Incarnation: 3}
	m := New(options)
	var out effect.List
	m.Apply(1, command.AppendPublish(command.AppendHeader(nil, 5, 0), []byte("s"), nil, []byte("x")), &out)
	restored := New(options)
	for _, id := range m.Sections(nil) {
		data, _ := m.AppendSection(nil, id)
		data[0] = 1
		if id == headSection {
			const digestBytes, copiedBytes = 8, 2 // two zeros
			at := len(data) - digestBytes
			data = append(data[:at-copiedBytes:at-copiedBytes], data[at:]...)
		}
		if err := restored.RestoreSection(id, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := restored.Restored(); err != nil {
		t.Fatal(err)
	}
	if restored.Digest() != m.Digest() {
		t.Fatalf("digest %#x, want %#x", restored.Digest(), m.Digest())
	}
}

// TestWhatAMirrorCopiedComesBack restores the position of a mirror, which its digest covers.
func TestWhatAMirrorCopiedComesBack(t *testing.T) {
	m := newMirror(t)
	var out effect.List
	batch := command.AppendHeader(nil, 9, 0)
	for _, c := range []command.Command{
		{Kind: command.Follow, Version: 20, StreamSeq: 6},
		{Kind: command.Copy, Version: 20, From: 6, StreamSeq: 9, Time: 4, Subject: []byte("a")},
		{Kind: command.Copy, Version: 20, From: 9, StreamSeq: 12},
	} {
		batch = command.Append(batch, &c)
	}
	before := m.Digest()
	m.Apply(1, batch, &out)
	restored := copyOf(t, m, Plant{})
	want := Copied{Incarnation: 20, Through: 12}
	if restored.Copied() != want || m.Copied() != want || m.Digest() == before {
		t.Fatalf("copied %+v, restored %+v, digests %#x and %#x", m.Copied(), restored.Copied(), before, m.Digest())
	}
	m.copied.Through++
	if m.Digest() == restored.Digest() {
		t.Fatal("the digest does not cover what is copied")
	}
}

// TestScanLooksAtNoMoreThanItMay visits what matches, and says how far it looked.
func TestScanLooksAtNoMoreThanItMay(t *testing.T) {
	config := unlimited()
	config.Name, config.Subjects = "S", []string{"s.*"}
	m := New(Options{Account: "A", Name: "S", Config: &config})
	var out effect.List
	batch := command.AppendHeader(nil, 1, 0)
	for i := range 10 {
		batch = command.AppendPublish(batch, []byte{'s', '.', 'a' + byte(i%2)}, nil, nil)
	}
	batch = command.Append(batch, &command.Command{Kind: command.DeleteMsg, StreamSeq: 10})
	m.Apply(1, batch, &out)
	scan := func(filter string, seq uint64, limit, most int) (seqs []uint64, through uint64) {
		through = m.Scan(filter, seq, limit, func(known Meta) bool {
			if len(seqs) == most {
				return false
			}
			seqs = append(seqs, known.Seq)
			return true
		})
		return seqs, through
	}
	for _, c := range []struct {
		filter      string
		seq         uint64
		limit, most int
		count       int
		through     uint64
	}{
		{"", 1, 100, 100, 9, 10}, {"s.b", 1, 100, 100, 4, 10}, {"s.b", 1, 3, 100, 1, 3}, {"", 1, 100, 4, 4, 4}, {"s.b", 1, 100, 1, 1, 3},
		{"", 10, 100, 100, 0, 10}, {"", 11, 100, 100, 0, 10}, {"", 40, 100, 100, 0, 39}, {"s.none", 1, 2, 100, 0, 2},
	} {
		if seqs, through := scan(c.filter, c.seq, c.limit, c.most); len(seqs) != c.count || through != c.through {
			t.Errorf("scan %+v: %v through %d", c, seqs, through)
		}
	}
	for seq, want := range map[uint64]uint64{0: 9, 8: 1, 9: 0, 10: 0, 20: 0} { // order-free: each is asked on its own
		if got := m.Behind(seq); got != want {
			t.Errorf("%d are behind %d, want %d", got, seq, want)
		}
	}
}
