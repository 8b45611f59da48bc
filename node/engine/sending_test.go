package engine

import (
	"testing"

	"weir/node/event"
)

// receiver is an engine with a receiver that has asked for so many pieces.
func receiver(pieces int) (*Engine, *sending) {
	e := &Engine{}
	e.partReads = map[event.Ticket]partRead{}
	e.now.Mono = 1e9
	s := &sending{group: &group{id: 16}}
	for i := range pieces {
		s.asked = append(s.asked, partRead{group: s.group, offset: uint64(i) * pieceBytes, size: pieceBytes})
	}
	e.sendings = append(e.sendings, s)
	return e, s
}

func TestPiecesAreGivenAtOnceWhileNobodyPublishes(t *testing.T) {
	e, s := receiver(askedMax)
	e.givePieces(s)
	if len(e.transferOp) != askedMax || len(s.asked) != 0 || e.piecesAt != 0 {
		t.Errorf("%d of %d pieces are read, %d wait until %d", len(e.transferOp), askedMax, len(s.asked), e.piecesAt)
	}
}

// TestPiecesGoAtAPaceWhileClientsPublish lets time pass from one timer to the next.
func TestPiecesGoAtAPaceWhileClientsPublish(t *testing.T) {
	const pieces, each = 1000, pieceBytes * int64(1e9) / busyBytesPerSecond
	e, s := receiver(pieces)
	began := e.now.Mono
	e.busyUntil = began + 3600e9
	e.givePieces(s)
	for len(s.asked) > 0 {
		at := e.timers.next()
		if at <= e.now.Mono {
			t.Fatal("pieces wait, and no timer will give them")
		}
		e.now.Mono = at
		e.fire()
		if most := paceSlackNanos + e.now.Mono - began; int64(len(e.transferOp)-1)*each > most {
			t.Fatalf("%d pieces are read within %d ns", len(e.transferOp), e.now.Mono-began)
		}
	}
	if took := e.now.Mono - began; took > pieces*each {
		t.Errorf("%d pieces take %d ns, at the pace they need %d", pieces, took, pieces*each)
	}
	for i, op := range e.transferOp {
		if op.Snapshot.Offset != uint64(i)*pieceBytes {
			t.Fatalf("piece %d begins at %d", i, op.Snapshot.Offset)
		}
	}
}

func TestPiecesThatWaitAreGivenOnceClientsHaveStopped(t *testing.T) {
	e, s := receiver(askedMax)
	e.busyUntil = e.now.Mono + 1
	e.givePieces(s)
	if len(s.asked) == 0 {
		t.Fatal("no piece waits")
	}
	e.now.Mono = e.timers.next()
	e.fire()
	if len(s.asked) != 0 {
		t.Errorf("%d pieces still wait", len(s.asked))
	}
}
