package bench

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of processor times in /proc, fixed at 100 for user space on Linux.
const ticksPerSecond = 100

// memoryFileSystem is the type that statfs reports for tmpfs.
const memoryFileSystem = 0x01021994

// cpuTime returns the processor time that a process has used, 0 where /proc is missing.
func cpuTime(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before may hold anything
	fields := strings.Fields(rest)
	const user, system = 11, 12 // counted from the state, which is the first field after the name
	if len(fields) <= system {
		return 0
	}
	ticks := 0
	for _, field := range fields[user : system+1] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}

// resident returns the resident memory of a process in bytes, 0 where /proc is missing.
func resident(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// onMemory reports whether a directory lies on a file system that never reaches a disk.
func onMemory(dir string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && int64(s.Type) == memoryFileSystem
}
