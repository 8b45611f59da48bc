package event

// MembersSection is the id of the section of a checkpoint that holds the members of the group (package replica encodes
// them). It belongs neither to the state machine nor to the index of messages.
const MembersSection = IndexSections - 1
