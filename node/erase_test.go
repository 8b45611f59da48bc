package node_test

import (
	"bytes"
	"strings"
	"testing"

	"weir/disk/vfs"
	"weir/node/engine"
)

// blocksHold reports whether the message blocks of the first stream hold the text.
func (r *rig) blocksHold(text string) bool {
	r.t.Helper()
	const dir = "data/groups/10/msgs"
	names, err := r.disk.List(dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range names {
		data, err := vfs.ReadFile(r.disk, dir+"/"+name)
		if err != nil {
			r.t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}

func TestDeletedMessageIsOverwrittenUnlessItNeedNotBe(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	r.pub(1, "$JS.API.STREAM.CREATE.S", "in.x", `{"name":"S","subjects":["s.*"]}`)
	for _, body := range []string{"secret one", "secret two", "plain three"} {
		r.pub(1, "s.a", "in.x", body)
	}
	r.pub(1, "s.b", "in.x", strings.Repeat("x", engine.KeepBytesMin)) // so much that it is written at once
	for _, text := range []string{"secret one", "secret two", "plain three"} {
		if !r.blocksHold(text) {
			t.Fatalf("%q is not stored", text)
		}
	}
	r.read(1)
	r.pub(1, "$JS.API.STREAM.MSG.DELETE.S", "in.x", `{"seq":1}`)
	r.pub(1, "$JS.API.STREAM.MSG.DELETE.S", "in.x", `{"seq":2,"no_erase":true}`)
	if got := r.read(1); strings.Count(got, `"success":true`) != 2 {
		t.Fatalf("delete: %s", got)
	}
	if r.blocksHold("secret one") || !r.blocksHold("secret two") || !r.blocksHold("plain three") {
		t.Errorf("after the deletes: one %v, two %v, three %v", r.blocksHold("secret one"), r.blocksHold("secret two"),
			r.blocksHold("plain three"))
	}
	r.restart()
	if r.blocksHold("secret one") {
		t.Error("the restart laid the deleted message out again and did not overwrite it")
	}
	r.open(2, `"headers":true`)
	r.send(2, "SUB in.> 1\r\n")
	r.pub(2, "$JS.API.STREAM.MSG.GET.S", "in.x", `{"seq":3}`)
	r.pub(2, "$JS.API.STREAM.MSG.GET.S", "in.y", `{"seq":1}`)
	if got := r.read(2); !strings.Contains(got, "cGxhaW4gdGhyZWU=") || !strings.Contains(got, `"err_code":10037`) {
		t.Errorf("after the restart: %s", got)
	}
}
