package world

import (
	"weir/node"
	"weir/sim/plan"
)

// Plant is a deliberate fault of the node, for proving that the simulator finds such faults.
type Plant struct {
	// Name selects it.
	Name string
	// What describes it.
	What string

	// Cluster says that it takes a cluster to show.
	Cluster bool

	set func(*node.Config)
}

// clusterNodes is how many servers show the planted faults of clusters.
const clusterNodes = 3

// PlantNodes is the number of servers on which a planted fault shows; 1 for a name of none.
func PlantNodes(name string) int {
	for _, p := range Plants() {
		if p.Name == name && p.Cluster {
			return clusterNodes
		}
	}
	return 1
}

// Plants returns all planted faults in a fixed order.
func Plants() []Plant { return append(serverPlants(), clusterPlants()...) }

// serverPlants are the planted faults that show on a single server.
func serverPlants() []Plant {
	return []Plant{
		{Name: "ack-before-sync", What: "acknowledges before the log is synced",
			set: func(c *node.Config) { c.Engine.Plant.Replica.AckBeforeSync = true }},
		{Name: "forgotten-directory-sync", What: "does not sync the directory of a new log segment",
			set: func(c *node.Config) { c.Storage.Log.Plant.NoSyncDir = true }},
		{Name: "stop-at-bad-record", What: "ends recovery at the first bad record, though later ones were acknowledged",
			set: func(c *node.Config) { c.Storage.Log.Plant.StopAtFirstBad = true }},
		{Name: "lost-dedup", What: "forgets the duplicate window at a restart",
			set: func(c *node.Config) { c.Engine.Plant.Stream.LoseDedup = true }},
		{Name: "early-expect", What: "checks an expected sequence when a message arrives, before what is in flight",
			set: func(c *node.Config) { c.Engine.Plant.EarlyExpect = true }},
		{Name: "loose-per-subject", What: "keeps one message per subject too many after a restart",
			set: func(c *node.Config) { c.Engine.Plant.Stream.LoosePerSubject = true }},
		{Name: "ack-floor-ahead", What: "moves a consumer's ack floor ahead of its acknowledgements",
			set: func(c *node.Config) { c.Engine.Plant.Stream.Consumer.AckFloorAhead = true }},
		{Name: "checkpoint-before-blocks", What: "switches a checkpoint before its message blocks are durable",
			set: func(c *node.Config) { c.Storage.Plant.CheckpointBeforeBlocks = true }},
		{Name: "read-before-term", What: "answers reads on a single voter before an entry of its term is committed",
			set: func(c *node.Config) { c.Engine.Plant.Replica.ReadBeforeTerm = true }},
		{Name: plan.MirrorOfCached, What: "tells mirrors only of what is in memory",
			set: func(c *node.Config) { c.Engine.Plant.CopyCached = true }},
		{Name: plan.MirrorByName, What: "takes a stream that was created again for the one that a mirror copies",
			set: func(c *node.Config) { c.Engine.Plant.CopyByName = true }},
		{Name: "apply-twice", What: "applies an entry twice after a restart",
			set: func(c *node.Config) { c.Engine.Plant.Stream.ApplyTwice = true }},
	}
}

// plant sets the planted fault with the name; an unknown name sets none, because plans are checked before they run.
func plant(name string, c *node.Config) {
	for _, p := range Plants() {
		if p.Name == name {
			p.set(c)
		}
	}
}

// IsPlant says whether there is a planted fault with the name.
func IsPlant(name string) bool {
	for _, p := range Plants() {
		if p.Name == name {
			return true
		}
	}
	return false
}
