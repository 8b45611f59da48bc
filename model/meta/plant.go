package meta

// Plant names deliberate faults of the catalog, for checking that the simulator finds them. The zero value has none.
type Plant struct {
	// ReuseNumbers takes the numbers of a deleted stream's group and replicas back, when no later ones were given out.
	ReuseNumbers bool
}

// Plant switches deliberate faults on.
func (m *Machine) Plant(p Plant) { m.plant = p }

// Spoil makes the state another one than that which the log leads to, as memory that fails may. It is for the simulator and for
// tests.
func (m *Machine) Spoil() { m.sum++ }

// takeBack is the planted fault: the next stream gets the numbers of the one that was deleted.
func (m *Machine) takeBack(s *Stream) {
	n := uint64(len(s.Replicas))
	if m.plant.ReuseNumbers && n > 0 && s.Group+1 == m.nextGroup && s.Placement == 1 && s.Replicas[n-1].ID+1 == m.nextReplica {
		m.nextGroup, m.nextReplica = s.Group, s.Replicas[0].ID
	}
}
