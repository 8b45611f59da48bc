package auth

import (
	"fmt"
	"strings"

	"weir/model/subject"
)

// Rules are the patterns that allow or deny one action. Deny wins; an empty Allow allows everything that is not denied.
// Entries about subscribing may name a queue group after a space; the group may be a pattern.
type Rules struct {
	Allow, Deny []string
}

// Responses let a client publish to the reply subjects of messages that it received.
type Responses struct {
	// Max is how many messages may go to one reply subject; negative means any number.
	Max int
	// ExpiresNanos is for how long after the request; negative means for ever.
	ExpiresNanos int64
}

// DefaultResponses are what a bare allow_responses means.
var DefaultResponses = Responses{Max: 1, ExpiresNanos: 2 * 60 * 1e9}

// PermissionsConfig is what the configuration says.
type PermissionsConfig struct {
	// Publish and Subscribe are the rules; the zero value allows everything.
	Publish, Subscribe Rules
	// Responses is nil without allow_responses. With it, and without Publish.Allow, only replies may be published.
	Responses *Responses
}

// rule is one entry.
type rule struct {
	pattern string
	// queue is a literal or a pattern; empty when the entry names no group.
	queue string
}

// Permissions are what a client may do. They do not change.
type Permissions struct {
	config                        PermissionsConfig
	publishAllow, publishDeny     []rule
	subscribeAllow, subscribeDeny []rule
	publishesAll, subscribesAll   bool
}

// NewPermissions checks the entries and returns the permissions.
func NewPermissions(config PermissionsConfig) (*Permissions, error) {
	p := &Permissions{config: config}
	for _, list := range []struct {
		entries []string
		queues  bool
		rules   *[]rule
	}{
		{config.Publish.Allow, false, &p.publishAllow}, {config.Publish.Deny, false, &p.publishDeny},
		{config.Subscribe.Allow, true, &p.subscribeAllow}, {config.Subscribe.Deny, true, &p.subscribeDeny},
	} {
		for _, entry := range list.entries {
			r, err := parseRule(entry, list.queues)
			if err != nil {
				return nil, err
			}
			*list.rules = append(*list.rules, r)
		}
	}
	p.publishesAll = len(p.publishAllow) == 0 && config.Responses == nil
	p.subscribesAll = len(p.subscribeAllow) == 0
	return p, nil
}

func parseRule(entry string, queues bool) (rule, error) {
	fields := strings.Fields(entry)
	if len(fields) == 0 || len(fields) > 2 || (len(fields) == 2 && !queues) || !subject.Valid(fields[0]) {
		return rule{}, fmt.Errorf("subject %q is not a valid subject", entry)
	}
	if len(fields) == 2 {
		return rule{pattern: fields[0], queue: fields[1]}, nil
	}
	return rule{pattern: fields[0]}, nil
}

// Config returns what the permissions were made of. Its slices are only read.
func (p *Permissions) Config() PermissionsConfig { return p.config }

// Responses returns what allow_responses says, nil without it.
func (p *Permissions) Responses() *Responses { return p.config.Responses }

// MayPublish reports whether a message may be published to the subject. A reply that Responses allow may be published
// even so.
func (p *Permissions) MayPublish(to []byte) bool {
	for i := range p.publishDeny {
		if subject.Matches(to, p.publishDeny[i].pattern) {
			return false
		}
	}
	if p.publishesAll {
		return true
	}
	for i := range p.publishAllow {
		if subject.Matches(to, p.publishAllow[i].pattern) {
			return true
		}
	}
	return false
}

// MaySubscribe reports whether the pattern may be subscribed to, in the queue group when queue is not empty. An allowed
// entry has to cover the whole pattern. Once entries for this pattern name groups, they decide about groups.
func (p *Permissions) MaySubscribe(pattern, queue []byte) bool {
	plain, named, group := cover(p.subscribeAllow, pattern, queue)
	allowed := plain || p.subscribesAll
	if len(queue) > 0 && named {
		allowed = group
	}
	if !allowed {
		return false
	}
	plain, _, group = cover(p.subscribeDeny, pattern, queue)
	return !plain && !(len(queue) > 0 && group)
}

// cover looks for rules whose pattern covers the whole given pattern: one without a group (plain), any that name a
// group (named), one whose group is the given one (group).
func cover(rules []rule, pattern, queue []byte) (plain, named, group bool) {
	for i := range rules {
		r := &rules[i]
		if !subject.Subset(pattern, r.pattern) {
			continue
		}
		if r.queue == "" {
			plain = true
			continue
		}
		named = true
		group = group || queueMatches(queue, r.queue)
	}
	return plain, named, group
}

// queueMatches reports whether a group is what a rule names. Groups may look like patterns themselves.
func queueMatches(queue []byte, named string) bool {
	return string(queue) == named || (subject.Valid(named) && subject.Matches(queue, named))
}

// Filters reports whether deliveries to a subscription with this pattern have to be checked by MayDeliver one by one.
func (p *Permissions) Filters(pattern []byte) bool {
	for i := range p.subscribeDeny {
		if subject.Overlaps(pattern, p.subscribeDeny[i].pattern) {
			return true
		}
	}
	return false
}

// MayDeliver reports whether a message with this subject may be delivered to a subscription that was allowed.
func (p *Permissions) MayDeliver(to []byte, queue string) bool {
	for i := range p.subscribeDeny {
		r := &p.subscribeDeny[i]
		if !subject.Matches(to, r.pattern) {
			continue
		}
		if r.queue == "" || (queue != "" && queueMatches([]byte(queue), r.queue)) {
			return false
		}
	}
	return true
}
