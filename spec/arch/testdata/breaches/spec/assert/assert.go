// Package assert may be imported by everything.
package assert
