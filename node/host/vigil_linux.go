package host

import (
	"syscall"
	"time"
	"unsafe"
)

const canSleepUnseen = true

// sleepUnseen sleeps, without the knowledge of the runtime, for d or until a signal comes.
func sleepUnseen(d time.Duration) {
	interval := syscall.NsecToTimespec(d.Nanoseconds())
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&interval)), 0, 0) // a sleep cut short is as good
}
