package monitor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/model/jsapi"
	"weir/model/subject"
)

type connz struct {
	ServerID string     `json:"server_id"`
	Now      jsapi.Time `json:"now"`
	Count    int        `json:"num_connections"`
	Total    int        `json:"total"`
	Offset   int        `json:"offset"`
	Limit    int        `json:"limit"`
	Conns    []connInfo `json:"connections"`
}

type connInfo struct {
	CID           uint64      `json:"cid"`
	Kind          string      `json:"kind,omitempty"`
	Type          string      `json:"type,omitempty"`
	IP            string      `json:"ip"`
	Port          int         `json:"port"`
	Start         jsapi.Time  `json:"start"`
	LastActivity  jsapi.Time  `json:"last_activity"`
	Stop          *jsapi.Time `json:"stop,omitempty"`
	Reason        string      `json:"reason,omitempty"`
	RTT           string      `json:"rtt,omitempty"`
	Uptime        string      `json:"uptime"`
	Idle          string      `json:"idle"`
	PendingBytes  int64       `json:"pending_bytes"`
	InMsgs        uint64      `json:"in_msgs"`
	OutMsgs       uint64      `json:"out_msgs"`
	InBytes       uint64      `json:"in_bytes"`
	OutBytes      uint64      `json:"out_bytes"`
	Subscriptions int         `json:"subscriptions"`
	Name          string      `json:"name,omitempty"`
	Lang          string      `json:"lang,omitempty"`
	Version       string      `json:"version,omitempty"`
	TLSVersion    string      `json:"tls_version,omitempty"`
	TLSCipher     string      `json:"tls_cipher_suite,omitempty"`
	TLSPeers      []peerCert  `json:"tls_peer_certs,omitempty"`
	TLSFirst      bool        `json:"tls_first,omitempty"`
	User          string      `json:"authorized_user,omitempty"`
	Account       string      `json:"account,omitempty"`
	List          []string    `json:"subscriptions_list,omitempty"`
	Details       []subDetail `json:"subscriptions_list_detail,omitempty"`
	Issuer        string      `json:"issuer_key,omitempty"`
	NameTag       string      `json:"name_tag,omitempty"`
	Tags          []string    `json:"tags,omitempty"`
}

// peerCert describes a certificate that a client sent.
type peerCert struct {
	Subject string `json:"subject,omitempty"`
	KeySum  string `json:"spki_sha256,omitempty"`
	Sum     string `json:"cert_sha256,omitempty"`
}

type subDetail struct {
	Account    string `json:"account,omitempty"`
	AccountTag string `json:"account_tag,omitempty"`
	Subject    string `json:"subject"`
	Queue      string `json:"qgroup,omitempty"`
	SID        string `json:"sid"`
	Msgs       uint64 `json:"msgs"`
	Max        uint64 `json:"max,omitempty"`
	CID        uint64 `json:"cid"`
}

// The states of connections that connz can be asked for.
const (
	stateOpen = 1 << iota
	stateClosed
)

// connzQuery is what a request for connections asks for.
type connzQuery struct {
	sort          string
	auth          bool
	list, details bool
	offset, limit int
	cid           uint64
	state         int
	user, account string
	mqtt          string
}

func (r *request) connzQuery() (connzQuery, error) {
	q := queryErr{query: r.query}
	c := connzQuery{
		sort: r.query.Get("sort"), auth: q.truth("auth"), cid: q.unsigned("cid"),
		user: r.query.Get("user"), account: r.query.Get("acc"), mqtt: r.query.Get("mqtt_client"),
	}
	if subs := r.query.Get("subs"); strings.EqualFold(subs, "detail") {
		c.details = true
	} else {
		c.list = q.truth("subs")
	}
	c.offset, c.limit = q.page()
	if q.err != nil {
		return c, q.err
	}
	switch state := r.query.Get("state"); strings.ToLower(state) {
	case "", "open":
		c.state = stateOpen
	case "closed":
		c.state = stateClosed
	case "any", "all":
		c.state = stateOpen | stateClosed
	default:
		//lint:ignore ST1005 The text is known to scripts.
		return c, fmt.Errorf("Error decoding state for %s", state)
	}
	if c.sort != "" && sorters[c.sort] == nil {
		return c, fmt.Errorf("invalid sorting option: %s", c.sort)
	}
	if c.state != stateClosed && c.sort == "stop" {
		return c, errStopSort
	}
	if c.state != stateClosed && c.sort == "reason" {
		return c, errReasonSort
	}
	if c.user != "" {
		c.auth = true
	}
	return c, nil
}

// sorters compare connections by a sorting option. All but cid, start and uptime sort descending.
var sorters = map[string]func(a, b *Connection, now int64) int{
	"cid":        byID,
	"start":      byID,
	"subs":       func(a, b *Connection, _ int64) int { return cmp.Compare(b.Subscriptions, a.Subscriptions) },
	"pending":    func(a, b *Connection, _ int64) int { return cmp.Compare(b.PendingBytes, a.PendingBytes) },
	"msgs_to":    func(a, b *Connection, _ int64) int { return cmp.Compare(b.OutMsgs, a.OutMsgs) },
	"msgs_from":  func(a, b *Connection, _ int64) int { return cmp.Compare(b.InMsgs, a.InMsgs) },
	"bytes_to":   func(a, b *Connection, _ int64) int { return cmp.Compare(b.OutBytes, a.OutBytes) },
	"bytes_from": func(a, b *Connection, _ int64) int { return cmp.Compare(b.InBytes, a.InBytes) },
	"last":       func(a, b *Connection, _ int64) int { return cmp.Compare(b.LastNanos, a.LastNanos) },
	"idle":       func(a, b *Connection, _ int64) int { return cmp.Compare(a.LastNanos, b.LastNanos) },
	"uptime":     func(a, b *Connection, now int64) int { return cmp.Compare(a.age(now), b.age(now)) },
	"stop":       func(a, b *Connection, _ int64) int { return cmp.Compare(b.StopNanos, a.StopNanos) },
	"reason":     func(a, b *Connection, _ int64) int { return strings.Compare(b.Reason, a.Reason) },
	"rtt":        func(a, b *Connection, _ int64) int { return cmp.Compare(b.RTTNanos, a.RTTNanos) },
}

func byID(a, b *Connection, _ int64) int { return cmp.Compare(a.ID, b.ID) }

// age is how long a connection lasted, or lasts.
func (c *Connection) age(now int64) int64 {
	if c.StopNanos != 0 {
		return c.StopNanos - c.StartNanos
	}
	return now - c.StartNanos
}

func (r *request) connz() (*connz, error) {
	q, err := r.connzQuery()
	if err != nil {
		return nil, err
	}
	snapshot := r.source.Snapshot(Want{
		Connections: q.state&stateOpen != 0, Closed: q.state&stateClosed != 0, Subscriptions: q.list || q.details,
	})
	var conns []*Connection
	total := 0
	for _, list := range [][]Connection{snapshot.Connections, snapshot.Closed} {
		for i := range list {
			if q.account != "" && q.account != list[i].Account {
				continue
			}
			total++
			if q.matches(&list[i]) {
				conns = append(conns, &list[i])
			}
		}
	}
	compare := sorters[q.sort]
	if compare == nil {
		compare = byID
	}
	slices.SortStableFunc(conns, func(a, b *Connection) int {
		return cmp.Or(compare(a, b, snapshot.NowNanos), byID(a, b, 0))
	})
	doc := &connz{
		ServerID: r.source.Server().ID, Now: jsapi.Time(snapshot.NowNanos), Total: total, Offset: q.offset, Limit: q.limit,
		Conns: []connInfo{},
	}
	if q.cid != 0 {
		doc.Limit = 1
	}
	for _, c := range cut(conns, q.offset, q.limit) {
		doc.Conns = append(doc.Conns, q.describe(c, snapshot.NowNanos))
	}
	doc.Count = len(doc.Conns)
	return doc, nil
}

// matches says whether a connection of the account that is asked for is shown. The total counts the others too.
func (q *connzQuery) matches(c *Connection) bool {
	return (q.cid == 0 || q.cid == c.ID) && (q.user == "" || q.user == c.User) && q.mqtt == ""
}

func (q *connzQuery) describe(c *Connection, now int64) connInfo {
	info := connInfo{
		CID: c.ID, Kind: "Client", Type: "nats", IP: c.IP, Port: c.Port,
		Start: jsapi.Time(c.StartNanos), LastActivity: jsapi.Time(c.LastNanos), Reason: c.Reason,
		Uptime: uptime(c.age(now)), Idle: uptime(now - c.LastNanos), PendingBytes: c.PendingBytes,
		InMsgs: c.InMsgs, OutMsgs: c.OutMsgs, InBytes: c.InBytes, OutBytes: c.OutBytes, Subscriptions: c.Subscriptions,
		Name: c.Name, Lang: c.Lang, Version: c.Version, RTT: time.Duration(c.RTTNanos).String(),
	}
	if c.WebSocket {
		info.Type = "websocket"
	}
	if t := c.TLS; t != nil {
		info.TLSVersion, info.TLSCipher, info.TLSFirst = t.Version, t.Cipher, t.First
		for i := 0; i < len(t.Peers) && q.auth; i++ {
			info.TLSPeers = append(info.TLSPeers, peerCert(t.Peers[i]))
		}
	}
	if c.StopNanos != 0 {
		stop := jsapi.Time(c.StopNanos)
		info.Stop, info.Idle = &stop, uptime(c.StopNanos-c.LastNanos)
	}
	if q.auth {
		info.User, info.NameTag, info.Issuer, info.Tags = c.User, c.tag(), c.Issuer, c.Tags
		if c.Account != "$G" {
			info.Account = c.Account
		}
	}
	for i := range c.List {
		if q.details {
			info.Details = append(info.Details, c.detail(i))
		} else if q.list {
			info.List = append(info.List, c.List[i].Subject)
		}
	}
	return info
}

// detail describes a subscription. That of a closed connection names its account.
func (c *Connection) detail(i int) subDetail {
	s := &c.List[i]
	d := subDetail{Subject: s.Subject, Queue: s.Queue, SID: s.SID, Msgs: s.Msgs, Max: s.Max, CID: c.ID}
	if c.StopNanos != 0 {
		d.Account, d.AccountTag = c.Account, c.tag()
	}
	return d
}

// tag is the account's name for people.
func (c *Connection) tag() string {
	if c.AccountTag != "" {
		return c.AccountTag
	}
	return c.Account
}

type subsz struct {
	ServerID string      `json:"server_id"`
	Now      jsapi.Time  `json:"now"`
	Count    int         `json:"num_subscriptions"`
	Cache    int         `json:"num_cache"`
	Inserts  uint64      `json:"num_inserts"`
	Removes  uint64      `json:"num_removes"`
	Matches  uint64      `json:"num_matches"`
	HitRate  float64     `json:"cache_hit_rate"`
	FanMax   int         `json:"max_fanout"`
	FanMean  float64     `json:"avg_fanout"`
	Total    int         `json:"total"`
	Offset   int         `json:"offset"`
	Limit    int         `json:"limit"`
	List     []subDetail `json:"subscriptions_list,omitempty"`
}

// subsz lists subscriptions of clients. The fan-out of cached results is not kept, so it is always 0.
func (r *request) subsz() (*subsz, error) {
	q := queryErr{query: r.query}
	list := q.truth("subs")
	offset, limit := q.page()
	account, test := r.query.Get("acc"), r.query.Get("test")
	if q.err != nil {
		return nil, q.err
	}
	if test != "" && !subject.ValidLiteral(test) {
		return nil, fmt.Errorf("invalid test subject, must be valid publish subject: %s", test)
	}
	snapshot := r.source.Snapshot(Want{Connections: list, Subscriptions: list})
	interest := snapshot.Subscriptions
	doc := &subsz{
		ServerID: r.source.Server().ID, Now: jsapi.Time(snapshot.NowNanos), Count: interest.Count, Cache: interest.Cached,
		Inserts: interest.Inserts, Removes: interest.Removes, Matches: interest.Matches, Offset: offset, Limit: limit,
	}
	if account != "" {
		doc.Count = 0
		for i := range snapshot.Tenants {
			if snapshot.Tenants[i].Name == account {
				doc.Count = snapshot.Tenants[i].Subscriptions
			}
		}
	}
	if interest.Matches > 0 {
		doc.HitRate = float64(interest.Hits) / float64(interest.Matches) //det:ok a figure for a person, derived from integers and kept nowhere
	}
	var all []subDetail
	for i := range snapshot.Connections {
		c := &snapshot.Connections[i]
		if account != "" && account != c.Account {
			continue
		}
		for j := range c.List {
			if test != "" && !subject.Matches(test, c.List[j].Subject) {
				continue
			}
			d := c.detail(j)
			d.Account, d.AccountTag = c.Account, c.tag()
			all = append(all, d)
		}
	}
	doc.Total, doc.List = len(all), cut(all, offset, limit)
	return doc, nil
}
