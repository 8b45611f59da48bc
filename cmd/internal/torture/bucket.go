package torture

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/linearizability/history"
)

// The bucket that all clients of the key-value interface share.
const (
	bucketName = "B"
	bucketKeys = 12
)

var bucket = target{name: "KV_" + bucketName, prefix: "$KV." + bucketName, keys: bucketKeys}

// keyValuer works on the bucket until the load ends.
func (c *client) keyValuer(ctx context.Context) {
	var kv jetstream.KeyValue
	for ctx.Err() == nil {
		if kv == nil {
			limit, cancel := context.WithTimeout(ctx, answerMax)
			bound, err := c.js.KeyValue(limit, bucketName)
			cancel()
			if err != nil {
				c.think()
				continue
			}
			kv = bound
		}
		before := c.nc
		if c.refresh(!c.keyValue(kv)) != nil {
			return
		}
		if c.nc != before {
			kv = nil
		}
		c.think()
	}
}

// keyValue carries out one operation.
func (c *client) keyValue(kv jetstream.KeyValue) bool {
	key := c.rng.IntN(bucketKeys)
	switch c.rng.IntN(12) {
	case 0, 1, 2:
		return c.kvWrite(key, "put", func(ctx context.Context, key string, value []byte) (uint64, error) {
			return kv.Put(ctx, key, value)
		})
	case 3, 4:
		return c.kvUpdate(kv, key)
	case 5:
		return c.kvWrite(key, "create", func(ctx context.Context, key string, value []byte) (uint64, error) {
			return kv.Create(ctx, key, value)
		})
	case 6:
		return c.kvDelete(key)
	case 7:
		return c.getLast(&bucket, bucket.subject(key))
	default:
		return c.kvGet(kv, key)
	}
}

// kvWrite writes a value. What create does depends on what is there, so its record promises nothing but that the value
// was stored; see createdOver.
func (c *client) kvWrite(key int, how string, write func(context.Context, string, []byte) (uint64, error)) bool {
	pos, id := c.run.log.begin(history.Record{Client: c.number, Kind: history.Publish, Stream: bucket.name, Subject: bucket.subject(key)})
	ctx, cancel := c.limit()
	defer cancel()
	seq, err := write(ctx, fmt.Sprintf("k%d", key), value(id, c.rng.IntN(100)))
	if how == "create" && err == nil {
		c.run.log.marks(id, &c.run.log.creates)
	}
	return c.wrote(pos, seq, err)
}

// wrote writes down how a write of the key-value interface ended.
func (c *client) wrote(pos int, seq uint64, err error) bool {
	if err == nil {
		return c.published(pos, &jetstream.PubAck{Sequence: seq}, nil)
	}
	return c.published(pos, nil, err)
}

// kvUpdate compares and sets, mostly with the revision that is there.
func (c *client) kvUpdate(kv jetstream.KeyValue, key int) bool {
	subject := bucket.subject(key)
	r := history.Record{Client: c.number, Kind: history.Publish, Stream: bucket.name, Subject: subject}
	delta := int64(0)
	if c.rng.IntN(6) == 0 {
		delta = -c.rng.Int64N(4)
	}
	r.ExpectSubject = expected(c.run.log.last(bucket.name, subject), delta)
	pos, id := c.run.log.begin(r)
	ctx, cancel := c.limit()
	defer cancel()
	seq, err := kv.Update(ctx, fmt.Sprintf("k%d", key), value(id, c.rng.IntN(100)), r.ExpectSubject.Seq)
	return c.wrote(pos, seq, err)
}

// kvDelete deletes a key as the key-value interface does, which hides the sequence of what it stores; here it is wanted,
// and so is the writer of the empty message.
func (c *client) kvDelete(key int) bool {
	r := history.Record{Client: c.number, Kind: history.Publish, Stream: bucket.name, Subject: bucket.subject(key)}
	r.Rollup = c.rng.IntN(3) == 0
	pos, id := c.run.log.begin(r)
	c.run.log.marks(id, &c.run.log.deletes)
	m := nats.NewMsg(r.Subject)
	m.Header.Set("KV-Operation", "DEL")
	if r.Rollup {
		m.Header.Set("KV-Operation", "PURGE")
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	m.Header.Set(valueHeader, string(value(id, 0)))
	ctx, cancel := c.limit()
	defer cancel()
	ack, err := c.js.PublishMsg(ctx, m)
	return c.published(pos, ack, err)
}

// kvGet reads a key. That it is not there can mean two things with different sequences, so it is no observation.
func (c *client) kvGet(kv jetstream.KeyValue, key int) bool {
	pos, _ := c.run.log.begin(history.Record{Client: c.number, Kind: history.GetLast, Stream: bucket.name, Subject: bucket.subject(key)})
	ctx, cancel := c.limit()
	defer cancel()
	e, err := kv.Get(ctx, fmt.Sprintf("k%d", key))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		c.unknown(pos)
		return true
	}
	if err != nil {
		return c.got(pos, found{}, err)
	}
	return c.got(pos, found{seq: e.Revision(), value: valueOf(e.Value(), ""), time: e.Created().UnixNano()}, nil)
}

// marks notes that the operation is one of a set.
func (r *recorder) marks(id uint64, set *map[uint64]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if *set == nil {
		*set = map[uint64]bool{}
	}
	(*set)[id] = true
}
