package world

import (
	"encoding/json"

	"weir/disk/wal"
)

// incarnations tells entries of streams apart whose groups have one number, which only a planted fault gives them: an entry
// must not get into the log of another stream than it was made for.
type incarnations struct {
	of      map[ledgerKey]int64  // when the stream was created that a log is of
	entries map[strayEntry]int64 // when the stream was created that an entry was made for
}

// strayEntry is what an entry is wherever it gets to.
type strayEntry struct {
	entryKey
	sum uint64
}

func newIncarnations() incarnations {
	return incarnations{map[ledgerKey]int64{}, map[strayEntry]int64{}}
}

// foreign checks what is on its way to the log of a hidden group.
func (m *machine) foreign(write *wal.Write) {
	all, key := &m.w.incarnations, ledgerKey{m.index, m.wipes, write.Group}
	if write.Meta != nil {
		var birth struct {
			Created int64 `json:"created"`
		}
		if json.Unmarshal(write.Meta, &birth) == nil {
			all.of[key] = birth.Created
		}
	}
	for i := range write.Entries {
		e := &write.Entries[i]
		if e.Type != 0 || len(e.Data) == 0 {
			continue // what it says may be the same in both
		}
		stray := strayEntry{entryKey{write.Group, e.Index, e.Term}, sumOf(e)}
		if made, known := all.entries[stray]; !known {
			all.entries[stray] = all.of[key]
		} else if made != all.of[key] {
			m.w.violate("entry-astray", "group %d on node %d: entry %d of term %d was made for the stream created at %d, and gets into the log of that created at %d",
				write.Group, m.index, e.Index, e.Term, made, all.of[key])
		}
	}
}
