// Package header reads and edits NATS/1.0 header blocks, and names the fields that servers use.
//
// A block is the bytes between the sizes of an HPUB and the payload:
//
//	NATS/1.0[ <3 digit status>[ <description>]] CR LF
//	Name: value CR LF        (any number of times)
//	CR LF
//
// Names are case-sensitive; the first field of a name counts; spaces after the colon are skipped; values reach to the
// CR LF and do not fold. An absent block is nil. The package promises that no function changes the bytes it was given
// and that reading does not allocate. It does not check values, and reading accepts blocks that are not Valid, as
// clients may send any bytes.
package header

import (
	"bytes"
	"iter"
)

const (
	version  = "NATS/1.0"
	lineEnd  = "\r\n"
	firstEnd = len(version) + len(lineEnd)

	// emptyBytes is the length of a block without fields.
	emptyBytes = firstEnd + len(lineEnd)

	// MaxBytes is the largest block that a stream stores.
	MaxBytes = 65535
)

// Valid reports whether hdr is a well-formed block: version, optional status, fields with a name and a colon, and the
// empty line at its end and only there.
func Valid(hdr []byte) bool {
	first, rest, ok := cutLine(hdr)
	if !ok || !validFirstLine(first) {
		return false
	}
	for {
		line, after, ok := cutLine(rest)
		if !ok {
			return false
		}
		if len(line) == 0 {
			return len(after) == 0
		}
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 || bytes.ContainsAny(line[:colon], " \t") || bytes.IndexByte(line, '\n') >= 0 {
			return false
		}
		rest = after
	}
}

// Get returns the value of the first field of the name, a slice of hdr, or nil when there is no such field. The value
// of a field that is present but empty is not nil.
func Get(hdr []byte, name string) []byte {
	start := find(hdr, name, 0)
	if start < 0 {
		return nil
	}
	value := start + len(name) + 1
	for value < len(hdr) && hdr[value] == ' ' {
		value++
	}
	end := lineEndAt(hdr, value)
	return hdr[value:end:end]
}

// Has reports whether a field of the name is present.
func Has(hdr []byte, name string) bool { return find(hdr, name, 0) >= 0 }

// Status returns the status and the description of the first line, slices of hdr, nil when absent.
func Status(hdr []byte) (code, description []byte) {
	line, _, ok := cutLine(hdr)
	if !ok || len(line) <= len(version) || !bytes.HasPrefix(line, []byte(version)) {
		return nil, nil
	}
	text := bytes.TrimLeft(line[len(version):], " ")
	code, description, _ = bytes.Cut(text, []byte(" "))
	return code, description
}

// Fields yields the names and values of all fields in order, as slices of hdr. Lines without a colon are skipped.
func Fields(hdr []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		_, rest, ok := cutLine(hdr)
		for ok {
			var line []byte
			line, rest, ok = cutLine(rest)
			name, value, isField := bytes.Cut(line, []byte(":"))
			if !isField {
				continue
			}
			if !yield(name, bytes.TrimLeft(value, " ")) {
				return
			}
		}
	}
}

// find returns the position of the first field of the name at or after from, -1 when there is none.
func find(hdr []byte, name string, from int) int {
	if name == "" {
		return -1
	}
	for from < len(hdr) {
		at := indexString(hdr[from:], name)
		if at < 0 {
			return -1
		}
		at += from
		colon := at + len(name)
		if at >= firstEnd && hdr[at-1] == '\n' && hdr[at-2] == '\r' && colon < len(hdr) && hdr[colon] == ':' {
			return at
		}
		from = at + 1
	}
	return -1
}

// indexString finds s in b without converting either of them on the heap: candidates are positions of its first byte,
// which bytes.IndexByte finds with vector instructions.
func indexString(b []byte, s string) int {
	for from := 0; ; {
		at := bytes.IndexByte(b[from:], s[0])
		if at < 0 || from+at+len(s) > len(b) {
			return -1
		}
		from += at
		if string(b[from:from+len(s)]) == s {
			return from
		}
		from++
	}
}

// lineEndAt returns the position of the CR LF at or after from, or the length of hdr.
func lineEndAt(hdr []byte, from int) int {
	at := bytes.Index(hdr[from:], []byte(lineEnd))
	if at < 0 {
		return len(hdr)
	}
	return from + at
}

func cutLine(b []byte) (line, rest []byte, ok bool) {
	return bytes.Cut(b, []byte(lineEnd))
}

func validFirstLine(line []byte) bool {
	if !bytes.HasPrefix(line, []byte(version)) || bytes.IndexByte(line, '\n') >= 0 {
		return false
	}
	status := line[len(version):]
	if len(status) == 0 {
		return true
	}
	if len(status) < 4 || status[0] != ' ' || (len(status) > 4 && status[4] != ' ') {
		return false
	}
	for _, digit := range status[1:4] {
		if digit < '0' || digit > '9' {
			return false
		}
	}
	return true
}
