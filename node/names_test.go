package node_test

import (
	"strings"
	"testing"
)

// TestNamesAreFilteredByOverlap lists the streams that may hold a subject.
func TestNamesAreFilteredByOverlap(t *testing.T) {
	r := newRig(t, nil)
	r.open(1, `"headers":true`)
	r.send(1, "SUB in.> 1\r\n")
	for name, subjects := range map[string]string{"ONE": `"a.b"`, "STAR": `"c.*"`, "ALL": `"d.>"`, "MANY": `"e","f.*.g"`} {
		r.pub(1, "$JS.API.STREAM.CREATE."+name, "in.x", `{"name":"`+name+`","subjects":[`+subjects+`]}`)
	}
	r.read(1)
	for filter, want := range map[string]string{
		"a.b": `"ONE"`, "a.*": `"ONE"`, "a.>": `"ONE"`, "*.b": `"ALL","ONE","STAR"`, "c.x": `"STAR"`, "c.x.y": "", "d.x.y": `"ALL"`,
		"d": "", "e": `"MANY"`, "f.*.*": `"MANY"`, "f.x.h": "", ">": `"ALL","MANY","ONE","STAR"`, "A.b": "",
	} {
		r.pub(1, "$JS.API.STREAM.NAMES", "in.x", `{"subject":"`+filter+`"}`)
		if got := r.read(1); !strings.Contains(got, `"streams":[`+want+`]`) && (want != "" || !strings.Contains(got, `"streams":null`)) {
			t.Errorf("filter %s: want %s: %s", filter, want, got)
		}
	}
}
