// Package trace records what happens in a simulation: a hash over everything, and on request the records themselves.
//
// Two runs are the same when their hashes are. The package promises that the hash covers every record in order and
// every byte that was given with it; whether records are kept never changes it.
package trace

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"
)

// Code says what a record is about.
type Code uint8

// The closed set of codes. The comments name the meaning of A and B.
const (
	// ToNode: bytes of connection A reached the node; B is their number.
	ToNode Code = 1
	// ToClient: bytes of connection A left the node; B is their number.
	ToClient Code = 2
	// Opened: connection A reached the node; B is the client.
	Opened Code = 3
	// Closed: connection A is gone; B is the reason.
	Closed Code = 4
	// Woke: a timer of the node fired; A is the monotone time.
	Woke Code = 5
	// DiskStart: worker A began a batch; B is the number of operations.
	DiskStart Code = 6
	// DiskEnd: worker A ended a batch; B is the number of completions.
	DiskEnd Code = 7
	// Boot: the node with the life A (the machine in the upper half, its incarnation in the lower one) started.
	Boot Code = 8
	// Crash: the node with the life A ended; B is the survival strategy of the disk, offset by one (0: the process only).
	Crash Code = 9
	// Fault: fault A of the plan began.
	Fault Code = 10
	// FaultEnd: fault A of the plan ended.
	FaultEnd Code = 11
	// Call: client A called operation B.
	Call Code = 12
	// Return: operation B of client A ended.
	Return Code = 13
	// Unknown: operation B of client A ended without an answer.
	Unknown Code = 14
	// Deliver: a consumer's message reached client A; B is the stream sequence.
	Deliver Code = 15
	// Log: the node logged a line.
	Log Code = 16
	// Digest: group A had the digest B.
	Digest Code = 17
	// Phase: the run entered phase A (1: faults are healed, 2: read back, 3: done).
	Phase Code = 18
	// ToPeer: frames left a server for machine B; A is its life: the machine in the upper half, the incarnation in the
	// lower one.
	ToPeer Code = 19
	// FromPeer: frames of machine B reached the server with the life A.
	FromPeer Code = 20
	// PeerUp, PeerDown: the server with the life A learned that a session with machine B began or broke.
	PeerUp   Code = 21
	PeerDown Code = 22
	// Role: a replica of the server with the life A has another role or term; B is the group, the text says which.
	Role Code = 23
)

// String names the code.
func (c Code) String() string {
	names := [...]string{"?", "to-node", "to-client", "opened", "closed", "woke", "disk-start", "disk-end", "boot", "crash",
		"fault", "fault-end", "call", "return", "unknown", "deliver", "log", "digest", "phase",
		"to-peer", "from-peer", "peer-up", "peer-down", "role"}
	if int(c) < len(names) {
		return names[c]
	}
	return names[0]
}

// Record is one thing that happened.
type Record struct {
	// At is the virtual time in nanoseconds.
	At int64
	// Code says what.
	Code Code
	// A and B are numbers whose meaning the code gives.
	A, B uint64
	// Text is what a person wants to read; it is kept only when records are.
	Text string
}

// Leads says of a Role record whether the replica leads now.
func (r *Record) Leads() bool { return strings.Contains(r.Text, "leads true") }

// RecordsMax bounds the records that are kept; later ones are only hashed.
const RecordsMax = 1 << 20

// Trace hashes records and keeps them when told to. The zero value hashes only.
type Trace struct {
	// Time is the virtual time of what is added next, in nanoseconds; the owner of the clock keeps it.
	Time int64
	// Keep says that records are kept.
	Keep bool
	// Records are the kept ones, in order.
	Records []Record
	// Events counts all records.
	Events uint64

	hash uint64
}

// Add notes that something happened now, with the bytes that it is about.
func (t *Trace) Add(code Code, a, b uint64, data []byte) {
	t.Events++
	at := t.Time
	h := mix(t.hash ^ uint64(at))
	h = mix(h ^ uint64(code)<<56 ^ a)
	h = mix(h ^ b)
	h = hashBytes(h, data)
	t.hash = h
	if t.Keep && len(t.Records) < RecordsMax {
		r := Record{At: at, Code: code, A: a, B: b}
		if len(data) > 0 {
			r.Text = string(data)
		}
		t.Records = append(t.Records, r)
	}
}

// Note adds a text to the last kept record; it does not change the hash.
func (t *Trace) Note(text string) {
	if t.Keep && len(t.Records) > 0 {
		t.Records[len(t.Records)-1].Text = text
	}
}

// Hash covers everything added so far.
func (t *Trace) Hash() uint64 { return mix(t.hash ^ t.Events) }

// WriteTo writes the kept records as one JSON object per line.
func (t *Trace) WriteTo(w io.Writer) (int64, error) {
	total := int64(0)
	for i := range t.Records {
		r := &t.Records[i]
		line, err := json.Marshal(struct {
			At   int64  `json:"at_ns"`
			Code string `json:"code"`
			A    uint64 `json:"a"`
			B    uint64 `json:"b"`
			Text string `json:"text,omitempty"`
		}{r.At, r.Code.String(), r.A, r.B, r.Text})
		if err != nil {
			return total, err
		}
		n, err := w.Write(append(line, '\n'))
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func hashBytes(h uint64, data []byte) uint64 {
	for len(data) >= 8 {
		h = (h ^ binary.LittleEndian.Uint64(data)) * 0x9fb21c651e98df25
		h ^= h >> 35
		data = data[8:]
	}
	tail := uint64(len(data))
	for i := range data {
		tail = tail<<8 | uint64(data[i])
	}
	return mix(h ^ tail)
}

// mix is the finalizer of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
