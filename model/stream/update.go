package stream

import (
	"slices"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/spec/assert"
)

// putStream brings the configuration to a version of the catalog, and the stream to what it says. Older versions are
// ignored: the catalog may be asked to repeat itself.
func (m *Machine) putStream(c *command.Command) {
	if c.Version <= m.configVersion {
		m.result().N = m.configVersion
		return
	}
	config, err := jsapi.ParseStreamConfig(c.Config)
	assert.True(err == nil, "configuration of a stream in the log is well-formed", m.applied, uint64(len(c.Config)))
	assert.True(config.Storage == m.config.Storage, "storage type of a stream does not change", c.Version)
	perSubject := m.maxPerSubject()
	resubjected := !slices.Equal(config.Subjects, m.config.Subjects)
	// What is out of the old window stays forgotten when the new one is longer.
	m.dedup.forget(m.clock, int64(m.config.DuplicateWindow), DedupEntriesMax)
	m.setConfig(config, c.Version)
	if config.Mirror == nil {
		m.copied = Copied{}
	}
	if resubjected {
		m.subjectsChanged()
	}
	m.enforceAll(perSubject)
	if config.DuplicateWindow == 0 {
		m.dedup.clear()
	}
	updated := m.out.Add(effect.StreamUpdated)
	updated.Cmd, updated.N = m.batch.Cmd, c.Version
	m.result().N = c.Version
}
