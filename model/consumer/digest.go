package consumer

// Digest is a number that equal states have in common and different states practically never. It costs O(1), and covers
// everything that AppendState writes except the configuration, which follows from the commands.
func (s *State) Digest() uint64 {
	h := mix(s.id)
	for _, v := range [...]uint64{
		s.cursor, s.numPending, uint64(s.skip.live), s.skip.hash,
		s.delivered.Consumer, s.delivered.Stream, uint64(s.delivered.Last),
		s.floor.Consumer, s.floor.Stream, uint64(s.floor.Last),
		uint64(s.pending.live), uint64(s.pending.queued), s.pending.hash,
	} {
		h = mix(h ^ v)
	}
	return h
}

// mix spreads the bits of v over the result: a bijection, the finaliser of MurmurHash3.
func mix(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>33) * 0xff51afd7ed558ccd
	v = (v ^ v>>33) * 0xc4ceb9fe1a85ec53
	return v ^ v>>33
}
