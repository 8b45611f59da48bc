// Package conformance holds the oracle of package oracle against a live server: random sequences of JetStream calls run
// on both, and every answer and every state has to agree.
//
// Its tests start the reference server in process. With -target URL they drive another server instead, for example
// Weir itself, and compare its answers to random API requests, member by member, with those of the reference server.
// Each test stops after a few seconds; with -long it makes all runs that -rapid.checks asks for.
//
// Where Weir differs from the reference server on purpose, the case says so and why, by a call of differs: it is left out
// on the reference server and counts on every other target.
package conformance
