package stream

import (
	"errors"
	"fmt"
	"slices"

	"weir/model/consumer"
	"weir/model/fields"
	"weir/model/jsapi"
	"weir/model/subject"
	"weir/spec/assert"
)

// ErrMalformed is returned for sections that no machine of this version wrote, or that do not belong together. They come
// from checksummed checkpoints and verified transfers, so that it means a defect or damage; the machine is unusable.
var ErrMalformed = errors.New("malformed stream section")

// restoring is what Restored needs of the sections that RestoreSection read.
type restoring struct {
	hasHead bool
	// The totals of the head, to be compared with those of the parts.
	count, bytes, digest  uint64
	dedupFirst, dedupNext uint64
	consumerCount         uint64
	consumers             []restoredConsumer
	dedup                 map[uint64]restoredWindow
}

// restoredWindow is one chunk of the duplicate window, from the ordinal first on.
type restoredWindow struct {
	first   uint64
	entries []dedupEntry
}

type restoredConsumer struct {
	id   uint64
	data []byte
}

// RestoreSection reads a section into a machine that has not applied anything. Sections may come in any order; Restored
// has to follow the last. data is not kept.
func (m *Machine) RestoreSection(id uint64, data []byte) error {
	assert.True(m.applied == 0 || m.restoring != nil, "sections are restored into a new machine", m.applied)
	if m.restoring == nil {
		m.restoring = &restoring{dedup: make(map[uint64]restoredWindow)}
	}
	r := fields.NewReader(data)
	version := r.Byte()
	if version < sectionVersionFirst || version > sectionVersion {
		return fmt.Errorf("%w: section %#x has an unknown version", ErrMalformed, id)
	}
	var err error
	switch chunk := id & sectionChunkMask; id &^ sectionChunkMask {
	case headSection:
		if chunk != 0 {
			r.Fail()
		}
		err = m.restoreHead(&r, version)
	case rowSection:
		m.restoreRows(&r, chunk)
	case liveSection:
		m.restoreLive(&r, chunk)
	case subjectSection:
		m.restoreSubjects(&r, chunk)
	case dedupSection:
		m.restoreDedup(&r, chunk)
	case consumerSection:
		m.restoring.consumers = append(m.restoring.consumers, restoredConsumer{id: chunk, data: append([]byte(nil), r.Rest()...)})
	default:
		r.Fail()
	}
	if err != nil {
		return fmt.Errorf("restore section %#x: %w", id, err)
	}
	if !r.Done() {
		return fmt.Errorf("%w: section %#x of %d bytes, %d are left", ErrMalformed, id, len(data), r.Len())
	}
	return nil
}

func (m *Machine) restoreHead(r *fields.Reader, form byte) error {
	m.applied, m.clock = r.Uvarint(), r.Varint()
	account, name := string(r.Bytes()), string(r.Bytes())
	incarnation := r.Uvarint()
	m.created = r.Varint()
	if account != m.account || name != m.name || incarnation != m.incarnation {
		return fmt.Errorf("%w: it belongs to incarnation %d of %q in %q", ErrMalformed, incarnation, name, account)
	}
	version := r.Uvarint()
	config, err := jsapi.ParseStreamConfig(r.Bytes())
	if err != nil {
		return fmt.Errorf("restore stream %q: %w", name, err)
	}
	if m.restoring.hasHead || slices.ContainsFunc(config.Subjects, func(s string) bool { return !subject.Valid(s) }) {
		return fmt.Errorf("%w: second head, or a configuration with invalid subjects", ErrMalformed)
	}
	m.log.fileSizes = config.Storage == jsapi.FileStorage
	m.setConfig(config, version)
	m.strays = r.Bool()
	m.log.first, m.log.last, m.log.lastTime = r.Uvarint(), r.Uvarint(), r.Varint()
	t := m.restoring
	t.count, t.bytes = r.Uvarint(), r.Uvarint()
	m.lastMsgID = string(r.Bytes())
	t.dedupFirst, t.dedupNext = r.Uvarint(), r.Uvarint()
	m.consumers.lastID, t.consumerCount = r.Uvarint(), r.Uvarint()
	if form > sectionVersionFirst {
		m.copied = Copied{Incarnation: r.Uvarint(), Through: r.Uvarint()}
	}
	t.digest = r.Fixed64()
	t.hasHead = true
	return nil
}

func (m *Machine) restoreRows(r *fields.Reader, number uint64) {
	count := r.Uvarint()
	if r.Failed() || count == 0 || count > pageRows || m.log.pages.pages[number] != nil {
		r.Fail()
		return
	}
	capacity := count
	if number > 0 {
		capacity = pageRows
	}
	p := &page{rows: make([]row, count, capacity)}
	before := int64(0)
	for i := range p.rows {
		time := before + r.Varint()
		subjectID, size := r.Uvarint(), r.Uvarint()
		if subjectID >= uint64(noSubject) || size>>1 >= sizeHasHeader {
			r.Fail()
			return
		}
		p.rows[i] = row{time: time, subject: uint32(subjectID), size: uint32(size >> 1)}
		if size&1 != 0 {
			p.rows[i].size |= sizeHasHeader
		}
		before = time
	}
	m.log.pages.pages[number] = p
}

func (m *Machine) restoreSubjects(r *fields.Reader, chunk uint64) {
	table := &m.log.subjects
	count, index := r.Uvarint(), uint64(0)
	for range count {
		step := r.Uvarint()
		index += step
		text := r.Bytes()
		id := chunk*subjectChunk + index
		if r.Failed() || step >= subjectChunk || index >= subjectChunk || id >= uint64(noSubject) || len(text) == 0 ||
			table.taken(uint32(id)) {
			r.Fail()
			return
		}
		before := table.index.Len()
		table.place(uint32(id), string(text))
		if table.index.Len() == before {
			r.Fail()
			return
		}
		table.next = max(table.next, uint32(id)+1)
	}
}

// taken reports whether the id has a subject.
func (t *subjectTable) taken(id uint32) bool {
	return int(id/subjectChunk) < len(t.chunks) && t.row(id).text != ""
}

func (m *Machine) restoreDedup(r *fields.Reader, chunk uint64) {
	first, count := r.Uvarint(), r.Uvarint()
	if r.Failed() || first/dedupChunk != chunk || count == 0 || count > dedupChunk-first%dedupChunk {
		r.Fail()
		return
	}
	entries := make([]dedupEntry, count)
	before := int64(0)
	for i := range entries {
		e := &entries[i]
		copy(e.key[:], r.Take(uint64(len(e.key))))
		e.seq, e.time = r.Uvarint(), before+r.Varint()
		before = e.time
	}
	m.restoring.dedup[chunk] = restoredWindow{first: first, entries: entries}
}

// Restored checks that the sections belong together and builds what follows from them. After an error the machine is
// unusable. Without any section the machine stays empty.
func (m *Machine) Restored() error {
	t := m.restoring
	if t == nil {
		return nil
	}
	if !t.hasHead {
		return fmt.Errorf("%w: there is no head", ErrMalformed)
	}
	steps := []func(*restoring) error{m.restoreIndexes, m.restoreWindow, m.restoreConsumers}
	for _, step := range steps {
		if err := step(t); err != nil {
			return err
		}
	}
	m.restoring = nil
	m.dirty.reset()
	if digest := m.Digest(); digest != t.digest && !m.plant.LoseDedup {
		return fmt.Errorf("%w: digest %#x, the head has %#x", ErrMalformed, digest, t.digest)
	}
	m.restored = true
	return nil
}

// restoreWindow rebuilds the duplicate window from its chunks. The ring may have moved on in its first chunk since that
// was written: only the bounds of the head count.
func (m *Machine) restoreWindow(t *restoring) error {
	d := &m.dedup
	d.first, d.next = t.dedupFirst, t.dedupFirst
	if m.plant.LoseDedup {
		d.first, d.next = t.dedupNext, t.dedupNext
		return nil
	}
	for d.next < t.dedupNext {
		chunk := t.dedup[d.next/dedupChunk]
		end := min(chunk.first+uint64(len(chunk.entries)), t.dedupNext)
		if d.next < chunk.first || d.next >= end {
			return fmt.Errorf("%w: message id %d is missing", ErrMalformed, d.next)
		}
		for _, entry := range chunk.entries[d.next-chunk.first : end-chunk.first] {
			d.put(entry)
		}
	}
	return nil
}

func (m *Machine) restoreConsumers(t *restoring) error {
	if uint64(len(t.consumers)) != t.consumerCount {
		return fmt.Errorf("%w: %d consumers, the head has %d", ErrMalformed, len(t.consumers), t.consumerCount)
	}
	for _, c := range t.consumers {
		if len(c.data) == 0 {
			return fmt.Errorf("%w: consumer %d is empty", ErrMalformed, c.id)
		}
		e := &entry{machine: m, id: c.id, refiltered: c.data[0] != 0}
		state, err := consumer.RestoreState(c.data[1:], e, m.consumerOptions())
		if err != nil {
			return fmt.Errorf("restore consumer %d: %w", c.id, err)
		}
		e.state, e.name = state, state.Name()
		if state.ID() != c.id || c.id > m.consumers.lastID || m.consumers.findName(e.name) != nil || m.consumers.find(c.id) != nil {
			return fmt.Errorf("%w: consumer %d is %d, of %d", ErrMalformed, c.id, state.ID(), m.consumers.lastID)
		}
		if slices.ContainsFunc(state.Filters(), func(s string) bool { return !subject.Valid(s) }) {
			return fmt.Errorf("%w: consumer %d has invalid filters", ErrMalformed, c.id)
		}
		e.configHash = hashText(state.Config().AppendJSON(nil))
		e.view = m.acquireView(state.Config().Filters())
		e.view.join(e)
		m.consumers.insert(e)
	}
	return nil
}
