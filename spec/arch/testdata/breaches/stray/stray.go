// Package stray lies outside the tree.
package stray
