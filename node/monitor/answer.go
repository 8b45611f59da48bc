package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"weir/spec/assert"
)

// Answer is a response to an HTTP request.
type Answer struct {
	// Status is the HTTP status.
	Status int
	// ContentType is the value of that header.
	ContentType string
	// Body is the body; the caller owns it.
	Body []byte
}

// The HTTP statuses that answers have.
const (
	statusOK          = 200
	statusBadRequest  = 400
	statusNotFound    = 404
	statusUnavailable = 503
)

// Source yields the state of the server for one request.
type Source interface {
	// Server is the server's own description.
	Server() Server
	// Snapshot is the state of the engine now, with the parts that are wanted.
	Snapshot(Want) Snapshot
}

// request is one request on its way to an answer.
type request struct {
	query  url.Values
	source Source
}

// Paths are what the monitoring port answers, below its base path.
func Paths() []string {
	return []string{"/", "/varz", "/connz", "/subsz", "/subscriptionsz", "/jsz", "/healthz", "/routez", "/gatewayz",
		"/leafz", "/accountz", "/accstatz"}
}

// Handle answers the request for a path with a query. Unknown paths get status 404.
func Handle(path string, query url.Values, source Source) Answer {
	r := &request{query: query, source: source}
	var body any
	var err error
	switch path {
	case "/", "":
		return r.root()
	case "/varz":
		body = r.varz()
	case "/connz":
		body, err = r.connz()
	case "/subsz", "/subscriptionsz":
		body, err = r.subsz()
	case "/jsz":
		body, err = r.jsz()
	case "/healthz":
		return r.healthz()
	case "/routez":
		body = r.routez()
	case "/gatewayz":
		body = r.gatewayz()
	case "/leafz":
		body = r.leafz()
	case "/accountz":
		body, err = r.accountz()
	case "/accstatz":
		body, err = r.accstatz()
	default:
		return text(statusNotFound, "404 page not found\n")
	}
	if err != nil {
		return text(statusBadRequest, err.Error())
	}
	encoded, err := json.MarshalIndent(body, "", "  ")
	assert.True(err == nil, "a document of plain fields encodes")
	return Answer{Status: statusOK, ContentType: "application/json", Body: encoded}
}

func text(status int, body string) Answer {
	return Answer{Status: status, ContentType: "text/plain; charset=utf-8", Body: []byte(body)}
}

// queryErr keeps the first error of reading a query.
type queryErr struct {
	query url.Values
	err   error
}

func (q *queryErr) fail(kind, name string, err error) {
	if q.err == nil {
		//lint:ignore ST1005 The text is known to scripts.
		q.err = fmt.Errorf("Error decoding %s for '%s': %w", kind, name, err)
	}
}

func (q *queryErr) truth(name string) bool {
	value := q.query.Get(name)
	if value == "" {
		return false
	}
	on, err := strconv.ParseBool(value)
	if err != nil {
		q.fail("boolean", name, err)
	}
	return on
}

func (q *queryErr) integer(name string) int {
	value := q.query.Get(name)
	if value == "" {
		return 0
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		q.fail("int", name, err)
	}
	return n
}

func (q *queryErr) unsigned(name string) uint64 {
	value := q.query.Get(name)
	if value == "" {
		return 0
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		q.fail("uint64", name, err)
	}
	return n
}

// pageDefault is how many entries a list has when the request sets no limit.
const pageDefault = 1024

// page reads offset and limit.
func (q *queryErr) page() (offset, limit int) {
	offset, limit = max(q.integer("offset"), 0), q.integer("limit")
	if limit <= 0 {
		limit = pageDefault
	}
	return offset, limit
}

// cut returns the page of a list.
func cut[T any](list []T, offset, limit int) []T {
	lo := min(offset, len(list))
	return list[lo:min(lo+limit, len(list))]
}

// uptime writes a duration as dashboards show it: 1y2d3h4m5s without leading zero units.
func uptime(nanos int64) string {
	total := max(nanos, 0) / 1e9
	minutes, hours, days := total/60, total/3600, total/86400
	var b strings.Builder
	if days >= 365 {
		fmt.Fprintf(&b, "%dy", days/365)
		days %= 365
		fmt.Fprintf(&b, "%dd", days)
	} else if days > 0 {
		fmt.Fprintf(&b, "%dd", days)
	}
	if total >= 3600 {
		fmt.Fprintf(&b, "%dh", hours%24)
	}
	if total >= 60 {
		fmt.Fprintf(&b, "%dm", minutes%60)
	}
	fmt.Fprintf(&b, "%ds", total%60)
	return b.String()
}

// Seconds writes nanoseconds as a JSON number of seconds, in as few digits as are exact.
func Seconds(nanos int64) json.Number {
	whole, rest := nanos/1e9, nanos%1e9
	if rest == 0 {
		return json.Number(strconv.FormatInt(whole, 10))
	}
	return json.Number(strings.TrimRight(fmt.Sprintf("%d.%09d", whole, rest), "0"))
}

var errStopSort = errors.New("sort by stop only valid on closed connections")
var errReasonSort = errors.New("sort by reason only valid on closed connections")

// root is a page with links, for a person.
func (r *request) root() Answer {
	server := r.source.Server()
	var b strings.Builder
	fmt.Fprintf(&b, "<html lang=\"en\">\n<head><title>weir</title></head>\n<body>\n<h1>weir</h1>\n<p>compatible with %s</p>\n", server.Version)
	for _, link := range []struct{ path, title string }{
		{"varz", "General"}, {"jsz", "JetStream"}, {"connz", "Connections"}, {"routez", "Routes"}, {"subsz", "Subscriptions"},
		{"accountz", "Accounts"}, {"accstatz", "Account Stats"}, {"healthz", "Health Probe"},
	} {
		fmt.Fprintf(&b, "<a href=.%s/%s>%s</a><br/>\n", server.HTTPBasePath, link.path, link.title)
	}
	b.WriteString("</body>\n</html>\n")
	return Answer{Status: statusOK, ContentType: "text/html; charset=utf-8", Body: []byte(b.String())}
}
