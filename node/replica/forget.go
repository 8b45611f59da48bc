package replica

// ForgetLeader tells a follower that its leader is gone, as its owner knows: it grants its vote to others at once, instead
// of after an election timeout. With leases it keeps its promise.
func (r *Replica) ForgetLeader(sink Sink) {
	if r.broken != nil || r.leader || r.leaderID == 0 || r.config.LeaseNanos > 0 {
		return
	}
	r.Wake(sink)
	if err := r.node.ForgetLeader(); err == nil {
		r.Advance(sink)
	}
}
