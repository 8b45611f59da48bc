package vfs

import (
	"errors"
	"testing"
)

func TestNamesCannotLeaveTheRoot(t *testing.T) {
	for _, name := range []string{"", "/a", "..", "a/../b", "../a", "a//b", "a/", "./a"} {
		if err := CheckName(name); !errors.Is(err, ErrName) {
			t.Errorf("CheckName(%q) = %v, want ErrName", name, err)
		}
	}
	for _, name := range []string{".", "a", "a/b.c", "wal/0000.seg"} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v, want nil", name, err)
		}
	}
}
