package jsapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"weir/spec/assert"
)

// Decode reads a request body into v as the reference server does: the body may hold several values, of which later
// ones overwrite; an empty body leaves v as it is. With strict an unknown field is an error, otherwise it is ignored.
// The error is CodeInvalidJSON.
func Decode(body []byte, v any, strict bool) *Error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	for {
		err := decoder.Decode(v)
		if err == nil {
			continue
		}
		if err == io.EOF {
			return nil
		}
		if !strict {
			if err = json.Unmarshal(body, v); err == nil {
				return nil
			}
			return CodeInvalidJSON.With(err.Error())
		}
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			err = fmt.Errorf("%w at offset %d", err, syntax.Offset)
		}
		return CodeInvalidJSON.With(err.Error())
	}
}

// AppendJSON appends the JSON of v, which must be a value of this package: those always have one. Map keys are sorted,
// so that equal values give equal bytes.
func AppendJSON(dst []byte, v any) []byte {
	encoded, err := json.Marshal(v)
	assert.True(err == nil, "values of the API have a JSON form")
	return append(dst, encoded...)
}

// AppendJSON appends the canonical JSON of c.
func (c *StreamConfig) AppendJSON(dst []byte) []byte { return AppendJSON(dst, c) }

// AppendJSON appends the canonical JSON of c.
func (c *ConsumerConfig) AppendJSON(dst []byte) []byte { return AppendJSON(dst, c) }

// ParseStreamConfig reads the canonical JSON of a configuration. The error is that of the JSON decoder: such bytes come
// from our own log or catalog, so that an error means damage.
func ParseStreamConfig(data []byte) (*StreamConfig, error) {
	config := new(StreamConfig)
	if err := json.Unmarshal(data, config); err != nil {
		return nil, fmt.Errorf("stream configuration of %d bytes: %w", len(data), err)
	}
	return config, nil
}

// ParseConsumerConfig reads the canonical JSON of a configuration; errors are as those of ParseStreamConfig.
func ParseConsumerConfig(data []byte) (*ConsumerConfig, error) {
	config := new(ConsumerConfig)
	if err := json.Unmarshal(data, config); err != nil {
		return nil, fmt.Errorf("consumer configuration of %d bytes: %w", len(data), err)
	}
	return config, nil
}
