package wal

// windowBytes is how far back an append frame speaks for the groups: a damaged page behind which appends follow is
// explained by the first of them, however many small appends the page held.
const windowBytes = 2 * pageBytes

// recent lists what the newest appends of the current segment wrote.
type recent struct {
	list []recentWrite // ascending by append; all writes of the appends from list[0].at on
}

// recentWrite says that the append at an offset wrote a record of a group.
type recentWrite struct {
	at     int64
	id     GroupID
	number uint64
}

func (r *recent) add(w recentWrite) { r.list = append(r.list, w) }

func (r *recent) reset() { r.list = r.list[:0] }

// prune forgets the appends that are not needed to cover the window before the offset.
func (r *recent) prune(off int64) {
	n := 0
	for i := range r.list {
		if r.list[i].at > off-windowBytes {
			break
		}
		if r.list[i].at != r.list[n].at {
			n = i
		}
	}
	if n > 0 {
		r.list = append(r.list[:0], r.list[n:]...)
	}
}

// info fills what an append frame says about the writes before it: the newest record of each group in the window.
func (l *Log) info(at int64) appendInfo {
	l.recent.prune(at)
	info := appendInfo{synced: l.synced, since: at, created: l.created, groups: l.listed[:0]}
	l.stamp++
	for i := len(l.recent.list) - 1; i >= 0; i-- {
		w := l.recent.list[i]
		info.since = w.at
		if g := l.groups[w.id]; g != nil {
			if g.stamp == l.stamp {
				continue
			}
			g.stamp = l.stamp
		}
		info.groups = append(info.groups, listedGroup{w.id, w.number})
	}
	l.listed = info.groups
	return info
}
