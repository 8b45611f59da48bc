package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"pgregory.net/rapid"

	"weir/spec/oracle"
)

// bucketRun is a bucket on the server, through the client library, and its oracle.
type bucketRun struct {
	t      *rapid.T
	ctx    context.Context
	bucket jetstream.KeyValue
	oracle *oracle.Bucket
	trace  []string
}

// note compares the answers to one operation.
func (r *bucketRun) note(what, got, want string) {
	r.t.Helper()
	r.trace = append(r.trace, what+" -> "+want)
	if got != want {
		r.t.Fatalf("%s\nserver: %s\noracle: %s\n%s", what, got, want, strings.Join(r.trace, "\n"))
	}
}

// outcome names the errors that clients tell apart.
func (r *bucketRun) outcome(err error, format string, args ...any) string {
	var refused *jetstream.APIError
	switch {
	case err == nil:
		return fmt.Sprintf(format, args...)
	case errors.Is(err, jetstream.ErrKeyExists):
		return "wrong revision"
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrNoKeysFound):
		return "not found"
	case errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return "wrong revision"
	}
	r.t.Fatalf("%v\n%s", err, strings.Join(r.trace, "\n"))
	return ""
}

func found(ok bool, otherwise, format string, args ...any) string {
	if !ok {
		return otherwise
	}
	return fmt.Sprintf(format, args...)
}

func (r *bucketRun) drawRevision(key string) uint64 {
	if e, ok := r.oracle.Get(key); ok && oneOf(r.t, "last", true, false) {
		return e.Revision
	}
	return uint64(rapid.IntRange(0, 12).Draw(r.t, "revision"))
}

func (r *bucketRun) step() {
	key, value := oneOf(r.t, "key", "a", "b", "a.b", "c/d", "e=_-"), fmt.Sprint("v", len(r.trace))
	kv, o := r.bucket, r.oracle
	switch step := oneOf(r.t, "step", "put", "put", "create", "update", "delete", "delete last", "purge", "get", "get revision", "history", "keys"); step {
	case "put":
		revision, err := kv.Put(r.ctx, key, []byte(value))
		r.note("put "+key, r.outcome(err, "%d", revision), fmt.Sprint(o.Put(key, value)))
	case "create":
		revision, err := kv.Create(r.ctx, key, []byte(value))
		want, ok := o.Create(key, value)
		r.note("create "+key, r.outcome(err, "%d", revision), found(ok, "wrong revision", "%d", want))
	case "update":
		last := r.drawRevision(key)
		revision, err := kv.Update(r.ctx, key, []byte(value), last)
		want, ok := o.Update(key, value, last)
		r.note(fmt.Sprint("update ", key, " ", last), r.outcome(err, "%d", revision), found(ok, "wrong revision", "%d", want))
	case "delete":
		r.note("delete "+key, r.outcome(kv.Delete(r.ctx, key), "ok"), found(o.Delete(key, 0), "wrong revision", "ok"))
	case "delete last":
		last := max(r.drawRevision(key), 1)
		err := kv.Delete(r.ctx, key, jetstream.LastRevision(last))
		r.note(fmt.Sprint("delete ", key, " ", last), r.outcome(err, "ok"), found(o.Delete(key, last), "wrong revision", "ok"))
	case "purge":
		o.Purge(key)
		r.note("purge "+key, r.outcome(kv.Purge(r.ctx, key), "ok"), "ok")
	case "get":
		r.get(key)
	case "get revision":
		r.getRevision(key, max(r.drawRevision(key), 1))
	case "history":
		r.history(key)
	case "keys":
		keys, err := kv.Keys(r.ctx)
		slices.Sort(keys)
		r.note("keys", r.outcome(err, "%v", keys), found(len(o.Keys()) > 0, "not found", "%v", o.Keys()))
	}
}

func (r *bucketRun) get(key string) {
	got := ""
	e, err := r.bucket.Get(r.ctx, key)
	if err == nil {
		got = fmt.Sprintf("%s %d", e.Value(), e.Revision())
	}
	want, ok := r.oracle.Get(key)
	r.note("get "+key, r.outcome(err, "%s", got), found(ok, "not found", "%s %d", want.Value, want.Revision))
}

func (r *bucketRun) getRevision(key string, revision uint64) {
	got := ""
	e, err := r.bucket.GetRevision(r.ctx, key, revision)
	if err == nil {
		got = fmt.Sprintf("%s %d", e.Value(), e.Revision())
	}
	want, ok := r.oracle.GetRevision(key, revision)
	r.note(fmt.Sprint("get ", key, " ", revision), r.outcome(err, "%s", got), found(ok, "not found", "%s %d", want.Value, want.Revision))
}

func (r *bucketRun) history(key string) {
	got, want := "", ""
	entries, err := r.bucket.History(r.ctx, key)
	for _, e := range entries {
		got += fmt.Sprintf("%d %d %s, ", e.Revision(), e.Operation(), e.Value())
	}
	for _, e := range r.oracle.Revisions(key) {
		op := map[oracle.Op]jetstream.KeyValueOp{
			oracle.Put: jetstream.KeyValuePut, oracle.Deleted: jetstream.KeyValueDelete, oracle.Purged: jetstream.KeyValuePurge,
		}[e.Op]
		want += fmt.Sprintf("%d %d %s, ", e.Revision, op, e.Value)
	}
	r.note("history "+key, r.outcome(err, "%s", got), found(want != "", "not found", "%s", want))
}

func TestBucketAgreesWithOracle(t *testing.T) {
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	bound := newBudget()
	rapid.Check(t, func(t *rapid.T) {
		if bound.spent() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		name, history := uniqueName("B"), oneOf(t, "history", 1, 2, 5)
		storage := oneOf(t, "storage", jetstream.MemoryStorage, jetstream.FileStorage)
		kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, History: uint8(history), Storage: storage})
		if err != nil {
			t.Fatalf("create bucket: %v", err)
		}
		r := &bucketRun{t: t, ctx: ctx, bucket: kv, oracle: &oracle.Bucket{History: history}}
		for range rapid.IntRange(5, 30).Draw(t, "steps") {
			r.step()
		}
		if err := js.DeleteKeyValue(ctx, name); err != nil {
			t.Fatalf("delete bucket: %v", err)
		}
	})
}
