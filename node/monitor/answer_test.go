package monitor

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"weir/model/jsapi"
)

const start = int64(1_800_000_000_123_456_789)

// fixed is a source with a server of two clients, a closed one, and a stream with a consumer.
// Clustered, it is a member of a cluster of three, which the first server leads, or nobody.
type fixed struct{ jetStream, broken, clustered, leaderless, leads bool }

func (f fixed) Server() Server {
	s := Server{
		ID: "NID", Name: "n1", Version: "2.15.2", GoVersion: "go1.26", Host: "0.0.0.0", Port: 4222, HTTPHost: "0.0.0.0", HTTPPort: 8222,
		MaxConnections: 65536, PingMax: 2, MaxControlLine: 4096, MaxPayload: 1 << 20, MaxPending: 64 << 20,
		PingIntervalNanos: 120e9, AuthTimeoutNanos: 1_500_000_000, WriteDeadlineNanos: 10e9, StartNanos: start, ConfigNanos: start,
		SystemAccount: "$SYS", MemoryBytes: 1 << 24, Cores: 2, MaxProcs: 2, CPU: 1.5, Requests: map[string]uint64{"/varz": 1, "/": 2},
		TLSTimeoutNanos: 2e9,
	}
	if f.clustered {
		s.TLSRequired, s.TLSVerify, s.CertificateEndNanos = true, true, start
		s.Cluster = ClusterOptions{Name: "C1", Host: "0.0.0.0", Port: 6222, URLs: []string{"n2:6222", "n3:6222"}, AuthTimeoutNanos: 2e9, TLSTimeoutNanos: 2e9, TLS: true}
		s.Routes = []Route{
			{ID: 5, RemoteID: "NTWO", RemoteName: "n2", IP: "10.0.0.2", Port: 6222, Solicited: true, Configured: true, StartNanos: start,
				LastNanos: start + 90_060e9, InMsgs: 1, OutMsgs: 2, InBytes: 30, OutBytes: 40, Pending: 5},
			{ID: 7, RemoteID: "NTHREE", RemoteName: "n3", IP: "10.0.0.3", Port: 40000, StartNanos: start, LastNanos: start},
		}
	}
	return s
}

func (f fixed) Snapshot(w Want) Snapshot {
	s := Snapshot{
		NowNanos:      start + 90_061e9,
		Traffic:       Traffic{InMsgs: 10, InBytes: 100, OutMsgs: 20, OutBytes: 200, TotalConnections: 3, OpenConnections: 2},
		Subscriptions: Interest{Count: 2, Inserts: 3, Removes: 1, Matches: 4, Hits: 2, Cached: 1},
	}
	if w.Connections {
		s.Connections = []Connection{
			{ID: 1, IP: "127.0.0.1", Port: 1001, StartNanos: start, LastNanos: start + 60e9, RTTNanos: 382_000, InMsgs: 5, Subscriptions: 1,
				Name: "one", Lang: "go", Version: "1.55.0", User: "joe", Account: "$G"},
			{ID: 2, IP: "127.0.0.1", Port: 1002, StartNanos: start + 1e9, LastNanos: start + 2e9, InMsgs: 9, PendingBytes: 7, Subscriptions: 1,
				Account: "A", TLS: &TLS{Version: "1.3", Cipher: "TLS_AES_128_GCM_SHA256", First: true,
					Peers: []PeerCertificate{{Subject: "CN=two", KeySum: "aa", Sum: "bb"}}}},
		}
		if w.Subscriptions {
			s.Connections[0].List = []Subscription{{Subject: "foo.*", Queue: "q", SID: "1", Msgs: 3, Max: 9}}
			s.Connections[1].List = []Subscription{{Subject: "bar", SID: "7"}}
		}
	}
	if w.Closed {
		s.Closed = []Connection{{ID: 3, IP: "::1", Port: 5, StartNanos: start, LastNanos: start + 1e9, StopNanos: start + 3e9,
			Reason: "Client Closed", Account: "$G", Subscriptions: 1, List: []Subscription{{Subject: "baz", SID: "4"}}}}
	}
	s.Tenants = []Tenant{
		{Name: "$G", JetStream: f.jetStream, Connections: 1, Subscriptions: 1, InMsgs: 1, InBytes: 10, OutMsgs: 2, OutBytes: 20},
		{Name: "$SYS"}, {Name: "A", Connections: 1, Subscriptions: 1, SlowConsumers: 1},
	}
	if f.clustered {
		s.Cluster = &Cluster{Name: "C1", ActiveServers: 3}
	}
	if !f.jetStream {
		return s
	}
	if f.clustered {
		s.Cluster.Meta = f.meta()
	}
	s.JetStream = &JetStream{
		StoreDir: "data/jetstream", MaxMemory: 1 << 30, MaxStorage: 1 << 34, Strict: true, Limits: JetStreamLimits{DefaultMaxConsumers: 1000},
		Storage: 43, APITotal: 5, APIErrors: 1, APILevel: 5, Streams: 1, Consumers: 1, Messages: 1, Bytes: 43,
		StreamsLed: 1, ConsumersLed: 1,
		Accounts: []Account{{Name: "$G", Storage: 43, ReservedMemory: -1, ReservedStorage: -1, APITotal: 5, APIErrors: 1}},
	}
	if w.Streams {
		stream := Stream{RaftGroup: "S-R1F-1", Info: jsapi.StreamInfo{
			Config: jsapi.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}, Created: jsapi.Time(start),
			State:   jsapi.StreamState{Msgs: 1, Bytes: 43, FirstSeq: 1, LastSeq: 1, Consumers: 1},
			Cluster: &jsapi.ClusterInfo{Leader: "n1"},
		}}
		stream.Led = !f.clustered
		if f.clustered {
			stream.Info.Cluster = &jsapi.ClusterInfo{Name: "C1", Leader: "n2", Replicas: []*jsapi.PeerInfo{
				{Name: "n1", Active: 5, Lag: 3, Peer: "AAAAAAAA"}, {Name: "n2", Current: true, Peer: "BBBBBBBB"}}}
			stream.Behind = "3 entries behind"
		}
		if f.broken {
			stream.Failure = "block 3 is damaged"
		}
		if w.Consumers {
			stream.Consumers = []jsapi.ConsumerInfo{{Stream: "ORDERS", Name: "c1", Config: &jsapi.ConsumerConfig{Durable: "c1"}, NumPending: 1}}
		}
		s.JetStream.Accounts[0].Streams = []Stream{stream}
	}
	return s
}

func (f fixed) meta() *MetaGroup {
	m := &MetaGroup{Leader: "n1", Peer: "AAAAAAAA", Leading: f.leads, Size: 3, Quorum: 2, SavedNanos: start, SaveNanos: 7,
		Replicas: []*jsapi.PeerInfo{{Name: "n2", Current: true, Active: 9, Peer: "BBBBBBBB"}, {Name: "n3", Offline: true, Peer: "CCCCCCCC"}}}
	if f.leaderless {
		m.Leader, m.Peer = "", ""
	}
	return m
}

// TestAnswers holds status, type and body of answers against the files under testdata.
func TestAnswers(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		source := fixed{jetStream: true}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "source":
				source = fixed{jetStream: d.HasArg("jetstream"), broken: d.HasArg("broken"),
					clustered: d.HasArg("clustered"), leaderless: d.HasArg("leaderless"), leads: d.HasArg("leads")}
				return ""
			case "ask": // ask what [account=name], then the body
				q := Question{What: d.CmdArgs[0].Key, Body: []byte(strings.TrimSpace(d.Input))}
				d.MaybeScanArgs(t, "account", &q.Account)
				reply, meant := Ask(q, source)
				switch {
				case !meant:
					return "silence\n"
				case reply.Code != 0:
					return fmt.Sprintf("%s error %d %s\n", reply.Data, reply.Code, reply.Error)
				}
				return string(reply.Data) + "\n"
			case "get":
				u, err := url.Parse(strings.TrimSpace(d.Input))
				if err != nil {
					t.Fatal(err)
				}
				a := Handle(u.Path, u.Query(), source)
				body := strings.TrimSuffix(string(a.Body), "\n")
				// A blank line would end the expectation.
				return fmt.Sprintf("%d %s\n%s\n", a.Status, a.ContentType, strings.ReplaceAll(body, "\n\n", "\n"))
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

func TestUptimeHasNoLeadingZeroUnits(t *testing.T) {
	for nanos, want := range map[int64]string{
		-1: "0s", 0: "0s", 59_999_999_999: "59s", 60e9: "1m0s", 3_600e9: "1h0m0s", 86_400e9: "1d0h0m0s", 366 * 86_400e9: "1y1d0h0m0s",
		1427e9: "23m47s",
	} {
		if got := uptime(nanos); got != want {
			t.Errorf("uptime of %d ns is %s, want %s", nanos, got, want)
		}
	}
}
