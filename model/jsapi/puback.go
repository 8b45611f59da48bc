package jsapi

// PubAck is the answer to a stored publish.
type PubAck struct {
	Stream    string `json:"stream"`
	Seq       uint64 `json:"seq"`
	Domain    string `json:"domain,omitempty"`
	Duplicate bool   `json:"duplicate,omitempty"`
}

// AppendPubAck appends the JSON of a. It allocates nothing beyond growing dst.
func AppendPubAck(dst []byte, a PubAck) []byte {
	dst = append(dst, `{"stream":`...)
	dst = appendQuoted(dst, a.Stream)
	if a.Domain != "" {
		dst = append(dst, `,"domain":`...)
		dst = appendQuoted(dst, a.Domain)
	}
	dst = append(dst, `,"seq":`...)
	dst = appendUint(dst, a.Seq)
	if a.Duplicate {
		dst = append(dst, `,"duplicate": true`...)
	}
	return append(dst, '}')
}

// AppendPubAckError appends the JSON of a refused publish to stream.
func AppendPubAckError(dst []byte, stream string, err *Error) []byte {
	dst = append(dst, `{"error":`...)
	dst = err.AppendJSON(dst)
	dst = append(dst, `,"stream":`...)
	dst = appendQuoted(dst, stream)
	return append(dst, `,"seq":0}`...)
}
