package plan

import "weir/sim/keyed"

// returns is how many of 1000 plans of clusters have a server come and go while streams end and begin anew under their
// names. What it has on its disk, and what is still on its way to it, is of streams that are gone then.
const returns = 250

// Bounds of how long the server comes and goes, in election timeouts, and of one absence.
const (
	returnsTermsMin, returnsTermsMax = 10, 25
	absenceTermsMin, absenceTermsMax = 1, 4
)

// comeAndGo adds that to a plan of a cluster: the server is cut off again and again, or ends and starts again, and a client
// of another one has one stream after the other live twice. The draws are their own, so that other plans stay as they are.
func (p *Plan) comeAndGo() {
	r := keyed.Key(p.Seed).Rand("returns")
	if !r.Chance(returns) || p.Porcupine || p.Clients >= ClientsMax {
		return
	}
	client := p.Clients
	p.Clients++
	p.Streams[0].Replicas = max(p.Streams[0].Replicas, 3)
	victim := uint64(1) << ((client + 1 + r.Below(p.Nodes-1)) % p.Nodes)
	term := p.Cluster.TickMillis * int64(p.Cluster.ElectionTicks)
	from := 3*term + formedMillis + int64(r.Below(int(max(p.HealMillis/2, 1))))
	end := from + term*int64(r.Between(returnsTermsMin, returnsTermsMax))
	crashes := r.Chance(300)
	for at := from; at < end; {
		away := int64(r.Between(int(absenceTermsMin*term), int(absenceTermsMax*term)))
		f := Fault{AtMillis: at, Kind: FaultPartition, Nodes: victim, DurMillis: away, On: ShapeBoth, Hold: r.Chance(300)}
		if crashes {
			f = Fault{AtMillis: at, Kind: FaultCrash, Nodes: victim, DurMillis: away, Disk: "keep-all"}
		}
		p.Faults = append(p.Faults, f)
		at += away + int64(r.Between(int(term/2), int(2*term)))
		p.HealMillis = max(p.HealMillis, at)
	}
	for at := from; at < end && len(p.Ops) < OpsMax; at += 2 * term {
		p.Ops = append(p.Ops, Op{AtMillis: at, Client: client, Kind: OpScratch, N: r.Between(0, 3)})
	}
	p.inOrder()
}
