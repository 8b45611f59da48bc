package api

import (
	"strings"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/model/stream"
	"weir/model/subject"
)

// world is a node without log and disk: a proposal is applied at once, a barrier is always open. With defer_ set,
// fetches and proposals complete only when drain is called.
type world struct {
	api      *API
	catalog  *meta.Machine
	streams  map[uint64]*stream.Machine
	messages map[uint64]map[uint64]Message
	limits   jsapi.Limits
	now      int64
	random   uint64
	replies  []published
	pulls    []string
	interest map[string]bool
	// unreadable are the sequences that storage cannot read.
	unreadable map[uint64]bool
	bound      bool

	deferring bool
	deferred  []func()
}

type published struct {
	subject      string
	header, body []byte
}

func newWorld() *world {
	w := &world{
		catalog: meta.New(), streams: map[uint64]*stream.Machine{}, messages: map[uint64]map[uint64]Message{},
		limits: jsapi.Limits{Account: jsapi.Unlimited()}, now: 1_700_000_000_000_000_000, interest: map[string]bool{},
	}
	config := Config{ServerName: "srv", Strict: true, PendingBytes: 64 << 20}
	w.api = New(config, Backend{State: w, Groups: w, Broker: w})
	return w
}

func (w *world) Now() int64             { return w.now }
func (w *world) Random() uint64         { w.random++; return w.random * 0x9e3779b97f4a7c15 }
func (w *world) Catalog() *meta.Machine { return w.catalog }

func (w *world) Stream(group uint64) (Stream, bool) {
	s, ok := w.streams[group]
	return s, ok
}

func (w *world) Activity(uint64, uint64) (int, bool) { return 0, w.bound }

func (w *world) Mirror(group uint64) *jsapi.StreamSourceInfo {
	if config := w.streams[group].Config(); config.Mirror != nil {
		return &jsapi.StreamSourceInfo{Name: config.Mirror.Name, Active: -1}
	}
	return nil
}

func (w *world) Limits(string) (*jsapi.Limits, bool) { return &w.limits, true }

func (w *world) later(f func()) {
	if w.deferring {
		w.deferred = append(w.deferred, f)
		return
	}
	f()
}

func (w *world) drain() {
	for len(w.deferred) > 0 {
		f := w.deferred[0]
		w.deferred = w.deferred[1:]
		f()
	}
}

func (w *world) Consult(_ uint64, done func(bool)) { done(true) }

func (w *world) Barrier(_ uint64, then func(*jsapi.Error)) { w.later(func() { then(nil) }) }

func (w *world) Propose(group uint64, c *command.Command, done func(*effect.Effect)) {
	batch := command.Append(command.AppendHeader(nil, w.now, 1), c)
	w.later(func() {
		w.now++
		var out effect.List
		if group == meta.Group {
			w.catalog.Apply(w.catalog.Applied()+1, batch, &out)
			w.follow(&out)
		} else {
			s, ok := w.streams[group]
			if !ok {
				done(&effect.Effect{Kind: effect.Result, Err: jsapi.CodeClusterNotAvail.Err()})
				return
			}
			s.Apply(s.Applied()+1, batch, &out)
			w.keep(group, &out)
		}
		for i := range out.Effects {
			if out.Effects[i].Kind == effect.Result {
				done(&out.Effects[i])
				return
			}
		}
	})
}

func (w *world) follow(out *effect.List) {
	for _, e := range out.Effects {
		switch e.Kind {
		case effect.GroupCreated:
			entry := w.catalog.ByGroup(e.Group)
			w.streams[e.Group] = stream.New(stream.Options{
				Account: entry.Account, Name: entry.Name, Config: entry.Config, ConfigVersion: entry.Version,
				Created: entry.Created, Incarnation: entry.Group,
			})
			w.messages[e.Group] = map[uint64]Message{}
		case effect.GroupDeleted:
			delete(w.streams, e.Group)
			delete(w.messages, e.Group)
		}
	}
}

func (w *world) keep(group uint64, out *effect.List) {
	for _, e := range out.Effects {
		switch e.Kind {
		case effect.Store:
			w.messages[group][e.Seq] = Message{Header: e.Header, Payload: e.Payload}
		case effect.Forget:
			for seq := e.Seq; seq <= e.N; seq++ {
				delete(w.messages[group], seq)
			}
		case effect.ConsumerCreated:
			w.api.ConsumerCreated("A", w.streams[group].Name(), e.Text)
		case effect.ConsumerDeleted:
			w.api.ConsumerDeleted("A", w.streams[group].Name(), e.Text)
		}
	}
}

func (w *world) Fetch(group, seq uint64, done func(Message, Reading)) {
	w.later(func() {
		m, ok := w.messages[group][seq]
		switch {
		case w.unreadable[seq]:
			done(m, ReadFailed)
		case ok:
			done(m, ReadOK)
		default:
			done(m, ReadGone)
		}
	})
}

func (w *world) Reply(_, subject string, header, body []byte) {
	w.replies = append(w.replies, published{subject, header, body})
}

func (w *world) HasInterest(_, subject string) bool { return w.interest[subject] }

func (w *world) Pull(_, _ uint64, r *Request) { w.pulls = append(w.pulls, r.Subject) }

// publish stores a message in the stream that captures it and reports whether there is one.
func (w *world) publish(to string, header, payload []byte) bool {
	for _, entry := range w.catalog.Streams("A") {
		for _, captured := range entry.Config.Subjects {
			if subject.Matches(to, captured) {
				c := command.Command{Kind: command.Publish, Subject: []byte(to), Header: header, Payload: payload}
				w.Propose(entry.Group, &c, func(*effect.Effect) {})
				return true
			}
		}
	}
	return false
}

// request sends a request and returns everything that was published to its reply subject.
func (w *world) request(tail string, header []byte, body string) ([]published, Outcome) {
	w.replies = nil
	outcome := w.api.Handle(&Request{
		Account: "A", Subject: "$JS.API." + tail, Reply: "_INBOX.1", Header: header, Body: []byte(body),
	})
	w.drain()
	var answers []published
	for _, p := range w.replies {
		if strings.HasPrefix(p.subject, "_INBOX.") {
			answers = append(answers, p)
		}
	}
	return answers, outcome
}
