package engine

import (
	"encoding/json"

	"weir/model/jsapi"
	"weir/node/auth"
	"weir/node/route"
	"weir/spec/assert"
)

// userInfoSubject is where a client asks who it is; every account has it.
const userInfoSubject = "$SYS.REQ.USER.INFO"

// serverInfo is how a server describes itself in answers on $SYS.
type serverInfo struct {
	Name      string     `json:"name"`
	Host      string     `json:"host"`
	ID        string     `json:"id"`
	Cluster   string     `json:"cluster,omitempty"`
	Domain    string     `json:"domain,omitempty"`
	Version   string     `json:"ver"`
	Tags      []string   `json:"tags,omitempty"`
	JetStream bool       `json:"jetstream"`
	Flags     uint64     `json:"flags"`
	Seq       uint64     `json:"seq"`
	Time      jsapi.Time `json:"time"`
}

// flagJetStream is the bit of serverInfo.Flags for a server with JetStream.
const flagJetStream = 1

// userInfo says who a client is and what it may do.
type userInfo struct {
	User        string           `json:"user"`
	Account     string           `json:"account"`
	AccountName string           `json:"account_name,omitempty"`
	UserName    string           `json:"user_name,omitempty"`
	Permissions *userPermissions `json:"permissions,omitempty"`
	Expires     int64            `json:"expires,omitempty"`
}

type userPermissions struct {
	Publish   *userRules     `json:"publish,omitempty"`
	Subscribe *userRules     `json:"subscribe,omitempty"`
	Responses *userResponses `json:"responses,omitempty"`
}

type userRules struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

type userResponses struct {
	Max      int   `json:"max"`
	TTLNanos int64 `json:"ttl"`
}

// userInfos is the engine as the receiver of requests on userInfoSubject.
type userInfos Engine

// Deliver tells the requester who it is. The server itself does not ask.
func (u *userInfos) Deliver(sub *route.Sub, m *route.Message) bool {
	e := (*Engine)(u)
	c := e.sessions[m.From]
	if c == nil || len(m.Reply) == 0 {
		return c != nil
	}
	identity := c.session.Identity()
	answer := struct {
		Server serverInfo `json:"server"`
		Data   userInfo   `json:"data"`
	}{
		Server: e.describeServer(),
		Data: userInfo{
			User: identity.User, Account: identity.Account, AccountName: identity.Account, UserName: identity.Name,
			Permissions: showPermissions(identity.Permissions),
		},
	}
	if identity.AccountTag != "" {
		answer.Data.AccountName = identity.AccountTag
	}
	if identity.EndNanos > 0 {
		answer.Data.Expires = max(identity.EndNanos-e.wall, 0)
	}
	body, err := json.Marshal(&answer)
	assert.True(err == nil, "plain fields can be encoded")
	e.servedBy(sub).send(m.Reply, nil, body)
	return true
}

// describeServer is how the server signs an answer.
func (e *Engine) describeServer() serverInfo {
	e.sysSeq++
	info := serverInfo{
		Name: e.config.ServerName, Host: e.config.Host, ID: e.config.ServerID, Version: jsapi.Version,
		Cluster: e.config.Cluster.Name, Domain: e.config.JetStream.Domain, Tags: e.config.Cluster.Tags,
		JetStream: e.config.JetStream.Enabled, Seq: e.sysSeq, Time: jsapi.Time(e.wall),
	}
	if e.config.JetStream.Enabled {
		info.Flags = flagJetStream
	}
	return info
}

func showPermissions(p *auth.Permissions) *userPermissions {
	if p == nil {
		return nil
	}
	config := p.Config()
	shown := &userPermissions{Publish: showRules(config.Publish), Subscribe: showRules(config.Subscribe)}
	if r := config.Responses; r != nil {
		shown.Responses = &userResponses{Max: r.Max, TTLNanos: r.ExpiresNanos}
	}
	return shown
}

func showRules(r auth.Rules) *userRules {
	if len(r.Allow) == 0 && len(r.Deny) == 0 {
		return nil
	}
	return &userRules{Allow: r.Allow, Deny: r.Deny}
}
