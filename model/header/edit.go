package header

import (
	"bytes"
	"strconv"

	"weir/spec/assert"
)

// AppendStart appends the first line of a block without status. Fields follow by AppendField, AppendEnd closes it.
func AppendStart(dst []byte) []byte {
	return append(append(dst, version...), lineEnd...)
}

// AppendField appends one field to a block that AppendStart or AppendStatusStart began.
func AppendField(dst []byte, name, value string) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), lineEnd...)
}

// AppendUintField is AppendField with a decimal number as value.
func AppendUintField(dst []byte, name string, value uint64) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(strconv.AppendUint(dst, value, 10), lineEnd...)
}

// AppendEnd appends the empty line that ends a block.
func AppendEnd(dst []byte) []byte { return append(dst, lineEnd...) }

// AppendStatusStart appends the first line of a block that carries a status, for example 408 and "Request Timeout".
// An empty description is left out.
func AppendStatusStart(dst []byte, code int, description string) []byte {
	assert.True(code >= 100, "status >= 100", uint64(code))
	assert.True(code <= 999, "status <= 999", uint64(code))
	dst = append(append(dst, version...), ' ')
	dst = strconv.AppendInt(dst, int64(code), 10)
	if description != "" {
		dst = append(append(dst, ' '), description...)
	}
	return append(dst, lineEnd...)
}

// AppendBlock appends a whole block that carries a status and no fields.
func AppendBlock(dst []byte, code int, description string) []byte {
	return AppendEnd(AppendStatusStart(dst, code, description))
}

// Append returns a copy of hdr with one more field at its end. A nil hdr becomes a new block.
func Append(hdr []byte, name, value string) []byte {
	grown := make([]byte, 0, len(hdr)+emptyBytes+len(name)+len(value)+4)
	if len(hdr) < emptyBytes {
		grown = AppendStart(grown)
	} else {
		grown = append(grown, bytes.TrimSuffix(hdr, []byte(lineEnd))...)
	}
	return AppendEnd(AppendField(grown, name, value))
}

// Set returns a copy of hdr in which the field of the name has the value, once and as the last field.
func Set(hdr []byte, name, value string) []byte {
	return Append(Delete(hdr, name), name, value)
}

// Delete returns hdr without any field of the name: hdr itself when there is none, otherwise a copy, and nil when no
// field is left.
func Delete(hdr []byte, name string) []byte {
	return deleteLines(hdr, func(from int) int { return find(hdr, name, from) })
}

// DeletePrefix returns hdr without any field whose name starts with the prefix; the result is as that of Delete.
func DeletePrefix(hdr []byte, prefix string) []byte {
	return deleteLines(hdr, func(from int) int { return findPrefix(hdr, prefix, from) })
}

// StripStatus returns hdr without status and description on its first line: hdr itself when there are none, otherwise
// a copy, and nil when no field is left.
func StripStatus(hdr []byte) []byte {
	line, rest, ok := cutLine(hdr)
	if !ok || len(line) <= len(version) || !bytes.HasPrefix(line, []byte(version)) {
		return hdr
	}
	if len(rest) <= len(lineEnd) {
		return nil
	}
	return append(AppendStart(make([]byte, 0, firstEnd+len(rest))), rest...)
}

// deleteLines copies hdr without the lines whose starts next yields; next is called with ascending positions and
// answers -1 at the end.
func deleteLines(hdr []byte, next func(from int) int) []byte {
	at := next(0)
	if at < 0 {
		return hdr
	}
	kept := make([]byte, 0, len(hdr))
	copied := 0
	for at >= 0 {
		kept = append(kept, hdr[copied:at]...)
		copied = min(lineEndAt(hdr, at)+len(lineEnd), len(hdr))
		at = next(copied)
	}
	kept = append(kept, hdr[copied:]...)
	if len(kept) <= emptyBytes {
		return nil
	}
	return kept
}

// findPrefix returns the position of the first field at or after from whose name starts with the prefix, or -1.
func findPrefix(hdr []byte, prefix string, from int) int {
	for line := max(from, firstEnd); line < len(hdr); line = lineEndAt(hdr, line) + len(lineEnd) {
		atLineStart := hdr[line-1] == '\n' && hdr[line-2] == '\r'
		if !atLineStart {
			continue
		}
		text := hdr[line:lineEndAt(hdr, line)]
		if bytes.IndexByte(text, ':') >= len(prefix) && string(text[:len(prefix)]) == prefix {
			return line
		}
	}
	return -1
}
