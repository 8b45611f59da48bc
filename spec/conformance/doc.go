// Package conformance holds the oracle of package oracle against a live server: random sequences of JetStream calls run
// on both, and every answer and every state has to agree.
//
// Its tests start the reference server in process. With -target URL they drive another server instead, for example
// Weir itself; with -long they run until the time of -rapid.checks or the test's timeout is used up. Where Weir differs
// from the reference server on purpose, the case says so and why, and runs on other targets only.
package conformance
