package engine

import (
	"weir/node/event"
	"weir/transport/peerwire"
)

// asked answers a question of another server: none is known.
func (e *Engine) asked(from event.ServerID, f *peerwire.Frame) {
	e.sendFrame(from, &peerwire.Frame{Kind: peerwire.Answer, Token: f.Token})
}

// answered takes the answer to a question of this server.
func (e *Engine) answered(event.ServerID, *peerwire.Frame) {}

// asksLost ends the questions to a server whose session ended.
func (e *Engine) asksLost(event.ServerID) {}
