package engine

import (
	"bytes"
	"cmp"
	"slices"

	"weir/model/jsapi"
	"weir/node/route"
	"weir/spec/assert"
)

// globalAccount is the account of every client of a server without accounts.
const globalAccount = "$G"

// systemAccount is the system account of a configuration that names no other.
const systemAccount = "$SYS"

// Account is one account of the configuration. Accounts share nothing but the server: neither subjects nor streams.
type Account struct {
	// Name is the name, unique.
	Name string
	// JetStream are the limits of the account's streams; nil: the account has no streams.
	JetStream *jsapi.AccountLimits
}

// account is one account: who subscribes to what, and what its streams may hold.
type account struct {
	messages []*route.Message // those being routed by the server, one for each depth
	depth    int

	name   string
	number uint64 // its place in Engine.accounts, and the Handler of the server's own subscriptions
	routes *route.Table
	limits *jsapi.Limits // nil without JetStream
	// members is how many clients are bound to it.
	members int
}

// openAccounts makes the accounts of the configuration. A server without accounts has the global account, which may use
// all that the server allows; the system account is always there.
func (e *Engine) openAccounts() {
	configured := slices.Clone(e.config.Accounts)
	has := func(name string) bool {
		return slices.ContainsFunc(configured, func(a Account) bool { return a.Name == name })
	}
	if len(configured) == 0 {
		configured = append(configured, Account{Name: globalAccount, JetStream: &e.config.JetStream.Limits.Account})
	}
	for _, name := range []string{globalAccount, e.config.SystemAccount} {
		if !has(name) {
			configured = append(configured, Account{Name: name})
		}
	}
	slices.SortFunc(configured, func(a, b Account) int { return cmp.Compare(a.Name, b.Name) })
	e.accountNamed = make(map[string]*account, len(configured))
	for _, c := range configured {
		a := &account{name: c.Name, number: uint64(len(e.accounts)), routes: route.NewTable(&e.random)}
		assert.True(e.accountNamed[a.name] == nil, "names of accounts are unique", a.number)
		e.accounts = append(e.accounts, a)
		e.accountNamed[a.name] = a
		if c.JetStream != nil && e.config.JetStream.Enabled && a.name != e.config.SystemAccount {
			limits := e.config.JetStream.Limits
			limits.Account, limits.Clustered = *c.JetStream, e.clustered()
			a.limits = &limits
		}
		e.join(a)
		e.serve(a)
	}
}

// serve subscribes the parts of the engine that answer clients. An account without streams may ask too, and is told that
// it has none.
func (e *Engine) serve(a *account) {
	subscribe := func(pattern string, receiver route.Receiver) {
		a.routes.Subscribe(&route.Sub{Receiver: receiver, Pattern: pattern, Handler: a.number, Home: true})
	}
	subscribe(userInfoSubject, (*userInfos)(e))
	e.serveQuestions(a)
	for _, pattern := range e.ownSubjects(a) {
		switch pattern {
		case apiSubjects:
			subscribe(pattern, (*requests)(e))
		case ackSubjects:
			subscribe(pattern, (*acks)(e))
		case flowSubjects:
			subscribe(pattern, (*flowControls)(e))
		default:
			subscribe(pattern, (*domainRequests)(e))
		}
	}
}

// The subjects of JetStream itself.
const (
	apiSubjects  = "$JS.API.>"
	ackSubjects  = "$JS.ACK.>"
	flowSubjects = "$JS.FC.>"
)

// ownSubjects are the subjects of JetStream itself that this server takes in an account.
func (e *Engine) ownSubjects(a *account) []string {
	switch {
	case !e.config.JetStream.Enabled:
		return nil
	case a.limits == nil:
		return []string{apiSubjects}
	case e.config.JetStream.Domain == "":
		return []string{apiSubjects, ackSubjects, flowSubjects}
	default:
		return []string{apiSubjects, ackSubjects, flowSubjects, "$JS." + e.config.JetStream.Domain + ".API.>"}
	}
}

// domainRequests is the engine as the receiver of messages on $JS.<domain>.API.>, the form of subjects for clients that
// name the domain.
type domainRequests Engine

// Deliver routes the message again under the subject that it has without a domain. Buckets have their subjects there too:
// $JS.<domain>.API.$KV.> stands for $KV.>, and $OBJ likewise.
func (d *domainRequests) Deliver(sub *route.Sub, m *route.Message) bool {
	e := (*Engine)(d)
	local := m.Subject[len("$JS..API.")+len(e.config.JetStream.Domain):]
	if !bytes.HasPrefix(local, []byte("$KV.")) && !bytes.HasPrefix(local, []byte("$OBJ.")) {
		local = append([]byte("$JS.API."), local...)
	}
	mapped := *m
	mapped.Subject = local
	return e.servedBy(sub).routes.Route(local, &mapped) > 0
}

// servedBy is the account in which one of the server's own subscriptions is.
func (e *Engine) servedBy(sub *route.Sub) *account { return e.accounts[sub.Handler] }

// send publishes a message of the server itself.
func (a *account) send(to, hdr, payload []byte) {
	a.route(to, route.Message{Subject: to, Header: hdr, Payload: payload})
}

// route publishes a message of the server itself to a subject, and returns how many subscriptions took it. A receiver
// may make the server publish again, so each depth has a message of its own; none is allocated per message.
func (a *account) route(to []byte, m route.Message) int {
	if a.depth == len(a.messages) {
		a.messages = append(a.messages, new(route.Message))
	}
	kept := a.messages[a.depth]
	*kept = m
	a.depth++
	taken := a.routes.Route(to, kept)
	a.depth--
	*kept = route.Message{}
	return taken
}
