package history

// Final is what a complete read-back of one stream found after the run: the truth that unknown outcomes are held
// against.
type Final struct {
	// Messages are all messages that were there, by ascending sequence.
	Messages []Message
	// Last is the last sequence of the stream.
	Last uint64
}

// Message is one message of a read-back.
type Message struct {
	// Seq is its sequence.
	Seq uint64
	// Subject is where it was published.
	Subject string
	// Value is the ID of the publish that wrote it; 0 when the bytes name none.
	Value uint64
	// MsgID is its deduplication id.
	MsgID string
	// Time is the server's timestamp.
	Time int64
}

// Resolve decides unknown publishes of a stream as far as the rest of the history and the read-back allow, in place,
// and returns the records that remain relevant:
//
//   - a publish whose value was seen anywhere happened, with the sequence at which it was seen; it stays Unknown with
//     an open interval, but Seq is set (see Record.Stored);
//   - a publish that was seen nowhere and that no removal can have hidden did not happen: it is dropped. So is every
//     publish that was seen nowhere, when all sequences of the stream have a known writer;
//   - everything else stays as it is.
//
// complete says that the read-back holds everything that was ever stored, but for what removals named in the history
// can have taken: no limit of the stream removed messages by itself. The stream's first message had the sequence 1.
func Resolve(records []Record, final *Final, complete bool) []Record {
	seen := make(map[uint64]uint64, len(records))
	removals := false
	for i := range records {
		r := &records[i]
		if r.Kind == Publish && r.Outcome == OK && !r.Duplicate {
			seen[r.ID] = r.Seq
		}
		if r.Value != 0 && r.Seq != 0 && r.Outcome == OK {
			seen[r.Value] = r.Seq
		}
		removals = removals || r.Kind == Purge || r.Kind == DeleteMsg || r.Rollup
	}
	for i := range final.Messages {
		seen[final.Messages[i].Value] = final.Messages[i].Seq
	}
	settled := complete && !removals || sequences(seen) == final.Last
	kept := make([]Record, 0, len(records))
	for i := range records {
		r := records[i]
		if r.Outcome != Unknown {
			kept = append(kept, r)
			continue
		}
		if r.Reads() {
			continue // An observation that nobody got constrains nothing.
		}
		if r.Kind == Publish {
			if seq, ok := seen[r.ID]; ok {
				r.Seq = seq
			} else if settled {
				continue
			}
		}
		kept = append(kept, r)
	}
	return kept
}

// sequences counts the different sequences among the values.
func sequences(seen map[uint64]uint64) uint64 {
	distinct := make(map[uint64]bool, len(seen))
	for _, seq := range seen { // order-free: only their number counts
		distinct[seq] = true
	}
	return uint64(len(distinct))
}
