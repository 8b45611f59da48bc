package meta

import (
	"encoding/json"

	"weir/model/command"
	"weir/model/jsapi"
	"weir/spec/assert"
)

// View is what the proposer of a command sees of the cluster: it travels in the command, because the state machine
// can not look. The zero View is that of a server alone, for which every server of the catalog is there.
type View struct {
	// Online are the ids of the servers that the proposer reaches, itself included; none: all of the catalog.
	Online []uint64 `json:"online,omitempty"`
	// Leader is the id of the server that leads the stream's group; 0: not known.
	Leader uint64 `json:"leader,omitempty"`
	// Cluster is the name of the cluster in which streams are placed that name none; "": any.
	Cluster string `json:"cluster,omitempty"`
	// UniqueTag is the prefix of the tag in which the servers of a stream have to differ; "": no such rule.
	UniqueTag string `json:"unique_tag,omitempty"`
}

// proposal is what travels as the configuration of CreateStream, UpdateStream and PlaceStream.
type proposal struct {
	Config *jsapi.StreamConfig `json:"config,omitempty"`
	Limits jsapi.Limits        `json:"limits"`
	View   View                `json:"view"`
	Server uint64              `json:"server,omitempty"` // of PlaceStream: the one to be taken off

	Replica uint64 `json:"replica,omitempty"` // of PlaceStream: the one to be replaced where it is
}

// registration is what travels as the configuration of RegisterServer.
type registration struct {
	Server Server `json:"server"`
	View   View   `json:"view"`
}

// Create returns the command that adds a stream with the normalised configuration under the limits, on a server alone.
func Create(account string, config *jsapi.StreamConfig, limits *jsapi.Limits) command.Command {
	return new(View).Create(account, config, limits)
}

// Update returns the command that gives an existing stream the normalised configuration under the limits, on a server
// alone.
func Update(account string, config *jsapi.StreamConfig, limits *jsapi.Limits) command.Command {
	return new(View).Update(account, config, limits)
}

// Create returns the command that adds a stream with the normalised configuration under the limits.
func (v *View) Create(account string, config *jsapi.StreamConfig, limits *jsapi.Limits) command.Command {
	return put(command.CreateStream, account, config.Name, &proposal{Config: config, Limits: *limits, View: *v})
}

// Update returns the command that gives an existing stream the normalised configuration under the limits. The view
// should name the leader of the stream's group: it is kept when replicas go.
func (v *View) Update(account string, config *jsapi.StreamConfig, limits *jsapi.Limits) command.Command {
	return put(command.UpdateStream, account, config.Name, &proposal{Config: config, Limits: *limits, View: *v})
}

// TakeOff returns the command that puts another server in the place of one that has a replica of the stream.
func (v *View) TakeOff(s *Stream, server uint64) command.Command {
	return put(command.PlaceStream, s.Account, s.Name, &proposal{View: *v, Server: server})
}

// Replace returns the command that puts a new replica in the place of a damaged one, on the same server.
func (v *View) Replace(s *Stream, replica uint64) command.Command {
	return put(command.PlaceStream, s.Account, s.Name, &proposal{View: *v, Replica: replica})
}

// Register returns the command that makes a server known, or what the server says of itself now. A known server of the
// same name that is not reached is replaced by it.
func (v *View) Register(s *Server) command.Command {
	return command.Command{
		Kind: command.RegisterServer, Config: jsapi.AppendJSON(nil, registration{Server: *s, View: *v}),
	}
}

// Remove returns the command that takes a server out of the cluster.
func (v *View) Remove(server uint64) command.Command {
	return command.Command{
		Kind: command.RemoveServer, Version: server, Config: jsapi.AppendJSON(nil, proposal{View: *v}),
	}
}

// Delete returns the command that removes the stream of the group.
func Delete(s *Stream) command.Command {
	return command.Command{
		Kind: command.DeleteStream, Account: []byte(s.Account), Name: []byte(s.Name), Version: s.Group,
	}
}

// Settled returns the command by which the leader of a stream's group reports that the group has exactly the members
// that the placement asks for.
func Settled(group, placement uint64) command.Command {
	return command.Command{Kind: command.Settle, Version: group, Keep: placement}
}

// Form returns the command by which the leader of the catalog reports that all servers that were to found it hold it.
func Form() command.Command { return command.Command{Kind: command.FormCatalog} }

func put(kind command.Kind, account, name string, p *proposal) command.Command {
	return command.Command{
		Kind: kind, Account: []byte(account), Name: []byte(name), Config: jsapi.AppendJSON(nil, p),
	}
}

func parseProposal(data []byte) *proposal {
	var p proposal
	err := json.Unmarshal(data, &p)
	assert.True(err == nil, "a proposal in the meta log can be read", uint64(len(data)))
	return &p
}

func parseRegistration(data []byte) *registration {
	var r registration
	err := json.Unmarshal(data, &r)
	assert.True(err == nil && r.Server.ID != 0, "a registration in the meta log can be read", uint64(len(data)))
	return &r
}
