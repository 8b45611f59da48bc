package world

import "weir/node"

// Plant is a deliberate fault of the node, for proving that the simulator finds such faults.
type Plant struct {
	// Name selects it.
	Name string
	// What describes it.
	What string

	set func(*node.Config)
}

// Plants returns all planted faults in a fixed order.
func Plants() []Plant {
	return []Plant{
		{"ack-before-sync", "acknowledges before the log is synced",
			func(c *node.Config) { c.Engine.Plant.Replica.AckBeforeSync = true }},
		{"forgotten-directory-sync", "does not sync the directory of a new log segment",
			func(c *node.Config) { c.Storage.Log.Plant.NoSyncDir = true }},
		{"stop-at-bad-record", "ends recovery at the first bad record, though later ones were acknowledged",
			func(c *node.Config) { c.Storage.Log.Plant.StopAtFirstBad = true }},
		{"lost-dedup", "forgets the duplicate window at a restart",
			func(c *node.Config) { c.Engine.Plant.Stream.LoseDedup = true }},
		{"early-expect", "checks an expected sequence when a message arrives, before what is in flight",
			func(c *node.Config) { c.Engine.Plant.EarlyExpect = true }},
		{"loose-per-subject", "keeps one message per subject too many after a restart",
			func(c *node.Config) { c.Engine.Plant.Stream.LoosePerSubject = true }},
		{"ack-floor-ahead", "moves a consumer's ack floor ahead of its acknowledgements",
			func(c *node.Config) { c.Engine.Plant.Stream.Consumer.AckFloorAhead = true }},
		{"checkpoint-before-blocks", "switches a checkpoint before its message blocks are durable",
			func(c *node.Config) { c.Storage.Plant.CheckpointBeforeBlocks = true }},
		{"read-before-term", "answers reads on a single voter before an entry of its term is committed",
			func(c *node.Config) { c.Engine.Plant.Replica.ReadBeforeTerm = true }},
		{"apply-twice", "applies an entry twice after a restart",
			func(c *node.Config) { c.Engine.Plant.Stream.ApplyTwice = true }},
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
