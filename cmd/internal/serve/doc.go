// Package serve runs the server as a process: command line, configuration file, log, signals, files that name the
// process, and the HTTP port of monitoring.
//
// It promises the flags, log lines and exit codes that operators and test harnesses know: 0 after an orderly end, 1 after
// an error, 2 for a command line that cannot be read. All decisions about clients and data are elsewhere.
package serve
