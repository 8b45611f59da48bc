package engine

import (
	"encoding/json"
	"fmt"

	"weir/model/jsapi"
	"weir/model/meta"
	"weir/node/event"
	"weir/node/replica"
)

// birth is what the log keeps about a stream's group from its first append on: the catalog entry and the members that the
// machine starts with. Replaying the group's log has to start from this one, not from the newest, or messages would be
// judged by limits that came later.
type birth struct {
	Account string          `json:"account"`
	Name    string          `json:"name"`
	Created int64           `json:"created"`
	Version uint64          `json:"version"`
	Config  json.RawMessage `json:"config"`
	// Replica is the Raft id of the replica whose log this is, Members are the first members of the group.
	Replica uint64           `json:"replica"`
	Members []replica.Member `json:"members"`
}

// beginning is what a stream's machine and replica begin with.
type beginning struct {
	config  *jsapi.StreamConfig
	version uint64
	replica uint64
	members []replica.Member
	data    []byte // of the log
	stale   bool   // what the log holds belongs to an earlier replica
}

// aloneID is the Raft id of the replica of a stream in a catalog that knows no servers.
const aloneID = 1

// birthOf returns what the stream's machine starts from: what the log says, or the catalog's entry when it says nothing.
func (e *Engine) birthOf(entry *meta.Stream, found *event.Group) (beginning, error) {
	mine := uint64(aloneID)
	if r, ok := entry.On(uint64(e.config.Server)); ok {
		mine = r.ID
	}
	if found != nil && len(found.Log.Meta) > 0 {
		var b birth
		if err := json.Unmarshal(found.Log.Meta, &b); err != nil {
			return beginning{}, fmt.Errorf("description of the group in the log: %w", err)
		}
		if b.Account != entry.Account || b.Name != entry.Name || b.Created != entry.Created {
			return beginning{}, fmt.Errorf("the log holds stream '%s > %s' in the place of '%s > %s'",
				b.Account, b.Name, entry.Account, entry.Name)
		}
		if b.Replica == mine {
			config, err := jsapi.ParseStreamConfig(b.Config)
			if err != nil {
				return beginning{}, fmt.Errorf("configuration of the stream in the log: %w", err)
			}
			return beginning{config, b.Version, mine, b.Members, found.Log.Meta, false}, nil
		}
	}
	b := birth{Account: entry.Account, Name: entry.Name, Created: entry.Created, Version: 1, Config: entry.BirthJSON, Replica: mine}
	for _, r := range entry.Birth {
		b.Members = append(b.Members, replica.Member{ID: r.ID, Server: r.Server})
	}
	if len(b.Members) == 0 {
		b.Members = []replica.Member{{ID: aloneID, Server: uint64(e.config.Server)}}
	}
	config, err := jsapi.ParseStreamConfig(b.Config)
	if err != nil {
		return beginning{}, fmt.Errorf("first configuration of the stream: %w", err)
	}
	data, err := json.Marshal(&b)
	return beginning{config, 1, mine, b.Members, data, found != nil}, err
}
