package assert

import "testing"

func panicText(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = r.(Failure).Error()
		}
	}()
	f()
	return ""
}

func TestTrueThatHoldsDoesNotPanic(t *testing.T) {
	if got := panicText(func() { True(true, "1 <= 2", 1, 2) }); got != "" {
		t.Fatalf("a true assertion panicked: %s", got)
	}
}

func TestFailureNamesRelationAndNumbers(t *testing.T) {
	got := panicText(func() { True(false, "applied <= committed", 7, 5) })
	if want := "assertion failed: applied <= committed (7, 5)"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	got = panicText(func() { Unreachable("command kind", 99) })
	if want := "assertion failed: unreachable: command kind (99)"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestTrueDoesNotAllocate(t *testing.T) {
	n := uint64(1 << 40)
	if got := testing.AllocsPerRun(100, func() { True(n > 0, "n > 0", n, n+1) }); got != 0 {
		t.Fatalf("a true assertion allocates %v times", got)
	}
}
