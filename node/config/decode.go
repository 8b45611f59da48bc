package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// token is how the grammar's parser hands over a value together with its place in the file.
type token interface {
	Value() any
	Line() int
	Position() int
	SourceFile() string
	IsUsedVariable() bool
}

// value is one value of the tree: where it stands, under which key, and what it is.
type value struct {
	d            *decoder
	key          string
	raw          any // bool, int64, float64, string, []any, map[string]any, or a time
	file         string
	line, column int
	variable     bool // the key was used as a variable elsewhere
}

// decoder collects what is found wrong on the way through the tree.
type decoder struct {
	problems Problems
	warnings Problems
}

// value takes the token off a node of the tree. Below a value without a place, that of the parent counts.
func (d *decoder) value(key string, node any, parent value) value {
	v := value{d: d, key: key, raw: node, file: parent.file, line: parent.line, column: parent.column}
	if t, ok := node.(token); ok {
		v.raw, v.variable = t.Value(), t.IsUsedVariable()
		v.file, v.line, v.column = t.SourceFile(), t.Line(), t.Position()
	}
	return v
}

func (v value) problem(text string, args ...any) {
	v.d.problems = append(v.d.problems, Problem{v.file, v.line, v.column, fmt.Sprintf(text, args...)})
}

func (v value) warn(text string, args ...any) {
	v.d.warnings = append(v.d.warnings, Problem{v.file, v.line, v.column, fmt.Sprintf(text, args...)})
}

// wrong reports a value of another kind than the option takes.
func (v value) wrong(want string) {
	v.problem("%q takes %s, not %s", v.key, want, kind(v.raw))
}

func kind(raw any) string {
	switch raw.(type) {
	case bool:
		return "true or false"
	case int64:
		return "a number"
	case float64:
		return "a fraction"
	case string:
		return "text"
	case []any:
		return "a list"
	case map[string]any:
		return "a block"
	case time.Time:
		return "a date"
	}
	return "nothing"
}

func (v value) text(dst *string) {
	if s, ok := v.raw.(string); ok {
		*dst = s
		return
	}
	v.wrong("text (a number needs quotes there)")
}

func (v value) truth(dst *bool) {
	if b, ok := v.raw.(bool); ok {
		*dst = b
		return
	}
	v.wrong("true or false")
}

// number reads a whole number within [lo, hi].
func (v value) number(lo, hi int64) (int64, bool) {
	n, ok := v.raw.(int64)
	if !ok {
		v.wrong("a number")
		return 0, false
	}
	if n < lo || n > hi {
		v.problem("%q is %d, which is not within %d and %d", v.key, n, lo, hi)
		return 0, false
	}
	return n, true
}

func (v value) integer(dst *int, lo, hi int64) {
	if n, ok := v.number(lo, hi); ok {
		*dst = int(n)
	}
}

func (v value) integer64(dst *int64, lo, hi int64) {
	if n, ok := v.number(lo, hi); ok {
		*dst = n
	}
}

// size reads a size: a number, or text that ends in K, M, G or T, in powers of 1024.
func (v value) size(dst *int64) {
	s, ok := v.raw.(string)
	if !ok {
		v.integer64(dst, Dynamic, sizeMax)
		return
	}
	if s == "" {
		*dst = 0
		return
	}
	shift := strings.IndexByte("KMGT", s[len(s)-1])
	n, err := strconv.ParseInt(s[:len(s)-1], 10, 64)
	bits := 10 * (shift + 1)
	if shift < 0 || err != nil || n < 0 || n > sizeMax>>bits {
		v.problem("%q is %q; a size in quotes is a number followed by K, M, G or T", v.key, s)
		return
	}
	*dst = n << bits
}

// sizeMax bounds sizes so that sums of them do not overflow.
const sizeMax = 1 << 60

// duration reads a duration as text. A bare number counts seconds, with a warning, as in old files.
func (v value) duration(dst *int64) {
	switch raw := v.raw.(type) {
	case string:
		d, err := time.ParseDuration(raw)
		if err != nil || d < 0 {
			v.problem("%q is %q; a duration is a number with a unit, such as \"2m\" or \"1.5s\"", v.key, raw)
			return
		}
		*dst = int64(d)
	case int64:
		v.warn("invalid use of field %q: %s should be converted to a duration", v.key, v.key)
		if raw < 0 || raw > int64(1<<63-1)/int64(time.Second) {
			v.problem("%q is %d seconds, which is out of range", v.key, raw)
			return
		}
		*dst = raw * int64(time.Second)
	default:
		v.wrong("a duration in quotes")
	}
}

// seconds reads a number of seconds, whole or not, or a duration as text.
func (v value) seconds(dst *int64) {
	text := ""
	switch raw := v.raw.(type) {
	case string:
		text = raw
	case int64:
		text = strconv.FormatInt(raw, 10) + "s"
	case float64:
		text = strconv.FormatFloat(raw, 'f', -1, 64) + "s"
	default:
		v.wrong("a number of seconds or a duration")
		return
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		v.problem("%q is %q, which is not a duration", v.key, text)
		return
	}
	*dst = int64(d)
}

// texts reads one text or a list of them.
func (v value) texts() []string {
	if s, ok := v.raw.(string); ok {
		return []string{s}
	}
	list, ok := v.items("text or a list of texts")
	if !ok {
		return nil
	}
	out := make([]string, 0, len(list))
	for _, item := range list {
		var s string
		item.text(&s)
		out = append(out, s)
	}
	return out
}

func (v value) items(want string) ([]value, bool) {
	list, ok := v.raw.([]any)
	if !ok {
		v.wrong(want)
		return nil, false
	}
	out := make([]value, len(list))
	for i, node := range list {
		out[i] = v.d.value(v.key, node, v)
	}
	return out, true
}

// entries returns the pairs of a block in the order of the file.
func (v value) entries(want string) ([]value, bool) {
	block, ok := v.raw.(map[string]any)
	if !ok {
		v.wrong(want)
		return nil, false
	}
	out := make([]value, 0, len(block))
	for _, key := range slices.Sorted(maps.Keys(block)) {
		out = append(out, v.d.value(key, block[key], v))
	}
	slices.SortStableFunc(out, func(a, b value) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line, a.column-b.column)
	})
	return out, true
}

// field is an option of a block: its names, and what takes its value. A nil take marks an option that exists elsewhere
// and that this version refuses.
type field struct {
	names string // separated by spaces
	take  func(value)
}

// block walks the pairs of a block and hands each to the field of its name.
func (v value) block(fields []field) {
	pairs, ok := v.entries("a block")
	if !ok {
		return
	}
	for _, pair := range pairs {
		f := find(fields, strings.ToLower(pair.key))
		switch {
		case f != nil && f.take != nil:
			f.take(pair)
		case f != nil:
			pair.problem("option %q is not supported by this version of weir", pair.key)
		case !pair.variable:
			pair.problem("unknown field %q", pair.key)
		}
	}
}

func find(fields []field, key string) *field {
	for i := range fields {
		for name := range strings.FieldsSeq(fields[i].names) {
			if name == key {
				return &fields[i]
			}
		}
	}
	return nil
}

// unsupported lists options that other servers of this protocol know and that this version refuses.
func unsupported(names string) field { return field{names: names} }
