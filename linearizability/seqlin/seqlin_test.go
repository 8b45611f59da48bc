package seqlin

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestReadBetweenItsWriteAndTheNextIsLegal(t *testing.T) {
	ops := []Op{
		{Write: true, Rev: 1, Call: 1, Return: 2},
		{Rev: 1, Next: 2, Call: 3, Return: 4},
		{Write: true, Rev: 2, Call: 3, Return: 9},
		{Rev: 2, Next: 3, Call: 5, Return: 6},
		{Rev: 0, Next: 1, Call: 0, Return: 1},
	}
	if v := Check(ops); v != nil {
		t.Fatal(v)
	}
}

func TestStaleReadIsRefused(t *testing.T) {
	ops := []Op{
		{Write: true, Rev: 1, Call: 1, Return: 2},
		{Write: true, Rev: 2, Call: 3, Return: 4},
		{Rev: 1, Next: 2, Call: 5, Return: 6},
	}
	if Check(ops) == nil {
		t.Fatal("a read of 1 after 2 was acknowledged passed")
	}
}

func TestClosedIntervalsThatTouchAreConcurrent(t *testing.T) {
	ops := []Op{
		{Write: true, Rev: 1, Call: 1, Return: 2},
		{Rev: 0, Next: 1, Call: 2, Return: 3},
	}
	if v := Check(ops); v != nil {
		t.Fatal(v)
	}
	ops[0].Return, ops[1].Call = 2, 3
	for i := range ops {
		if !ops[i].Write {
			ops[i].Call = 3
		}
	}
	if Check(ops) == nil {
		t.Fatal("nothing was read after a write returned")
	}
}

func TestReadFromTheFutureIsRefused(t *testing.T) {
	ops := []Op{
		{Rev: 1, Next: 2, Call: 1, Return: 2},
		{Write: true, Rev: 1, Call: 3, Return: 4},
	}
	if Check(ops) == nil {
		t.Fatal("a revision was read before its write was called")
	}
}

func TestRevisionMustHaveAWriterAndOnlyOne(t *testing.T) {
	if Check([]Op{{Rev: 7, Call: 1, Return: 2}}) == nil {
		t.Fatal("a revision without a writer passed")
	}
	if Check([]Op{{Write: true, Rev: 7, Call: 1, Return: 2}, {Write: true, Rev: 7, Call: 1, Return: 2}}) == nil {
		t.Fatal("two writers of one revision passed")
	}
}

func TestUnansweredWriteMayHappenLate(t *testing.T) {
	ops := []Op{
		{Write: true, Rev: 1, Call: 1, Return: math.MaxInt64},
		{Rev: 0, Next: 1, Call: 100, Return: 101},
		{Rev: 1, Next: 2, Call: 200, Return: 201},
	}
	if v := Check(ops); v != nil {
		t.Fatal(v)
	}
}

func TestBelowForbidsAnEarlierWrite(t *testing.T) {
	ops := []Op{
		{Write: true, Rev: 3, Call: 1, Return: 2},
		{Next: 3, Call: 3, Return: 4},
	}
	if Check(ops) == nil {
		t.Fatal("a sequence was found missing after it was acknowledged")
	}
}

// TestHistoriesOfARealRegisterPass draws points first and intervals around them, so that every history is legal.
func TestHistoriesOfARealRegisterPass(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var ops []Op
		rev := uint64(0)
		for point := int64(10); point < 2000; point += 1 + r.Int64N(4) {
			op := Op{Call: point - r.Int64N(40), Return: point + r.Int64N(40), ID: uint64(len(ops))}
			switch r.IntN(4) {
			case 0:
				rev += 1 + r.Uint64N(3)
				op.Write, op.Rev = true, rev
			case 1, 2:
				op.Rev, op.Next = rev, rev+1
			case 3:
				op.Next = rev + 1
			}
			ops = append(ops, op)
		}
		if v := Check(ops); v != nil {
			t.Fatalf("seed %d: %v", seed, v)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	const count = 100_000
	ops := make([]Op, count)
	for i := range ops {
		ops[i] = Op{Write: true, Rev: uint64(i + 1), Call: int64(i), Return: int64(i + 500), ID: uint64(i)}
	}
	b.ReportAllocs()
	for b.Loop() {
		if v := Check(ops); v != nil {
			b.Fatal(v)
		}
	}
}

func TestSubjectsShareTheOrderOfTheirStream(t *testing.T) {
	ops := []Op{
		{Write: true, Rev: 1, Call: 10, Return: 36},
		{Write: true, Rev: 2, Call: 20, Return: 20},
		{Rev: 0, Next: 1, Call: 36, Return: 40}, // The subject of 1 was empty, after 2 had been acknowledged.
	}
	if Check(ops) == nil {
		t.Fatal("an order passed that no subject excludes alone")
	}
}
