package api

import "testing"

// BenchmarkDirectGet is the server's share of a key-value read, without routing and storage.
func BenchmarkDirectGet(b *testing.B) {
	w := newWorld()
	w.request("STREAM.CREATE.KV_b", nil, `{"name":"KV_b","subjects":["$KV.b.>"],"allow_direct":true,"max_msgs_per_subject":1}`)
	w.publish("$KV.b.key", nil, make([]byte, 128))
	r := &Request{Account: "A", Subject: "$JS.API.DIRECT.GET.KV_b.$KV.b.key", Reply: "_INBOX.1"}
	b.ReportAllocs()
	for b.Loop() {
		w.replies = w.replies[:0]
		w.api.Handle(r)
	}
}

// BenchmarkPull is the cost of finding the consumer of a pull request.
func BenchmarkPull(b *testing.B) {
	w := newWorld()
	w.request("STREAM.CREATE.S", nil, `{"name":"S"}`)
	w.request("CONSUMER.CREATE.S.C", nil, `{"stream_name":"S","config":{"durable_name":"C"}}`)
	r := &Request{Account: "A", Subject: "$JS.API.CONSUMER.MSG.NEXT.S.C", Reply: "_INBOX.1"}
	b.ReportAllocs()
	for b.Loop() {
		w.pulls = w.pulls[:0]
		w.api.Handle(r)
	}
}
