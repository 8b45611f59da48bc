// Package arch is the architecture of Weir as a test: what may import what, which parts of the language and of the
// standard library are kept out of the deterministic packages, how large files and functions may grow, and that
// everything exported is documented.
//
// It promises that each finding names file and line, the rule, and the fix. It does not judge meaning: a rule that
// needs a reader (names, comments that say why) is not here.
//
// A line may be excused with the comment `//det:ok reason`, at its end or on the line above. Excuses are counted, and
// the test fails when there are more than a fixed number of them. A range over a map whose order cannot reach state,
// output, log or error text carries `// order-free: why` in the same place.
package arch
