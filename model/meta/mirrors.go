package meta

import (
	"slices"

	"weir/model/jsapi"
	"weir/spec/assert"
)

// Mirrors returns the streams of the account that are mirrors of the one with the name, in the order of their creation.
func (m *Machine) Mirrors(account, name string) []*Stream {
	groups := m.mirrors[key{account, name}]
	if len(groups) == 0 {
		return nil
	}
	streams := make([]*Stream, len(groups))
	for i, group := range groups {
		streams[i] = m.byGroup[group]
	}
	return streams
}

// CheckOrigin holds a mirror against the stream that it copies, which need not exist, and has the configuration inherit what
// is inherited; strictly as in jsapi.StreamConfig.CheckOrigin. A mirror of itself, or of one that is a mirror of it in the
// end, would copy for ever.
func (m *Machine) CheckOrigin(account string, config *jsapi.StreamConfig, strictly bool) *jsapi.Error {
	if config.Mirror == nil {
		return nil
	}
	if origin := m.byName[key{account, config.Mirror.Name}]; origin != nil {
		if refused := config.CheckOrigin(origin.Config, strictly); refused != nil {
			return refused
		}
	}
	for at := config; at.Mirror != nil; {
		if at.Mirror.Name == config.Name {
			return jsapi.CodeStreamInvalidConfig.With("detected cycle")
		}
		next := m.byName[key{account, at.Mirror.Name}]
		if next == nil {
			break
		}
		at = next.Config
	}
	return nil
}

// enterMirror and leaveMirror keep the index of mirrors.
func (m *Machine) enterMirror(s *Stream) {
	if s.Config.Mirror == nil {
		return
	}
	id := key{s.Account, s.Config.Mirror.Name}
	at, found := slices.BinarySearch(m.mirrors[id], s.Group)
	assert.True(!found, "a mirror is entered once", s.Group)
	m.mirrors[id] = slices.Insert(m.mirrors[id], at, s.Group)
}

func (m *Machine) leaveMirror(s *Stream) {
	if s.Config.Mirror == nil {
		return
	}
	id := key{s.Account, s.Config.Mirror.Name}
	at, found := slices.BinarySearch(m.mirrors[id], s.Group)
	assert.True(found, "a mirror that leaves was entered", s.Group)
	if m.mirrors[id] = slices.Delete(m.mirrors[id], at, at+1); len(m.mirrors[id]) == 0 {
		delete(m.mirrors, id)
	}
}
