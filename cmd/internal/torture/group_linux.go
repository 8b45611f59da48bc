package torture

import "syscall"

// ownGroup gives a server a process group of its own, as the terminal's interrupt is not for it; it does not outlive this
// process.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
