package serve

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

var nilContext = context.Background()

// exitPace is the longest time between two clients that are sent away in lame duck mode.
const exitPace = time.Second

// signalsMax is how many signals may wait to be acted upon.
const signalsMax = 16

// catch takes the signals that the server acts upon, before anybody can know that it is there.
func catch() chan os.Signal {
	caught := make(chan os.Signal, signalsMax)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP)
	return caught
}

// wait acts on signals until the server has ended, and returns the exit code.
func (p *process) wait(caught <-chan os.Signal) int {
	quit := make(chan struct{}) // closed when lame duck mode is over
	ducking := false
	for {
		select {
		case err := <-p.served:
			if err != nil && !ducking {
				p.fatal(err)
				p.shutdown()
				return 1
			}
		case <-quit:
			return p.shutdown()
		case s := <-caught:
			p.log.Info(fmt.Sprintf("Trapped %q signal", s))
			switch s {
			case syscall.SIGINT:
				return p.shutdown()
			case syscall.SIGTERM:
				if !ducking {
					return p.shutdown()
				}
			case syscall.SIGUSR1:
				p.reopen()
			case syscall.SIGUSR2:
				if !ducking {
					ducking = true
					go p.lameDuck(quit)
				}
			case syscall.SIGHUP:
				if err := p.reload(); err != nil {
					p.log.Error("Failed to reload server configuration: " + err.Error())
				} else {
					p.log.Info(fmt.Sprintf("Reloaded server configuration (%s)", p.current.Load().digest))
				}
			}
		}
	}
}

func (p *process) reopen() {
	if err := p.sink.reopen(); err != nil {
		p.log.Error("Reopening the log file: " + err.Error())
		return
	}
	p.log.Info("File log re-opened")
}

// lameDuck stops accepting clients, tells those that are there, and sends them away one by one. It closes done at the
// end.
func (p *process) lameDuck(done chan<- struct{}) {
	p.log.Info("Entering lame duck mode, stop accepting new clients")
	p.host.LameDuck()
	grace, whole := time.Duration(p.LameDuckGraceNanos), time.Duration(p.LameDuckDurationNanos)
	left := p.host.Disconnect(0)
	if left > 0 {
		time.Sleep(grace)
		p.log.Info(fmt.Sprintf("Closing existing clients, %d of them", left))
		pace := min((whole-grace)/time.Duration(left), exitPace)
		for left = p.host.Disconnect(1); left > 0; left = p.host.Disconnect(1) {
			time.Sleep(pace)
		}
	}
	close(done)
}

// shutdown ends the server in order and returns the exit code.
func (p *process) shutdown() int {
	p.log.Info("Initiating Shutdown...")
	code := 0
	if err := p.host.Shutdown(); err != nil {
		p.log.Error("Shutdown: " + err.Error())
		code = 1
	}
	if err := p.monitor.close(); err != nil {
		p.log.Error("Closing the monitoring port: " + err.Error())
	}
	for _, name := range []string{p.ports, p.current.Load().PidFile} {
		if name == "" {
			continue
		}
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			p.log.Warn("Removing a file that names the process: " + err.Error())
		}
	}
	p.log.Info("Server Exiting..")
	return code
}
