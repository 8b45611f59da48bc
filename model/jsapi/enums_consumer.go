package jsapi

import "fmt"

// DeliverPolicy says at which message a consumer starts.
type DeliverPolicy uint8

// The deliver policies.
const (
	DeliverAll DeliverPolicy = iota
	DeliverLast
	DeliverNew
	DeliverByStartSequence
	DeliverByStartTime
	DeliverLastPerSubject
)

var deliverNames = enumNames{"all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"}

// String returns the JSON name.
func (p DeliverPolicy) String() string { return deliverNames.text(uint8(p)) }

// MarshalJSON returns the quoted name.
func (p DeliverPolicy) MarshalJSON() ([]byte, error) { return deliverNames.marshal(uint8(p)) }

// UnmarshalJSON accepts the known names and "undefined", which means all.
func (p *DeliverPolicy) UnmarshalJSON(data []byte) error {
	if string(data) == `"undefined"` {
		*p = DeliverAll
		return nil
	}
	v, err := deliverNames.parse(data)
	*p = DeliverPolicy(v)
	return err
}

// AckPolicy says which acknowledgements a consumer expects.
type AckPolicy uint8

// The ack policies. AckFlowControl is a feature of later versions and is refused by Normalize.
const (
	AckNone AckPolicy = iota
	AckAll
	AckExplicit
	AckFlowControl
)

var ackNames = enumNames{"none", "all", "explicit", "flow_control"}

// String returns the JSON name.
func (p AckPolicy) String() string { return ackNames.text(uint8(p)) }

// MarshalJSON returns the quoted name.
func (p AckPolicy) MarshalJSON() ([]byte, error) { return ackNames.marshal(uint8(p)) }

// UnmarshalJSON accepts the known names only.
func (p *AckPolicy) UnmarshalJSON(data []byte) error {
	v, err := ackNames.parse(data)
	*p = AckPolicy(v)
	return err
}

// ReplayPolicy says how fast messages are delivered.
type ReplayPolicy uint8

// The replay policies: as fast as possible, or with the gaps of the original publishing.
const (
	ReplayInstant ReplayPolicy = iota
	ReplayOriginal
)

var replayNames = enumNames{"instant", "original"}

// String returns the JSON name.
func (p ReplayPolicy) String() string { return replayNames.text(uint8(p)) }

// MarshalJSON returns the quoted name.
func (p ReplayPolicy) MarshalJSON() ([]byte, error) { return replayNames.marshal(uint8(p)) }

// UnmarshalJSON accepts the known names only.
func (p *ReplayPolicy) UnmarshalJSON(data []byte) error {
	v, err := replayNames.parse(data)
	*p = ReplayPolicy(v)
	return err
}

// PriorityPolicy says how waiting pull requests compete.
type PriorityPolicy uint8

// The priority policies (ADR-42). All but PriorityNone are features of later versions and are refused by Normalize.
const (
	PriorityNone PriorityPolicy = iota
	PriorityOverflow
	PriorityPinnedClient
	PriorityPrioritized
)

var priorityNames = enumNames{"none", "overflow", "pinned_client", "prioritized"}

// String returns the JSON name.
func (p PriorityPolicy) String() string { return priorityNames.text(uint8(p)) }

// MarshalJSON returns the quoted name.
func (p PriorityPolicy) MarshalJSON() ([]byte, error) { return priorityNames.marshal(uint8(p)) }

// UnmarshalJSON accepts the known names only.
func (p *PriorityPolicy) UnmarshalJSON(data []byte) error {
	v, err := priorityNames.parse(data)
	if err != nil {
		return fmt.Errorf("unknown priority policy: %s", data)
	}
	*p = PriorityPolicy(v)
	return nil
}

// ConsumerAction says what a consumer create request may do.
type ConsumerAction uint8

// The consumer actions.
const (
	ActionCreateOrUpdate ConsumerAction = iota
	ActionCreate
	ActionUpdate
)

var actionNames = enumNames{"", "create", "update"}

// String returns the JSON name.
func (a ConsumerAction) String() string { return actionNames.text(uint8(a)) }

// MarshalJSON returns the quoted name.
func (a ConsumerAction) MarshalJSON() ([]byte, error) { return actionNames.marshal(uint8(a)) }

// UnmarshalJSON accepts the known names only.
func (a *ConsumerAction) UnmarshalJSON(data []byte) error {
	v, err := actionNames.parse(data)
	if err != nil {
		return fmt.Errorf("unknown consumer action: %s", data)
	}
	*a = ConsumerAction(v)
	return nil
}
