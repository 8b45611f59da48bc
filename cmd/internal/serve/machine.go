package serve

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The shares of a machine that streams may take where no limit is set, in quarters.
const (
	machineShare  = 3
	machineShares = 4

	// The limits on a machine that does not say what it has.
	memoryUnknown = 256 << 20
	diskUnknown   = 1 << 40
)

// memoryLimit is what memory streams may hold by default: three quarters of the machine's memory, or of what the control
// group allows.
func memoryLimit() int64 {
	total := memoryUnknown * machineShares / machineShare
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return memoryUnknown
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			if kib, err := strconv.Atoi(fields[1]); err == nil {
				total = kib << 10
			}
		}
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			total = min(total, limit)
		}
	}
	return int64(total / machineShares * machineShare)
}

// diskLimit is what file streams may hold by default: three quarters of what is free where dir is, or will be.
func diskLimit(dir string) int64 {
	for ; ; dir = filepath.Dir(dir) {
		var s syscall.Statfs_t
		if syscall.Statfs(dir, &s) == nil {
			return int64(s.Bavail) / machineShares * machineShare * int64(s.Bsize)
		}
		if dir == filepath.Dir(dir) {
			return diskUnknown
		}
	}
}

// sizeText writes bytes as operators know them.
func sizeText(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " B"
	}
	const units = "KMGTPE"
	unit := 0
	value := float64(n) / (1 << 10)
	for ; value >= 1<<10 && unit < len(units)-1; unit++ {
		value /= 1 << 10
	}
	return strconv.FormatFloat(value, 'f', 2, 64) + " " + units[unit:unit+1] + "B"
}

// residentBytes is the memory that the process holds, 0 where the system does not say.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
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
