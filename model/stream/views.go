package stream

import (
	"slices"
	"strings"

	"weir/model/seqset"
	"weir/model/subject"
	"weir/spec/assert"
)

// A view is the ordered set of the messages that a list of subject filters selects. Consumers with equal filters share
// one. With it the next match, the number of matches and their ranks are exact and logarithmic, whatever else the stream
// holds.
type view struct {
	key     string
	filters []string
	// kind says where the sequences are.
	kind viewKind
	// own are the sequences of a view of kind ownSet.
	own seqset.Set
	// users counts who holds the view; members are the consumers among them, in order of their incarnations.
	users   int
	members []*entry
}

type viewKind uint8

const (
	// wholeStream: the filters select every message, the live set of the stream serves.
	wholeStream viewKind = iota
	// oneSubject: the only filter is literal, the set of the subject serves.
	oneSubject
	// ownSet: the view keeps its own set.
	ownSet
)

// views are the views in use.
type views struct {
	byKey map[string]*view
	// whole are the views of kind wholeStream, in order of their creation.
	whole []*view
	// routes finds the other views that a subject belongs to. A view appears once for each filter that matches.
	routes *subject.Sublist[*view]
	// routed is the last result of routes without repetitions: that of routedText at routedVersion.
	routed        []*view
	routedText    string
	routedVersion uint64
	scratch       []byte
}

func newViews() views {
	return views{byKey: make(map[string]*view), routes: subject.NewSublist[*view]()}
}

// acquireView returns the view of the filters, building it when nobody uses it yet: then the cost is that of the
// messages it selects. Each acquire needs a release.
func (m *Machine) acquireView(filters []string) *view {
	vs := &m.consumers.views
	key := strings.Join(filters, " ")
	v := vs.byKey[key]
	if v == nil {
		v = &view{key: key, filters: filters}
		m.buildView(v)
		vs.byKey[key] = v
	}
	v.users++
	return v
}

func (m *Machine) releaseView(v *view) {
	assert.True(v.users > 0, "released view has users", uint64(v.users))
	v.users--
	if v.users > 0 {
		return
	}
	assert.True(len(v.members) == 0, "view without users has no members", uint64(len(v.members)))
	m.dropView(v)
	delete(m.consumers.views.byKey, v.key)
}

// join and leave keep the members of a view, which hear of its messages.
func (v *view) join(e *entry) {
	at, found := slices.BinarySearchFunc(v.members, e, (*entry).compare)
	assert.True(!found, "consumer joins a view once", e.id)
	v.members = slices.Insert(v.members, at, e)
}

func (v *view) leave(e *entry) {
	at, found := slices.BinarySearchFunc(v.members, e, (*entry).compare)
	assert.True(found, "leaving consumer is a member", e.id)
	v.members = slices.Delete(v.members, at, at+1)
}

// buildView decides where the sequences of the view come from, and collects them if need be.
func (m *Machine) buildView(v *view) {
	vs := &m.consumers.views
	v.kind = m.viewKind(v.filters)
	if v.kind == wholeStream {
		vs.whole = append(vs.whole, v)
		return
	}
	for _, filter := range v.filters {
		vs.routes.Insert(filter, v)
	}
	if v.kind == ownSet {
		m.collect(v.filters, &v.own)
	}
}

// dropView undoes buildView.
func (m *Machine) dropView(v *view) {
	vs := &m.consumers.views
	if v.kind == wholeStream {
		vs.whole = slices.Delete(vs.whole, slices.Index(vs.whole, v), slices.Index(vs.whole, v)+1)
		return
	}
	for _, filter := range v.filters {
		removed := vs.routes.Remove(filter, v)
		assert.True(removed, "route of a view exists")
	}
	v.own.Clear()
}

// collect adds the sequences that the filters select.
func (m *Machine) collect(filters []string, into *seqset.Set) {
	for _, filter := range filters {
		m.log.subjects.match(filter, func(_ uint32, row *subjectRow) bool {
			row.seqs.Ranges(func(first, last uint64) bool {
				into.AddRange(first, last)
				return true
			})
			return true
		})
	}
}

func (m *Machine) viewKind(filters []string) viewKind {
	if len(filters) == 0 {
		return wholeStream
	}
	for _, filter := range filters {
		if m.selectsAll(filter) {
			return wholeStream
		}
	}
	if len(filters) == 1 && !subject.HasWildcard(filters[0]) {
		return oneSubject
	}
	return ownSet
}

// selectsAll reports whether it is certain that every message of the stream, present and future, matches the filter.
func (m *Machine) selectsAll(filter string) bool {
	if filter == ">" {
		return true
	}
	if m.strays || !subject.Valid(filter) {
		return false
	}
	for _, pattern := range m.config.Subjects {
		if !subject.Subset(pattern, filter) {
			return false
		}
	}
	return len(m.config.Subjects) > 0
}

// subjectsChanged looks for messages under subjects that the stream has given up. The cost is that of the subjects.
func (m *Machine) subjectsChanged() {
	m.strays = m.findStrays()
	m.recheckViews()
}

// recheckViews rebuilds the views that selected every message and no longer do.
func (m *Machine) recheckViews() {
	for _, v := range slices.Clone(m.consumers.views.whole) {
		if m.viewKind(v.filters) != wholeStream {
			m.dropView(v)
			m.buildView(v)
		}
	}
}

func (m *Machine) findStrays() bool {
	for _, chunk := range m.log.subjects.chunks {
		for i := range chunk {
			if text := chunk[i].text; text != "" && !m.patterns.HasMatch([]byte(text)) {
				return true
			}
		}
	}
	return false
}

// viewSet returns the sequences of the view.
func (m *Machine) viewSet(v *view) *seqset.Set {
	switch v.kind {
	case wholeStream:
		return &m.log.live
	case ownSet:
		return &v.own
	case oneSubject:
		if id := m.log.subjects.find([]byte(v.filters[0])); id != noSubject {
			return &m.log.subjects.row(id).seqs
		}
		return new(seqset.Set)
	default:
		assert.Unreachable("kind of a view", uint64(v.kind))
		return nil
	}
}

// route returns the views, apart from those of the whole stream, that select the subject. The result is valid until
// the next call.
func (vs *views) route(text string) []*view {
	if vs.routes.Len() == 0 {
		return nil
	}
	if vs.routedVersion == vs.routes.Version() && vs.routedText == text {
		return vs.routed
	}
	vs.scratch = append(vs.scratch[:0], text...)
	matched := vs.routes.Match(vs.scratch, vs.routed[:0])
	unique := matched[:0]
	for _, v := range matched {
		if !slices.Contains(unique, v) {
			unique = append(unique, v)
		}
	}
	vs.routed, vs.routedText, vs.routedVersion = unique, text, vs.routes.Version()
	return unique
}
