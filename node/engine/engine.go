// Package engine is a whole server without its edges: sessions, routing, the JetStream API, Raft replicas and their
// state machines, as one pure function Step(now, input) -> outputs.
//
// It promises that equal inputs at equal times give equal outputs, byte for byte; that nothing it answers refers to
// anything that is not durable; and that no step does work in proportion to what is stored. There is no goroutine,
// lock, clock, file or socket here: see package event for the seam.
//
// The walk of one publish: Step hands the operations to the session, which routes the message (package route); a stream
// that captures the subject is one of the receivers (ingest.go) and adds the message to its group's batch; Finish
// proposes the batch as one entry and hands out one append for all groups (appends.go); when that is durable the entry is
// applied and its effects become acknowledgements and deliveries (applied.go).
package engine

import (
	"fmt"

	"weir/disk/wal"
	"weir/model/meta"
	"weir/node/api"
	"weir/node/delivery"
	"weir/node/event"
	"weir/node/monitor"
	"weir/node/route"
	"weir/node/session"
	"weir/spec/assert"
)

func groupID(handler uint64) wal.GroupID { return wal.GroupID(handler) }

type streamKey struct{ account, stream string }

// Engine is a whole server without its edges. It is not safe for concurrent use. The embedded parts are declared beside the
// code that works on them.
type Engine struct {
	config   Config
	now      event.Time // of the step
	wall     int64      // the leader's clock: follows the wall clock, never backwards
	random   random
	timers   timers
	counters counters
	sysSeq   uint64 // numbers the answers on $SYS
	scratch  []byte // for an answer that is copied at once
	logs     []event.LogLine
	planted  planted

	// Clients.
	clientConfig session.Config
	accounts     []*account // in the order of their names
	accountNamed map[string]*account
	sessions     map[event.ConnID]*client
	ready        []*session.Session // those with output of this step, each once
	spare        [][]byte           // buffers for their output

	// JetStream; desk and api are nil without it.
	api     *api.API
	desk    *delivery.Desk
	catalog *meta.Machine
	meta    *group // of the catalog
	// founder is the server that founded the catalog, 0 as long as this server has no replica of it; metaReplica is the
	// Raft id of its replica; metaMembers are the members at the founding, in JSON.
	founder     event.ServerID
	metaReplica uint64
	metaMembers []byte
	metaServers int   // how many servers founded the catalog together; 0: as many as are configured
	forms       int64 // monotone time before which it is not noted again that the catalog is formed
	metaDamaged bool  // what the disk holds of the catalog is not usable
	toldLost    bool  // the operator was told that no server has the catalog
	asking      bool  // whether the catalog is current is being asked
	replacing   bool  // another catalog is being taken over, and its groups have not been claimed yet
	groups      map[wal.GroupID]*group
	order       []*group // every group with a replica, in the order of their start
	byName      map[streamKey]*group
	recovered   map[wal.GroupID]*event.Group // not yet claimed by the catalog
	opened      bool                         // the groups of the catalog have been started
	unsettled   bool                         // the step left something to the next, which has to come at once

	interests
	guesting
	transfers
	scrubbing
	peering
	inquiring
	appending
	reading
	checkpointing
	watching
	ticking
	committing
	mirroring
	copying
}

// New starts an engine on what storage recovered. What it asks for at once is in out; it serves streams once the
// completions have come back.
func New(config Config, recovered []event.Group, now event.Time, out *event.Outputs) (*Engine, error) {
	if config.JetStream.CacheBytes == 0 {
		config.JetStream.CacheBytes = CacheBytesDefault
	}
	if config.JetStream.CheckpointBytes == 0 {
		config.JetStream.CheckpointBytes = CheckpointBytesDefault
	}
	if config.SystemAccount == "" {
		config.SystemAccount = systemAccount
	}
	config.JetStream.Limits.Clustered = config.Cluster.Name != ""
	e := &Engine{
		config: config, now: now, wall: now.Wall, random: random{state: config.Seed},
		sessions:      map[event.ConnID]*client{},
		groups:        map[wal.GroupID]*group{},
		byName:        map[streamKey]*group{},
		recovered:     map[wal.GroupID]*event.Group{},
		appending:     appending{ending: map[wal.GroupID]event.Ticket{}},
		reading:       reading{fetches: map[event.Ticket]fetching{}},
		checkpointing: checkpointing{saves: map[event.Ticket]saving{}},
		watching:      watching{watches: map[watchKey]*route.Watch{}, watchers: map[uint64]watchKey{}},
		scrubbing:     scrubbing{scrubs: map[event.Ticket]scrubOf{}},
		transfers: transfers{
			partReads: map[event.Ticket]partRead{}, pins: map[event.Ticket]*sending{}, stagings: map[event.Ticket]staging{},
			spared: map[wal.GroupID]int64{},
		},
		peering: peering{
			peerOf: map[event.ServerID]*peer{}, early: map[wal.GroupID]lead{}, registering: map[uint64]int64{},
			origins: map[origin]event.ServerID{}, heardOf: map[event.ServerID]int64{},
		},
		inquiring: newInquiring(), mirroring: newMirroring(config.Boot),
	}
	e.leaderFound = e.leaderKnown
	e.openAccounts()
	e.counters.start, e.counters.pastOf = now, map[string]*monitor.Tenant{}
	e.clientConfig = config.clients()
	e.tellURLs()
	if !config.JetStream.Enabled {
		e.opened = true
		return e, nil
	}
	e.desk = delivery.NewDesk((*desk)(e), delivery.Config{Boot: config.Boot})
	e.api = api.New(api.Config{
		ServerName: config.ServerName, Domain: config.JetStream.Domain, SystemAccount: config.SystemAccount, Strict: config.JetStream.Strict,
		PendingBytes: int(config.Limits.PendingBytes), Cluster: config.Cluster.Name, UniqueTag: config.JetStream.UniqueTag,
	}, api.Backend{State: (*backend)(e), Groups: (*backend)(e), Broker: (*backend)(e), Cluster: (*backend)(e)})
	for i := range recovered {
		e.recovered[recovered[i].ID] = &recovered[i]
	}
	if err := e.openMeta(); err != nil {
		return nil, err
	}
	e.armTicks()
	e.armScrub()
	e.Finish(now, out)
	return e, nil
}

// Ready reports whether everything that was recovered is served. A server of a cluster takes clients at once: what it can
// not serve others may.
func (e *Engine) Ready() bool {
	if e.clustered() {
		return true
	}
	if !e.opened {
		return false
	}
	for _, g := range e.order {
		if e.leaderOf(g.id) == 0 && g.replica.Broken() == nil {
			return false
		}
	}
	return true
}

// Step takes one input. What it causes is handed out by Finish, so that inputs that come together are answered,
// proposed and persisted together.
func (e *Engine) Step(now event.Time, in *event.Input, out *event.Outputs) {
	e.tell(now)
	switch in.Kind {
	case event.Woke:
	case event.Opened:
		e.connect(in)
	case event.Greet:
		e.greet(in)
	case event.Secured:
		e.secured(in)
	case event.Ops:
		e.operate(in)
	case event.Refused:
		e.refuse(in)
	case event.Closed:
		e.disconnect(in.Conn, in.Reason)
	case event.Flushed:
		e.flushed(in)
	case event.Done:
		e.done(&in.Done)
	case event.LameDuck:
		e.lameDuck()
	case event.Reloaded:
		e.reload(in.Reload)
	case event.Shutdown:
		e.shutdown()
	case event.PeerUp:
		e.peerUp(in)
	case event.PeerDown:
		e.peerDown(in.Peer)
	case event.FromPeer:
		e.fromPeer(in)
	default:
		assert.Unreachable("kind of input", uint64(in.Kind))
	}
}

// tell takes the time of the step. The leader's clock never goes backwards, and while the wall clock is behind it, it
// goes on at the rate of the monotone clock.
func (e *Engine) tell(now event.Time) {
	elapsed := max(now.Mono-e.now.Mono, 0)
	e.wall = max(now.Wall, e.wall+elapsed)
	e.now = now
}

func (e *Engine) done(c *event.Completion) {
	switch c.Kind {
	case event.Persist:
		e.persisted(c)
	case event.Probe:
		e.noteShort(c.Short)
	case event.Fetch:
		e.fetched(c)
	case event.Save:
		e.saved(c)
	case event.Rewrite:
		e.rewritten(c)
	case event.Pin:
		e.pinned(c)
	case event.ReadPart:
		e.partWasRead(c)
	case event.Scrub:
		e.scrubbed(c)
	case event.Stage, event.StagePart, event.Install:
		e.staged(c)
	case event.Drop:
		if c.Err != nil {
			e.logf(event.Error, fmt.Sprintf("Files of the deleted group %d are left behind: %v", c.Group, c.Err))
		}
	default:
		assert.Unreachable("kind of completion", uint64(c.Kind))
	}
}

// Finish hands out everything that the inputs since the last Finish caused.
func (e *Engine) Finish(now event.Time, out *event.Outputs) {
	e.tell(now)
	e.fire()
	e.answerGone()
	if e.desk != nil {
		e.followLeaders()
		e.answerEnds()
		e.settle()
		e.flushAppends(out)
		e.flushFetches(out)
		e.flushSaves(out)
		e.flushRewrites(out)
		out.Storage = append(out.Storage, e.transferOp...)
		clear(e.transferOp)
		e.transferOp = e.transferOp[:0]
		out.Storage = append(out.Storage, e.drops...)
		clear(e.drops)
		e.drops = e.drops[:0]
	}
	e.flushPeers(out)
	e.flushClients(out)
	out.Logs = append(out.Logs, e.logs...)
	clear(e.logs)
	e.logs = e.logs[:0]
	out.WakeAt = e.timers.next()
	if e.desk != nil {
		out.WakeAt = earlier(out.WakeAt, e.desk.Deadline())
	}
	if e.unsettled || len(e.elected) > 0 {
		out.WakeAt = e.now.Mono
	}
}

// settleMax bounds how often one Finish lets groups that need no disk answer each other's proposals.
const settleMax = 16

// settle proposes what the inputs and what follows from them ask for. The entries of groups in memory are applied at
// once and may ask for more; what is left after settleMax rounds waits for the next step.
func (e *Engine) settle() {
	e.unsettled = false
	for range settleMax {
		e.watchInterest()
		e.answerQuestions()
		e.desk.Flush(e.now.Mono)
		e.deliverEarly()
		if !e.flushGroups() {
			return
		}
		if e.writeBytes >= StepBytesMax {
			break
		}
	}
	e.unsettled = true
}

func (e *Engine) logf(level event.Level, text string) {
	e.logs = append(e.logs, event.LogLine{Level: level, Text: text})
}
