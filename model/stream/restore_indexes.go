package stream

import "fmt"

// restoreIndexes derives the sequences per subject, the totals and the free ids from rows and live set.
func (m *Machine) restoreIndexes(t *restoring) error {
	log := &m.log
	var err error
	log.live.Ranges(func(first, last uint64) bool {
		for err == nil && first <= last {
			end := min(last, first/pageRows*pageRows+pageRows-1)
			err = log.index(first, end)
			first = end + 1
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	for number, p := range log.pages.pages { // order-free: looks for any page without messages
		if p.live == 0 {
			return fmt.Errorf("%w: rows %d have no messages", ErrMalformed, number)
		}
	}
	for id := range log.subjects.next {
		if row := log.subjects.row(id); row.text == "" {
			log.subjects.free.Add(uint64(id))
		} else if row.seqs.Len() == 0 {
			return fmt.Errorf("%w: subject %d has no messages", ErrMalformed, id)
		}
	}
	lowest, ok := log.live.First()
	highest, _ := log.live.Last()
	if log.live.Len() != t.count || log.bytes != t.bytes || highest > log.last || ok && lowest != log.first {
		return fmt.Errorf("%w: %d messages of %d bytes in [%d, %d], the head has %d of %d in [%d, %d]", ErrMalformed,
			log.live.Len(), log.bytes, lowest, highest, t.count, t.bytes, log.first, log.last)
	}
	return nil
}

// index enters the live messages [first, last] of one page into the index of subjects and into the totals. Neighbours of
// one subject are entered together.
func (l *messages) index(first, last uint64) error {
	p := l.pages.find(first / pageRows)
	if p == nil || last%pageRows >= uint64(len(p.rows)) {
		return fmt.Errorf("%w: messages [%d, %d] have no rows", ErrMalformed, first, last)
	}
	p.live += int(last - first + 1)
	for seq := first; seq <= last; seq++ {
		p.bits[seq%pageRows/64] |= 1 << (seq % 64)
	}
	for first <= last {
		id := p.rows[first%pageRows].subject
		if !l.subjects.taken(id) {
			return fmt.Errorf("%w: message %d has subject id %d, which is free", ErrMalformed, first, id)
		}
		subject := l.subjects.row(id)
		hash := hashText(subject.text)
		end := first
		for ; end <= last && p.rows[end%pageRows].subject == id; end++ {
			r := p.rows[end%pageRows]
			l.bytes += l.accounted(len(subject.text), r.size)
			l.sum += hashMessage(end, r, hash)
		}
		if end-first == 1 {
			subject.seqs.Add(first)
		} else {
			subject.seqs.AddRange(first, end-1)
		}
		first = end
	}
	return nil
}
