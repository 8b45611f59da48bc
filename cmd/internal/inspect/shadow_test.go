package inspect

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"weir/disk/osfs"
	"weir/disk/vfs"
)

// TestShadowBehavesLikeTheDiskAndChangesNothing carries out random operations on a shadow and on a plain slice.
func TestShadowBehavesLikeTheDiskAndChangesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	original := make([]byte, 3*pageBytes+123)
	for i := range original {
		original[i] = byte(r.Uint32())
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), original, 0o600); err != nil {
		t.Fatal(err)
	}
	s := testShadow(t, dir)
	f, err := s.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	twin := slices.Clone(original)
	for range 500 {
		at := r.IntN(len(twin) + pageBytes)
		switch r.IntN(4) {
		case 0:
			p := make([]byte, r.IntN(2*pageBytes))
			for i := range p {
				p[i] = byte(r.Uint32())
			}
			if _, err := f.WriteAt(p, int64(at)); err != nil {
				t.Fatal(err)
			}
			if need := at + len(p) - len(twin); need > 0 {
				twin = append(twin, make([]byte, need)...)
			}
			copy(twin[at:], p)
		case 1:
			if r.IntN(10) == 0 {
				if err := f.Truncate(int64(at)); err != nil {
					t.Fatal(err)
				}
				twin = slices.Clone(twin[:min(at, len(twin))])
				twin = append(twin, make([]byte, at-len(twin))...)
			}
		default:
			p := make([]byte, r.IntN(2*pageBytes))
			n, err := f.ReadAt(p, int64(at))
			want := twin[min(at, len(twin)):min(at+len(p), len(twin))]
			if string(p[:n]) != string(want) || (n < len(p)) != errors.Is(err, io.EOF) {
				t.Fatalf("read of %d bytes at %d of %d: %d bytes, %v", len(p), at, len(twin), n, err)
			}
		}
		if size, _ := f.Size(); size != int64(len(twin)) {
			t.Fatalf("size is %d, want %d", size, len(twin))
		}
	}
	if now, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(now) != string(original) {
		t.Errorf("the file on disk has changed: %v", err)
	}
}

func TestShadowNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := testShadow(t, dir)
	if _, err := s.Create("a"); !errors.Is(err, vfs.ErrExist) {
		t.Errorf("making a file that exists: %v", err)
	}
	_, err := s.Create("c")
	if err := errors.Join(err, s.Rename("a", "d"), s.Remove("b")); err != nil {
		t.Fatal(err)
	}
	if names, err := s.List("."); err != nil || !slices.Equal(names, []string{"c", "d"}) {
		t.Errorf("names are %v, %v", names, err)
	}
	if _, err := s.Open("a"); !errors.Is(err, vfs.ErrNotExist) {
		t.Errorf("opening a file that was renamed: %v", err)
	}
	if text, err := vfs.ReadFile(s, "d"); err != nil || string(text) != "a" {
		t.Errorf("the renamed file holds %q, %v", text, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
		t.Errorf("the directory on disk has changed: %v, %v", names, err)
	}
}

func testShadow(t *testing.T, dir string) *shadow {
	t.Helper()
	real, err := osfs.Existing(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := newShadow(real)
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
