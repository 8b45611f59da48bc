// Package engine imports downward, and an edge, which it must not.
package engine

import (
	_ "breaches/model/clock"
	_ "breaches/node/host"
	_ "breaches/spec/assert"

	_ "example.com/foreign"
)
