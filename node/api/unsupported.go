package api

import (
	"weir/model/jsapi"
	"weir/model/meta"
)

// clusterOnly answers requests that move replicas between servers: a single server has nothing to move to.
func (c *call) clusterOnly([]byte) { c.refuse(jsapi.CodeClusterRequired.Err()) }

// snapshot refuses STREAM.SNAPSHOT of an existing stream.
func (c *call) snapshot([]byte) {
	c.lookup(func(*meta.Stream) {
		c.refuse(jsapi.CodeStreamSnapshot.With("stream snapshots are not supported by this server"))
	})
}

// restore refuses STREAM.RESTORE.
func (c *call) restore([]byte) {
	c.refuse(jsapi.CodeStreamRestore.With("restoring streams is not supported by this server"))
}

// consumerUnsupported refuses requests about features of consumers that no consumer of this server can have, once it is
// clear that the consumer exists.
func (c *call) consumerUnsupported([]byte) {
	c.withStream(func(_ *meta.Stream, s Stream) {
		if s.ConsumerByName(c.consumer) == nil {
			c.refuse(jsapi.CodeConsumerNotFound.Err())
			return
		}
		c.refuse(jsapi.CodeStreamGeneralError.With("the request is not supported by this server"))
	})
}
