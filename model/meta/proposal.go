package meta

import (
	"encoding/json"

	"weir/model/command"
	"weir/model/jsapi"
	"weir/spec/assert"
)

// proposal is what travels as the configuration of CreateStream and UpdateStream.
type proposal struct {
	Config *jsapi.StreamConfig `json:"config"`
	Limits jsapi.Limits        `json:"limits"`
}

// Create returns the command that adds a stream with the normalised configuration under the limits.
func Create(account string, config *jsapi.StreamConfig, limits *jsapi.Limits) command.Command {
	return put(command.CreateStream, account, config, limits)
}

// Update returns the command that gives an existing stream the normalised configuration under the limits.
func Update(account string, config *jsapi.StreamConfig, limits *jsapi.Limits) command.Command {
	return put(command.UpdateStream, account, config, limits)
}

// Delete returns the command that removes the stream of the group.
func Delete(s *Stream) command.Command {
	return command.Command{
		Kind: command.DeleteStream, Account: []byte(s.Account), Name: []byte(s.Name), Version: s.Group,
	}
}

func put(kind command.Kind, account string, config *jsapi.StreamConfig, limits *jsapi.Limits) command.Command {
	return command.Command{
		Kind: kind, Account: []byte(account), Name: []byte(config.Name),
		Config: jsapi.AppendJSON(nil, proposal{Config: config, Limits: *limits}),
	}
}

func parseProposal(data []byte) (*jsapi.StreamConfig, *jsapi.Limits) {
	var p proposal
	err := json.Unmarshal(data, &p)
	assert.True(err == nil && p.Config != nil, "a proposal in the meta log can be read", uint64(len(data)))
	return p.Config, &p.Limits
}
