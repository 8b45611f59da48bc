package stream

// pageRows is the number of sequences in one page, and in one row section.
const pageRows = 1024

// pageRowsMin is the capacity with which the first page of a stream starts, so that many tiny streams stay tiny.
const pageRowsMin = 16

// row is the metadata of one message. It fills 16 bytes, so that one cache line serves four neighbours.
type row struct {
	// time is when the message was stored, unix nanoseconds.
	time int64
	// subject is the id of the message's subject in the subject table.
	subject uint32
	// size is the number of header and payload bytes, with sizeHasHeader set when there is a header.
	size uint32
}

// sizeHasHeader marks messages with a header. Message sizes stay far below it: one entry holds at most 128 MiB.
const sizeHasHeader = 1 << 31

func makeSize(header, payload int) uint32 {
	size := uint32(header + payload)
	if header > 0 {
		size |= sizeHasHeader
	}
	return size
}

func (r row) bytes() uint64   { return uint64(r.size &^ sizeHasHeader) }
func (r row) hasHeader() bool { return r.size&sizeHasHeader != 0 }

// page holds the rows of the sequences [number*pageRows, (number+1)*pageRows). Rows of removed messages keep their
// content, which nobody reads: a removal changes the live set only.
type page struct {
	// rows[i] belongs to sequence number*pageRows+i. Rows beyond the slice were never stored.
	rows []row
	// bits has bit i set when the message of rows[i] exists. It repeats the live set in the form that live sections take.
	bits [pageRows / 64]uint64
	// live counts the messages of the page that exist. A page without any is freed.
	live int
}

// pageTable finds the page of a sequence. Its memory is proportional to the pages that hold messages.
type pageTable struct {
	pages map[uint64]*page
	// recent and recentNumber remember the last page found; recent is nil when there is none.
	recent       *page
	recentNumber uint64
}

func newPageTable() pageTable { return pageTable{pages: make(map[uint64]*page)} }

func (t *pageTable) find(number uint64) *page {
	if t.recent != nil && t.recentNumber == number {
		return t.recent
	}
	p := t.pages[number]
	if p != nil {
		t.recent, t.recentNumber = p, number
	}
	return p
}

// put writes the row of a new message and returns its page.
func (t *pageTable) put(seq uint64, r row) {
	number, index := seq/pageRows, int(seq%pageRows)
	p := t.find(number)
	if p == nil {
		p = &page{}
		t.pages[number] = p
		t.recent, t.recentNumber = p, number
		if number > 0 {
			p.rows = make([]row, 0, pageRows)
		}
	}
	p.grow(index + 1)
	p.rows[index] = r
	p.bits[index/64] |= 1 << (index % 64)
	p.live++
}

// grow makes the page at least n rows long.
func (p *page) grow(n int) {
	if n <= len(p.rows) {
		return
	}
	if n > cap(p.rows) {
		capacity := max(2*cap(p.rows), n, pageRowsMin)
		grown := make([]row, len(p.rows), min(capacity, pageRows))
		copy(grown, p.rows)
		p.rows = grown
	}
	p.rows = p.rows[:n]
}

// at returns the row of a message that exists.
func (t *pageTable) at(seq uint64) row {
	return t.find(seq / pageRows).rows[seq%pageRows]
}

// drop counts the end of a message and reports whether its page was freed.
func (t *pageTable) drop(seq uint64) (freed bool) {
	number := seq / pageRows
	p := t.find(number)
	index := seq % pageRows
	p.bits[index/64] &^= 1 << (index % 64)
	p.live--
	if p.live > 0 {
		return false
	}
	delete(t.pages, number)
	t.recent = nil
	return true
}
