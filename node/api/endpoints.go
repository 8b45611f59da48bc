package api

import (
	"strings"

	"weir/model/jsapi"
	"weir/spec/assert"
)

// prefix is what every API subject begins with.
const prefix = "$JS.API."

// endpoint is one row of the API: which subject, which response, and who answers.
type endpoint struct {
	// words are the tokens between the prefix and the arguments, each with a final dot unless there are no arguments.
	words string
	// form says which arguments follow.
	form form
	// catalog says that the leader of the catalog answers, not that of the stream's group.
	catalog bool
	// system says that only the system account asks, and only in a cluster.
	system bool
	// kind is the type of the response.
	kind string
	// failed builds the response that carries an error: the zero value of the response in the reference server.
	failed func(jsapi.Response) any
	// bodyFirst, if any, checks the body before everything else and reports whether to go on.
	bodyFirst func(*call, []byte) bool
	// run answers the request.
	run func(*call, []byte)
	// direct, if any, replaces everything above: such requests are answered by messages, not by JSON.
	direct func(*call, *Request) Outcome
}

// form is which arguments follow the words of an endpoint.
type form uint8

const (
	noArgs form = iota
	streamArg
	consumerArgs   // stream and consumer
	createArgs     // stream, then optionally a consumer, then optionally a filter
	streamTailArgs // stream, then at least one token of a subject
)

// arguments are the variable tokens of a subject.
type arguments struct {
	stream, consumer, tail string
}

func success(r jsapi.Response) any { return jsapi.SuccessResponse{Response: r} }

func bare(r jsapi.Response) any { return r }

func failedStreamInfo(r jsapi.Response) any { return jsapi.StreamInfoResponse{Response: r} }

func failedStreamNames(r jsapi.Response) any { return jsapi.StreamNamesResponse{Response: r} }

func failedStreamList(r jsapi.Response) any {
	return jsapi.StreamListResponse{Response: r, Streams: []*jsapi.StreamInfo{}}
}

func failedPurge(r jsapi.Response) any { return jsapi.PurgeResponse{Response: r} }

func failedConsumerNames(r jsapi.Response) any {
	return jsapi.ConsumerNamesResponse{Response: r, Consumers: []string{}}
}

func failedConsumerList(r jsapi.Response) any {
	return jsapi.ConsumerListResponse{Response: r, Consumers: []*jsapi.ConsumerInfo{}}
}

func failedRestore(r jsapi.Response) any { return jsapi.RestoreResponse{Response: r} }

func failedPause(r jsapi.Response) any { return jsapi.PauseResponse{Response: r} }

func failedReset(r jsapi.Response) any { return jsapi.ResetResponse{Response: r} }

// systemEndpoint stands for all that the system account asks for. It is never admitted.
var systemEndpoint = endpoint{kind: jsapi.TypeSystem, failed: bare, run: func(*call, []byte) {
	assert.Unreachable("the system account is never admitted")
}}

// endpoints returns the table, the most frequent rows first.
func endpoints() []endpoint {
	return []endpoint{
		{words: "CONSUMER.MSG.NEXT.", form: consumerArgs, direct: (*call).next},
		{words: "DIRECT.GET.", form: streamArg, direct: (*call).directGet},
		{words: "DIRECT.GET.", form: streamTailArgs, direct: (*call).directGetLast},

		{words: "INFO", catalog: true, kind: jsapi.TypeAccountInfo, failed: bare, run: (*call).accountInfo},
		{words: "STREAM.INFO.", form: streamArg, kind: jsapi.TypeStreamInfo, failed: failedStreamInfo, run: (*call).streamInfo},
		{words: "STREAM.CREATE.", form: streamArg, catalog: true, kind: jsapi.TypeStreamCreate, failed: bare, run: (*call).streamCreate},
		{words: "STREAM.UPDATE.", form: streamArg, catalog: true, kind: jsapi.TypeStreamUpdate, failed: bare, run: (*call).streamUpdate},
		{words: "STREAM.DELETE.", form: streamArg, catalog: true, kind: jsapi.TypeStreamDelete, failed: success, run: (*call).streamDelete},
		{words: "STREAM.NAMES", catalog: true, kind: jsapi.TypeStreamNames, failed: failedStreamNames, run: (*call).streamNames},
		{words: "STREAM.LIST", catalog: true, kind: jsapi.TypeStreamList, failed: failedStreamList, run: (*call).streamList},
		{words: "STREAM.PURGE.", form: streamArg, kind: jsapi.TypeStreamPurge, failed: failedPurge, run: (*call).streamPurge},
		{words: "STREAM.MSG.GET.", form: streamArg, kind: jsapi.TypeMsgGet, failed: bare, run: (*call).msgGet},
		{words: "STREAM.MSG.DELETE.", form: streamArg, kind: jsapi.TypeMsgDelete, failed: success, run: (*call).msgDelete},

		{words: "CONSUMER.CREATE.", form: createArgs, kind: jsapi.TypeConsumerCreate, failed: bare,
			bodyFirst: (*call).decodeConsumer, run: (*call).consumerCreate},
		{words: "CONSUMER.DURABLE.CREATE.", form: consumerArgs, kind: jsapi.TypeConsumerCreate, failed: bare,
			bodyFirst: (*call).decodeConsumer, run: (*call).consumerCreate},
		{words: "CONSUMER.INFO.", form: consumerArgs, kind: jsapi.TypeConsumerInfo, failed: bare,
			bodyFirst: (*call).requireEmpty, run: (*call).consumerInfo},
		{words: "CONSUMER.NAMES.", form: streamArg, kind: jsapi.TypeConsumerNames, failed: failedConsumerNames,
			run: (*call).consumerNames},
		{words: "CONSUMER.LIST.", form: streamArg, kind: jsapi.TypeConsumerList, failed: failedConsumerList,
			run: (*call).consumerList},
		{words: "CONSUMER.DELETE.", form: consumerArgs, kind: jsapi.TypeConsumerDelete, failed: success,
			run: (*call).consumerDelete},

		{words: "STREAM.SNAPSHOT.", form: streamArg, kind: jsapi.TypeStreamSnapshot, failed: bare, run: (*call).snapshot},
		{words: "STREAM.RESTORE.", form: streamArg, catalog: true, kind: jsapi.TypeStreamRestore, failed: failedRestore, run: (*call).restore},
		{words: "STREAM.LEADER.STEPDOWN.", form: streamArg, kind: jsapi.TypeStreamStepDown, failed: success,
			run: (*call).streamStepDown},
		{words: "STREAM.PEER.REMOVE.", form: streamArg, catalog: true, kind: jsapi.TypeStreamRemovePeer, failed: success,
			run: (*call).streamPeerRemove},
		{words: "STREAM.PEER.EVACUATE.", form: streamArg, catalog: true, kind: jsapi.TypeStreamEvacuate, failed: success,
			run: (*call).streamPeerRemove},
		{words: "STREAM.CANCEL_MOVE.", form: streamArg, catalog: true, kind: jsapi.TypeStreamCancelMove, failed: bare,
			run: (*call).cancelMove},
		{words: "CONSUMER.LEADER.STEPDOWN.", form: consumerArgs, kind: jsapi.TypeConsumerStepDown, failed: success,
			run: (*call).consumerStepDown},
		{words: "CONSUMER.PEER.REMOVE.", form: consumerArgs, kind: jsapi.TypeConsumerRemove, failed: success,
			run: (*call).consumerPeerRemove},
		{words: "CONSUMER.PEER.EVACUATE.", form: consumerArgs, kind: jsapi.TypeConsumerEvacuate, failed: success,
			run: (*call).consumerPeerRemove},
		{words: "CONSUMER.PAUSE.", form: consumerArgs, kind: jsapi.TypeConsumerPause, failed: failedPause,
			run: (*call).consumerUnsupported},
		{words: "CONSUMER.UNPIN.", form: consumerArgs, kind: jsapi.TypeConsumerUnpin, failed: bare,
			run: (*call).consumerUnsupported},
		{words: "CONSUMER.RESET.", form: consumerArgs, kind: jsapi.TypeConsumerReset, failed: failedReset,
			direct: (*call).reset},
	}
}

// systemEndpoints are what the system account asks of a cluster.
func systemEndpoints() []endpoint {
	return []endpoint{
		{words: "META.LEADER.STEPDOWN", kind: jsapi.TypeMetaStepDown, failed: success, run: (*call).metaStepDown},
		{words: "SERVER.REMOVE", kind: jsapi.TypeMetaServerRemove, failed: success, run: (*call).serverRemove},
		{words: "SERVER.EVACUATE", kind: jsapi.TypeMetaServerEvac, failed: success, run: (*call).serverEvacuate},
		{words: "ACCOUNT.PURGE.", form: streamArg, kind: jsapi.TypeAccountPurge, failed: failedPurgeAccount,
			run: (*call).accountPurge},
		{words: "ACCOUNT.STREAM.MOVE.", form: consumerArgs, kind: jsapi.TypeStreamUpdate, failed: bare,
			run: (*call).accountStreamMove},
		{words: "ACCOUNT.STREAM.CANCEL_MOVE.", form: consumerArgs, kind: jsapi.TypeStreamCancelMove, failed: bare,
			run: (*call).accountStreamCancelMove},
	}
}

// table is never changed.
var table = allEndpoints()

func allEndpoints() []endpoint {
	all := endpoints()
	for _, e := range systemEndpoints() {
		e.system, e.catalog = true, true
		all = append(all, e)
	}
	return all
}

// find returns the row for the subject and its arguments.
func find(subject string) (*endpoint, arguments, bool) {
	rest, ok := strings.CutPrefix(subject, prefix)
	if !ok || strings.Contains(rest, "..") || strings.HasSuffix(rest, ".") {
		return nil, arguments{}, false
	}
	for i := range table {
		e := &table[i]
		if e.form == noArgs {
			if rest == e.words {
				return e, arguments{}, true
			}
			continue
		}
		tail, ok := strings.CutPrefix(rest, e.words)
		if !ok || tail == "" {
			continue
		}
		if args, ok := e.form.parse(tail); ok {
			return e, args, true
		}
	}
	return nil, arguments{}, false
}

// parse splits the tokens that follow the words of an endpoint.
func (f form) parse(tail string) (arguments, bool) {
	stream, rest, more := strings.Cut(tail, ".")
	switch f {
	case streamArg:
		return arguments{stream: stream}, !more
	case streamTailArgs:
		return arguments{stream: stream, tail: rest}, more
	}
	consumer, filter, filtered := strings.Cut(rest, ".")
	args := arguments{stream: stream, consumer: consumer, tail: filter}
	switch f {
	case consumerArgs:
		return args, more && !filtered
	case createArgs:
		return args, true
	}
	return arguments{}, false
}
