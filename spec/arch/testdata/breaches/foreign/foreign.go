// Package foreign stands for a library that the core must not use.
package foreign
