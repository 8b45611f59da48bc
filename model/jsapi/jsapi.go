// Package jsapi is the vocabulary of the JetStream API: configurations, infos, requests, responses, error codes, and
// the exact JSON in which they travel.
//
// It promises the field names, field order, defaults, validation texts and error codes of nats-server 2.15.2 (API
// level 5), and that equal values encode to equal bytes. It holds no state and decides nothing that depends on other
// streams or consumers: that is done by the state machines, which use the checks of this package.
package jsapi

const (
	// Version is the server version reported to clients: the version of the reference server whose protocol is served.
	Version = "2.15.2"
	// APILevel is the level of the JetStream API that is served (ADR-44).
	APILevel = 5
)

const (
	// NameBytesMax bounds the names of streams and consumers.
	NameBytesMax = 255
	// DescriptionBytesMax bounds the descriptions of streams and consumers.
	DescriptionBytesMax = 4096
	// MetadataBytesMax bounds the sum of key and value bytes of a metadata map.
	MetadataBytesMax = 128 * 1024
	// NamesPageMax is the number of names in one page of a names response.
	NamesPageMax = 1024
	// ListPageMax is the number of infos in one page of a list response.
	ListPageMax = 256
	// SubjectsPageMax is the number of subjects in one page of a stream info response.
	SubjectsPageMax = 100_000
	// ReplicasMax is the largest number of replicas of a stream.
	ReplicasMax = 5
	// MultiLastSubjectsMax is the number of subjects that one multi_last direct get may match.
	MultiLastSubjectsMax = 1024
	// ConsumersDefaultMax bounds the consumers of a stream when neither stream nor account set a limit.
	ConsumersDefaultMax = 1000
)
