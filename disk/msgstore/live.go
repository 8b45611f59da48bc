package msgstore

// Live is the number of messages that are there. It costs the blocks.
func (x *Index) Live() uint64 {
	live := 0
	for _, b := range x.blocks {
		live += b.live
	}
	return uint64(live)
}
