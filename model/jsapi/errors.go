package jsapi

import (
	"fmt"
	"strings"

	"weir/spec/assert"
)

// Code identifies an error of the JetStream API (err_code in JSON). Clients dispatch on it.
type Code uint16

// Error is an error of the JetStream API as it travels in responses.
type Error struct {
	Code        int    `json:"code"`
	ErrCode     Code   `json:"err_code,omitempty"`
	Description string `json:"description,omitempty"`
}

// Error returns the description with both codes.
func (e *Error) Error() string {
	return fmt.Sprintf("%s (%d, %d)", e.Description, e.Code, e.ErrCode)
}

type errorRow struct {
	http int
	text string
}

// Err returns a fresh error of the code with its fixed description.
func (c Code) Err() *Error { return c.With() }

// With returns a fresh error of the code, where values replace the braced parts of the description in their order.
// It is a defect to ask for a code that does not exist, or to leave a part open.
func (c Code) With(values ...string) *Error {
	row, known := errorTable(c)
	assert.True(known, "error code is in the table", uint64(c))
	var text strings.Builder
	rest := row.text
	for _, value := range values {
		before, after, open := strings.Cut(rest, "{")
		_, after, closed := strings.Cut(after, "}")
		assert.True(open && closed, "error description has a part for every value", uint64(c))
		text.WriteString(before)
		text.WriteString(value)
		rest = after
	}
	assert.True(!strings.Contains(rest, "{"), "every part of the error description has a value", uint64(c))
	text.WriteString(rest)
	return &Error{Code: row.http, ErrCode: c, Description: text.String()}
}

// Is reports whether err carries the code. A nil err carries none.
func (c Code) Is(err *Error) bool { return err != nil && err.ErrCode == c }

// AppendJSON appends the JSON object of e.
func (e *Error) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = appendInt(dst, int64(e.Code))
	if e.ErrCode != 0 {
		dst = append(dst, `,"err_code":`...)
		dst = appendInt(dst, int64(e.ErrCode))
	}
	if e.Description != "" {
		dst = append(dst, `,"description":`...)
		dst = appendQuoted(dst, e.Description)
	}
	return append(dst, '}')
}
