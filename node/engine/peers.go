package engine

import (
	"slices"

	"weir/node/event"
)

// peering is what leaves for other servers at the end of the step.
type peering struct {
	peerOuts []event.PeerOut
}

// toPeer is the buffer of frames that leave for another server at the end of the step.
func (p *peering) toPeer(to event.ServerID) *[]byte {
	at := slices.IndexFunc(p.peerOuts, func(out event.PeerOut) bool { return out.To == to })
	if at < 0 {
		at = len(p.peerOuts)
		p.peerOuts = append(p.peerOuts, event.PeerOut{To: to})
	}
	return &p.peerOuts[at].Frames
}
