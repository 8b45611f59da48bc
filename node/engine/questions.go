package engine

import (
	"encoding/json"
	"strings"

	"weir/model/jsapi"
	"weir/node/monitor"
	"weir/node/route"
	"weir/spec/assert"
)

// Process is what the edge knows about the process and the engine does not.
type Process interface {
	// Server describes the server.
	Server() monitor.Server
	// Complete adds to a snapshot what the engine does not know.
	Complete(*monitor.Snapshot)
}

// pingSubject is where servers are looked for.
const pingSubject = "$SYS.REQ.SERVER.PING"

const accountPrefix = "$SYS.REQ.ACCOUNT."

// questions is the engine as the receiver of questions about the server, on $SYS.REQ.
type questions Engine

// serveQuestions subscribes to what clients of an account may ask: those of the system account everything about
// everybody, others how their own account does.
func (e *Engine) serveQuestions(a *account) {
	subscribe := func(pattern string) {
		a.routes.Subscribe(&route.Sub{Receiver: (*questions)(e), Pattern: pattern, Handler: a.number})
	}
	if a.name != e.config.SystemAccount {
		subscribe(pingSubject + ".CONNZ")
		subscribe(accountPrefix + "PING.CONNZ")
		subscribe(accountPrefix + "PING.STATZ")
		return
	}
	subscribe(pingSubject)
	subscribe(pingSubject + ".IDZ")
	subscribe("$SYS.REQ.SERVER." + e.config.ServerID + ".IDZ")
	for _, what := range monitor.Questions() {
		switch what {
		case "INFO", "STATZ":
		default:
			subscribe(pingSubject + "." + what)
			subscribe("$SYS.REQ.SERVER." + e.config.ServerID + "." + what)
		}
		switch what {
		case "CONNZ", "SUBSZ", "LEAFZ", "JSZ", "INFO", "STATZ":
			subscribe(accountPrefix + "*." + what)
		}
	}
}

// Deliver answers a question of a client of this server or, where all are asked, of another one. The server itself does
// not ask.
func (q *questions) Deliver(sub *route.Sub, m *route.Message) bool {
	e := (*Engine)(q)
	if !m.Routed && e.sessions[m.From] == nil {
		return false
	}
	if len(m.Reply) == 0 {
		return true
	}
	a := e.servedBy(sub)
	subject := string(m.Subject)
	what := subject[strings.LastIndexByte(subject, '.')+1:]
	if what == "IDZ" {
		id := struct {
			Name string `json:"name"`
			Host string `json:"host"`
			ID   string `json:"id"`
		}{e.config.ServerName, e.config.Host, e.config.ServerID}
		a.sendJSON(m.Reply, &id)
		return true
	}
	question := monitor.Question{What: what, Body: m.Payload}
	if subject == pingSubject {
		question.What = "STATSZ"
	}
	if a.name != e.config.SystemAccount {
		question.Account = a.name
	} else if rest, ok := strings.CutPrefix(subject, accountPrefix); ok {
		if of := rest[:strings.LastIndexByte(rest, '.')]; of != "PING" {
			question.Account = of
		}
	}
	if reply, meant := monitor.Ask(question, (*asked)(e)); meant {
		e.answerQuestion(a, m.Reply, &question, &reply)
	}
	return true
}

// answerQuestion sends a reply in its envelope.
func (e *Engine) answerQuestion(a *account, to []byte, q *monitor.Question, r *monitor.Reply) {
	if q.What == "STATSZ" && r.Code == 0 {
		a.sendJSON(to, &struct {
			Server serverInfo      `json:"server"`
			Stats  json.RawMessage `json:"statsz"`
		}{e.describeServer(), r.Data})
		return
	}
	var failed *jsapi.Error
	if r.Code != 0 {
		failed = &jsapi.Error{Code: r.Code, Description: r.Error}
	}
	a.sendJSON(to, &struct {
		Server serverInfo      `json:"server"`
		Data   json.RawMessage `json:"data,omitempty"`
		Error  *jsapi.Error    `json:"error,omitempty"`
	}{e.describeServer(), r.Data, failed})
}

// sendJSON publishes a message of the server itself.
func (a *account) sendJSON(to []byte, v any) {
	body, err := json.Marshal(v)
	assert.True(err == nil, "plain fields can be encoded")
	a.send(to, nil, body)
}

// tlsTimeoutNanos is shown as the bound of handshakes where nobody knows of one.
const tlsTimeoutNanos = int64(2e9)

// asked is the engine as the source of answers.
type asked Engine

// Server implements monitor.Source.
func (a *asked) Server() monitor.Server {
	if p := a.config.Process; p != nil {
		return p.Server()
	}
	return monitor.Server{
		ID: a.config.ServerID, Name: a.config.ServerName, Version: jsapi.Version, GoVersion: a.config.GoVersion,
		Host: a.config.Host, Port: a.config.Port, StartNanos: a.counters.start.Wall, SystemAccount: a.config.SystemAccount,
		TLSRequired: a.config.Protection.Required, TLSVerify: a.config.Protection.Verify, TLSTimeoutNanos: tlsTimeoutNanos,
	}
}

// Snapshot implements monitor.Source.
func (a *asked) Snapshot(want monitor.Want) monitor.Snapshot {
	e := (*Engine)(a)
	s := e.Snapshot(e.now, want)
	if p := e.config.Process; p != nil {
		p.Complete(&s)
	}
	return s
}
