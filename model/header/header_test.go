package header

import (
	"bytes"
	"strings"
	"testing"
)

const sample = "NATS/1.0\r\nA: 1\r\nNats-Msg-Id:  x y \r\na: low\r\nEmpty:\r\nA: 2\r\nTricky: Nats-Rollup: sub\r\n\r\n"

func TestGetFindsFirstFieldOfExactName(t *testing.T) {
	for name, want := range map[string]string{"A": "1", "a": "low", MsgID: "x y ", "Empty": "", "Tricky": "Nats-Rollup: sub"} {
		got := Get([]byte(sample), name)
		if got == nil || string(got) != want {
			t.Errorf("Get(%q) = %q, want %q", name, got, want)
		}
		if !Has([]byte(sample), name) {
			t.Errorf("Has(%q) = false", name)
		}
	}
	for _, name := range []string{"", "Nats-Msg", "nats-msg-id", "Msg-Id", "B", Rollup, "NATS/1.0"} {
		if got := Get([]byte(sample), name); got != nil {
			t.Errorf("Get(%q) = %q, want nil", name, got)
		}
	}
}

func TestGetDoesNotAllocate(t *testing.T) {
	hdr := []byte(sample)
	if n := testing.AllocsPerRun(100, func() { Get(hdr, MsgID); Has(hdr, Rollup) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestEditsKeepTheirInput(t *testing.T) {
	edits := map[string]func(hdr []byte) []byte{
		"NATS/1.0\r\nNats-Msg-Id:  x y \r\na: low\r\nEmpty:\r\nTricky: Nats-Rollup: sub\r\n\r\n":                                     func(h []byte) []byte { return Delete(h, "A") },
		"NATS/1.0\r\nA: 1\r\na: low\r\nEmpty:\r\nA: 2\r\nTricky: Nats-Rollup: sub\r\n\r\n":                                           func(h []byte) []byte { return DeletePrefix(h, "Nats-") },
		"NATS/1.0\r\nA: 1\r\nNats-Msg-Id:  x y \r\na: low\r\nA: 2\r\nTricky: Nats-Rollup: sub\r\nEmpty: full\r\n\r\n":                func(h []byte) []byte { return Set(h, "Empty", "full") },
		"NATS/1.0\r\nA: 1\r\nNats-Msg-Id:  x y \r\na: low\r\nEmpty:\r\nA: 2\r\nTricky: Nats-Rollup: sub\r\nNats-Rollup: all\r\n\r\n": func(h []byte) []byte { return Append(h, Rollup, RollupAll) },
		sample: StripStatus,
	}
	for want, edit := range edits { // order-free: the cases are independent
		hdr := []byte(sample)
		got := edit(hdr[:len(hdr):len(hdr)])
		if string(got) != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if string(hdr) != sample {
			t.Errorf("input changed to %q", hdr)
		}
		if !Valid(got) {
			t.Errorf("not valid: %q", got)
		}
	}
}

func TestDeletingTheLastFieldLeavesNoBlock(t *testing.T) {
	hdr := Append(nil, "A", "1")
	if got := Delete(hdr, "A"); got != nil {
		t.Errorf("Delete: %q", got)
	}
	if got := DeletePrefix(hdr, ""); got != nil {
		t.Errorf("DeletePrefix: %q", got)
	}
	if got := StripStatus(AppendBlock(nil, 503, "")); got != nil {
		t.Errorf("StripStatus: %q", got)
	}
	if got := Delete(hdr, "B"); &got[0] != &hdr[0] {
		t.Error("Delete of an absent field copied the block")
	}
}

func TestStatusBlocks(t *testing.T) {
	hdr := AppendStatusStart(nil, 408, "Request Timeout")
	hdr = AppendEnd(AppendUintField(hdr, PendingMessages, 18446744073709551615))
	want := "NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 18446744073709551615\r\n\r\n"
	if string(hdr) != want || !Valid(hdr) {
		t.Fatalf("%q", hdr)
	}
	if code, text := Status(hdr); string(code) != "408" || string(text) != "Request Timeout" {
		t.Fatalf("status %q %q", code, text)
	}
	if got := StripStatus(hdr); string(got) != strings.Replace(want, " 408 Request Timeout", "", 1) {
		t.Fatalf("stripped %q", got)
	}
	if got := AppendBlock(nil, 503, ""); string(got) != "NATS/1.0 503\r\n\r\n" {
		t.Fatalf("block %q", got)
	}
	if code, text := Status([]byte(sample)); code != nil || text != nil {
		t.Fatalf("status of a plain block: %q %q", code, text)
	}
}

func TestValidRefusesMalformedBlocks(t *testing.T) {
	for _, good := range []string{"NATS/1.0\r\n\r\n", sample, "NATS/1.0 100\r\n\r\n", "NATS/1.0 100 Idle Heartbeat\r\nA:\r\n\r\n"} {
		if !Valid([]byte(good)) {
			t.Errorf("refused %q", good)
		}
	}
	for _, bad := range []string{"", "NATS/1.0", "NATS/1.0\r\n", "NATS/1.0\r\nA: 1\r\n", "NATS/1.1\r\n\r\n", "NATS/1.0 50\r\n\r\n",
		"NATS/1.0 5033\r\n\r\n", "NATS/1.0x\r\n\r\n", "NATS/1.0\r\n\r\nA: 1\r\n\r\n", "NATS/1.0\r\nA\r\n\r\n", "NATS/1.0\r\n: v\r\n\r\n",
		"NATS/1.0\r\nA : v\r\n\r\n", "NATS/1.0\nA: v\r\n\r\n"} {
		if Valid([]byte(bad)) {
			t.Errorf("accepted %q", bad)
		}
	}
}

// naiveFields splits a block by its line ends, as the format's description does.
func naiveFields(hdr []byte) (names, values []string) {
	lines := strings.Split(string(hdr), "\r\n")
	for _, line := range lines[1:] {
		if name, value, ok := strings.Cut(line, ":"); ok {
			names, values = append(names, name), append(values, strings.TrimLeft(value, " "))
		}
	}
	return names, values
}

func FuzzBlock(f *testing.F) {
	f.Add([]byte(sample), "A")
	f.Add([]byte("NATS/1.0 503\r\n\r\n"), "Nats-")
	f.Add([]byte("NATS/1.0\r\nA: 1\r\nA"), "A")
	f.Add([]byte("x\r\n"), "\r\n")
	f.Fuzz(func(t *testing.T, hdr []byte, name string) {
		before := bytes.Clone(hdr)
		deleted, pruned, stripped := Delete(hdr, name), DeletePrefix(hdr, name), StripStatus(hdr)
		set := Set(hdr, "Added", "v")
		if !bytes.Equal(before, hdr) {
			t.Fatalf("input changed from %q to %q", before, hdr)
		}
		if Has(deleted, name) {
			t.Fatalf("%q still in %q", name, deleted)
		}
		if !Valid(hdr) {
			return
		}
		names, values := naiveFields(hdr)
		i := 0
		for gotName, gotValue := range Fields(hdr) {
			if string(gotName) != names[i] || string(gotValue) != values[i] {
				t.Fatalf("field %d is %q: %q, want %q: %q", i, gotName, gotValue, names[i], values[i])
			}
			if i == 0 && string(Get(hdr, names[0])) != values[0] {
				t.Fatalf("Get(%q) = %q in %q", names[0], Get(hdr, names[0]), hdr)
			}
			i++
		}
		if i != len(names) {
			t.Fatalf("%d fields, want %d", i, len(names))
		}
		if string(Get(set, "Added")) != "v" {
			t.Fatalf("Set lost the field: %q", set)
		}
		for _, block := range [][]byte{deleted, pruned, stripped, set} {
			if block != nil && !Valid(block) {
				t.Fatalf("edit of %q is not valid: %q", hdr, block)
			}
		}
	})
}
