package session

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"weir/node/auth"
	"weir/node/event"
	"weir/transport/wire"
)

// script runs one file: a broker and its clients.
type script struct {
	t      *testing.T
	broker *broker
	config *Config
	order  []event.ConnID
	seen   map[event.ConnID]int
	told   map[event.ConnID]bool
}

// TestSessionsAsRecorded runs the conversations in testdata. Their answers were compared with those of the reference
// server where it can be made to show them.
func TestSessionsAsRecorded(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Dir(path) != "testdata" {
			return // cases that rapid or the fuzzer left
		}
		var s *script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if s == nil || d.Cmd == "server" {
				s = &script{broker: newBroker(), config: testConfig(), seen: map[event.ConnID]int{}, told: map[event.ConnID]bool{}}
			}
			s.t = t
			return s.run(d)
		})
	})
}

func (s *script) run(d *datadriven.TestData) string {
	switch d.Cmd {
	case "server": // server [users] [narrow] [elsewhere] [mapped] [tls] [optional] [token=t] [anonymous] [pending=n] [subs=n] [line=n] [payload=n]
		s.configure(d)
		return ""
	case "open": // open id [guarded|silent]
		id, start := s.id(d), event.Plain
		switch {
		case d.HasArg("guarded"):
			start = event.Guarded
		case d.HasArg("silent"):
			start = event.Silent
		}
		s.order = append(s.order, id)
		s.broker.begin(id, s.config, start)
	case "greet": // greet id: a silent client waits for INFO
		s.broker.clients[s.id(d)].session.Greet()
		s.broker.drain()
	case "secured": // secured id [plain] [holder]: it is settled whether the connection is protected
		tls := &event.TLS{Version: "1.3"}
		name := ""
		if d.MaybeScanArgs(s.t, "holder", &name); name != "" {
			tls.Certificate = &auth.Certificate{Names: []string{name}}
		}
		if d.HasArg("plain") {
			tls = nil
		}
		s.broker.clients[s.id(d)].session.Secured(tls, nil)
		s.broker.drain()
	case "send": // send id, then bytes with Go escapes; line ends of the script do not count
		var data []byte
		for line := range strings.Lines(d.Input) {
			data = append(data, unescape(s.t, strings.TrimSuffix(line, "\n"))...)
		}
		s.broker.send(s.broker.clients[s.id(d)], data)
	case "hold": // hold id: the client leaves its bytes unread
		s.broker.clients[s.id(d)].holds = true
	case "advance": // advance duration
		nanos, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			s.t.Fatal(err)
		}
		s.broker.advance(int64(nanos))
	case "lameduck":
		s.broker.clients[s.id(d)].session.LameDuck()
		s.broker.drain()
	case "reload": // reload id, and the rest as server: the users have changed
		s.configure(d)
		removed := s.broker.clients[s.id(d)].session.Reauthenticate()
		s.broker.drain()
		return s.news() + strings.Join(append(removed, ""), "\n")
	case "info": // info id: INFO has changed
		s.broker.clients[s.id(d)].session.SendInfo()
		s.broker.drain()
	case "measure": // measure id: monitoring wants the round trip
		s.broker.clients[s.id(d)].session.MeasureRoundTrip()
		s.broker.drain()
	case "drop": // drop id: the connection is gone
		s.broker.clients[s.id(d)].session.Disconnected(wire.ClientClosed)
	case "subs":
		return fmt.Sprintln(s.broker.Table(auth.GlobalAccount).Len())
	case "stats":
		st := s.broker.clients[s.id(d)].session.Stats()
		return fmt.Sprintf("in %d/%d out %d/%d rtt %v\n", st.InMsgs, st.InBytes, st.OutMsgs, st.OutBytes,
			time.Duration(st.RoundTripNanos))
	default:
		s.t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	return s.news()
}

func (s *script) id(d *datadriven.TestData) event.ConnID {
	n, err := strconv.ParseUint(d.CmdArgs[0].Key, 10, 64)
	if err != nil {
		s.t.Fatalf("%s: %v", d.Pos, err)
	}
	return event.ConnID(n)
}

func (s *script) configure(d *datadriven.TestData) {
	config := auth.Config{}
	if d.HasArg("users") {
		config.Users = []auth.User{{Name: "admin", Password: "secret"}, {Name: "limited", Password: "pw", Permissions: s.limited()}}
	}
	d.MaybeScanArgs(s.t, "token", &config.Token)
	if d.HasArg("narrow") {
		config.Users[0].Permissions = s.limited()
	}
	if d.HasArg("elsewhere") {
		config.Users[0].Account = "A"
	}
	config.MapCertificates = d.HasArg("mapped")
	if s.config.Info.TLSRequired = d.HasArg("tls"); d.HasArg("optional") {
		s.config.Info.TLSAvailable = true
	}
	if d.HasArg("anonymous") {
		config.NoAuthUser = "limited"
	}
	var err error
	if s.config.Auth, err = auth.New(config); err != nil {
		s.t.Fatal(err)
	}
	d.MaybeScanArgs(s.t, "pending", &s.config.PendingBytesMax)
	d.MaybeScanArgs(s.t, "subs", &s.config.SubscriptionsMax)
	d.MaybeScanArgs(s.t, "line", &s.config.Limits.ControlLineBytes)
	d.MaybeScanArgs(s.t, "payload", &s.config.Limits.PayloadBytes)
}

// limited are the permissions of the user of that name.
func (s *script) limited() *auth.Permissions {
	p, err := auth.NewPermissions(auth.PermissionsConfig{
		Publish:   auth.Rules{Allow: []string{"public.>"}, Deny: []string{"public.not"}},
		Subscribe: auth.Rules{Allow: []string{"public.>", "_INBOX.>", "work team"}, Deny: []string{"public.secret"}},
		Responses: &auth.Responses{Max: 1, ExpiresNanos: 60e9},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// news renders what clients received since the last time, a line per line.
func (s *script) news() string {
	var out strings.Builder
	for _, id := range s.order {
		c := s.broker.clients[id]
		text := string(c.received[s.seen[id]:])
		s.seen[id] = len(c.received)
		for line := range strings.Lines(text) {
			quoted := strconv.Quote(line)
			fmt.Fprintf(&out, "%d: %s\n", id, strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`))
		}
		if c.closed && !s.told[id] {
			s.told[id] = true
			fmt.Fprintf(&out, "%d closed: %s\n", id, c.reason)
		}
	}
	return out.String()
}

func unescape(t *testing.T, line string) string {
	raw, err := strconv.Unquote(`"` + strings.ReplaceAll(line, `"`, `\"`) + `"`)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return raw
}
