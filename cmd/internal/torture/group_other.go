//go:build unix && !linux

package torture

import "syscall"

// ownGroup gives a server a process group of its own, as the terminal's interrupt is not for it.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
