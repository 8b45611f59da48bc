// Package store imports sideways.
package store

import _ "breaches/model/clock"
