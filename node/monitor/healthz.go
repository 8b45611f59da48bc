package monitor

import (
	"encoding/json"
	"fmt"

	"weir/spec/assert"
)

// healthz is the document of /healthz.
type healthz struct {
	Status string        `json:"status"`
	Error  string        `json:"error,omitempty"`
	Errors []healthError `json:"errors,omitempty"`
	code   int
}

type healthError struct {
	Type     string `json:"type"`
	Account  string `json:"account,omitempty"`
	Stream   string `json:"stream,omitempty"`
	Consumer string `json:"consumer,omitempty"`
	Error    string `json:"error"`
}

// The kinds of health errors.
const (
	healthBadRequest = "BAD_REQUEST"
	healthJetStream  = "JETSTREAM"
	healthAccount    = "ACCOUNT"
	healthStream     = "STREAM"
	healthConsumer   = "CONSUMER"
)

// healthQuery is what a probe asks for.
type healthQuery struct {
	account, stream, consumer string
	details                   bool
	serverOnly, enabledOnly   bool
	metaOnly                  bool
}

// healthz answers a probe: parameters first, then whether persistence is ready, then what was asked for by name.
func (r *request) healthz() Answer {
	q := queryErr{query: r.query}
	h := healthQuery{account: r.query.Get("account"), stream: r.query.Get("stream"), consumer: r.query.Get("consumer")}
	h.details, h.serverOnly = q.truth("details"), q.truth("js-server-only")
	h.enabledOnly = q.truth("js-enabled-only")
	h.enabledOnly = q.truth("js-enabled") || h.enabledOnly
	h.metaOnly = q.truth("js-meta-only")
	if q.err != nil {
		return text(statusBadRequest, q.err.Error())
	}
	doc := healthz{Status: "ok", code: statusOK}
	switch {
	case h.account == "" && h.stream != "":
		doc.fail(statusBadRequest, healthError{Type: healthBadRequest, Error: errNoAccount.Error()})
	case h.stream == "" && h.consumer != "":
		doc.fail(statusBadRequest, healthError{Type: healthBadRequest, Error: errNoStream.Error()})
	case !h.serverOnly:
		snapshot := r.source.Snapshot(Want{Streams: true, Consumers: h.consumer != ""})
		if snapshot.JetStream != nil && !h.enabledOnly {
			doc.check(&snapshot, &h)
		}
	}
	return doc.answer(h.details)
}

// check looks for what is not served, or not served as the rest of the cluster does.
func (d *healthz) check(s *Snapshot, q *healthQuery) {
	j := s.JetStream
	switch {
	case j.Failure != "":
		d.fail(statusUnavailable, healthError{Type: healthJetStream, Error: "JetStream meta layer write error: " + j.Failure})
		return
	case q.account != "":
		d.checkNamed(j, q)
		return
	case s.Cluster != nil && (!d.checkMeta(s.Cluster.Meta) || q.metaOnly):
		return
	}
	if j.Recovering > 0 {
		d.fail(statusUnavailable, healthError{Type: healthJetStream, Error: "JetStream is still recovering meta layer"})
	}
	for i := range j.Accounts {
		for k := range j.Accounts[i].Streams {
			d.checkStream(j.Accounts[i].Name, &j.Accounts[i].Streams[k])
		}
	}
}

// checkMeta looks at the group of the catalog.
func (d *healthz) checkMeta(m *MetaGroup) bool {
	reason := ""
	switch {
	case m == nil:
		reason = "JetStream meta layer is not running"
	case m.Removed:
		reason = "this server was removed from the JetStream cluster"
	case m.Leader == "":
		reason = "JetStream has not established contact with a meta leader"
	case m.Behind != "":
		reason = "JetStream is not current with the meta leader: " + m.Behind
	case m.Unsaved != "":
		reason = "JetStream meta layer write error: " + m.Unsaved
	default:
		return true
	}
	d.fail(statusUnavailable, healthError{Type: healthJetStream, Error: reason})
	return false
}

func (d *healthz) checkStream(account string, s *Stream) {
	var text string
	switch {
	case s.Failure != "":
		text = fmt.Sprintf("JetStream stream '%s > %s' could not be recovered: %s", account, s.Info.Config.Name, s.Failure)
	case s.Damage != "":
		text = fmt.Sprintf("JetStream stream '%s > %s' has damaged data: %s", account, s.Info.Config.Name, s.Damage)
	case s.Unsaved != "":
		text = fmt.Sprintf("JetStream stream '%s > %s' write error: %s", account, s.Info.Config.Name, s.Unsaved)
	case s.Behind != "":
		text = fmt.Sprintf("JetStream stream '%s > %s' is not current: %s", account, s.Info.Config.Name, s.Behind)
	default:
		return
	}
	d.fail(statusUnavailable, healthError{Type: healthStream, Account: account, Stream: s.Info.Config.Name, Error: text})
}

// checkNamed looks at one account, stream or consumer.
func (d *healthz) checkNamed(j *JetStream, q *healthQuery) {
	var account *Account
	for i := range j.Accounts {
		if j.Accounts[i].Name == q.account {
			account = &j.Accounts[i]
		}
	}
	if account == nil {
		d.fail(statusNotFound, healthError{
			Type: healthAccount, Account: q.account, Error: fmt.Sprintf("JetStream account %q not found", q.account),
		})
		return
	}
	found := false
	for i := range account.Streams {
		s := &account.Streams[i]
		if q.stream != "" && s.Info.Config.Name != q.stream {
			continue
		}
		found = true
		d.checkStream(account.Name, s)
		if q.consumer != "" && !s.has(q.consumer) {
			d.fail(statusNotFound, healthError{
				Type: healthConsumer, Account: q.account, Stream: q.stream, Consumer: q.consumer,
				Error: fmt.Sprintf("JetStream consumer %q not found for stream %q on account %q", q.consumer, q.stream, q.account),
			})
		}
	}
	if q.stream != "" && !found {
		d.fail(statusNotFound, healthError{
			Type: healthStream, Account: q.account, Stream: q.stream,
			Error: fmt.Sprintf("JetStream stream %q not found on account %q", q.stream, q.account),
		})
	}
}

func (s *Stream) has(consumer string) bool {
	for i := range s.Consumers {
		if s.Consumers[i].Name == consumer {
			return true
		}
	}
	return false
}

// fail notes an error; the first one decides about the status.
func (d *healthz) fail(code int, e healthError) {
	if len(d.Errors) == 0 {
		d.code = code
	}
	d.Errors = append(d.Errors, e)
}

// answer writes the compact document. Without details the first error stands for all.
func (d *healthz) answer(details bool) Answer {
	if len(d.Errors) > 0 {
		d.Status = "unavailable"
		if d.code == statusBadRequest || details {
			d.Status = "error"
		}
		if !details {
			d.Error, d.Errors = d.Errors[0].Error, nil
		}
	}
	body, err := json.Marshal(d)
	assert.True(err == nil, "a document of plain fields encodes")
	return Answer{Status: d.code, ContentType: "application/json", Body: body}
}
