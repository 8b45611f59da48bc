package serve

import (
	"errors"
	"os"
	"time"

	"weir/node/auth"
	"weir/node/config"
	"weir/node/event"
	"weir/node/host"
)

// reload reads the configuration file again, and changes what can be changed while the server runs. Nothing is changed
// when anything else differs, or when the file is wrong.
func (p *process) reload() error {
	if p.flags.file == "" {
		return errors.New("can only reload config when a file is provided using -c or --config")
	}
	next, warnings, err := load(p.flags)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		p.log.Warn(w.Error())
	}
	was := p.current.Load()
	settle(&next, p.settings)
	difference, err := config.Compare(&was.Config, &next.Config)
	if err != nil {
		return err
	}
	change, err := p.change(&next, difference.Users)
	if err != nil {
		return err
	}
	if err := p.sink.reload(&next.Config); err != nil {
		return err
	}
	p.current.Store(&next)
	p.host.Reload(change)
	p.renameFiles(was, &next)
	for _, line := range difference.Lines {
		p.log.Info(line)
	}
	return nil
}

// settle puts what was found out when the server started in the place of what asks for that.
func settle(next, started *settings) {
	if next.JetStream.MaxMemoryBytes == config.Dynamic {
		next.JetStream.MaxMemoryBytes = started.JetStream.MaxMemoryBytes
	}
	if next.JetStream.MaxFileBytes == config.Dynamic {
		next.JetStream.MaxFileBytes = started.JetStream.MaxFileBytes
	}
	if next.JetStream.SyncAlways {
		next.JetStream.SyncIntervalNanos = started.JetStream.SyncIntervalNanos
	}
}

// change is what the host is told.
func (p *process) change(next *settings, users bool) (host.Change, error) {
	c := host.Change{
		Guard: next.guard, WebGuard: next.web, WriteDeadline: time.Duration(next.WriteDeadlineNanos), TraceBytes: max(next.MaxTracedBytes, 0),
	}
	limits := clientLimits(&next.Config)
	c.Clients = event.Reload{
		ControlLineBytes: limits.ControlLineBytes, PayloadBytes: limits.PayloadBytes, PendingBytes: limits.PendingBytes,
		Connections: limits.Connections, PingIntervalNanos: limits.PingIntervalNanos, PingsOut: limits.PingsOut,
		AuthTimeoutNanos: limits.AuthTimeoutNanos, Protection: protection(&next.Config), WebSockets: door(&next.Config),
	}
	c.Clients.AdvertiseHost, c.Clients.AdvertisePort = advertisedClients(&next.Config)
	var err error
	if c.Cluster, err = hostCluster(&next.Config); err != nil || !users {
		return c, err
	}
	c.Clients.Users, err = auth.New(authConfig(next))
	return c, err
}

// renameFiles writes the files that name the process to where they are wanted now.
func (p *process) renameFiles(was, next *settings) {
	complain := func(err error) {
		if err != nil {
			p.log.Error("Failed to write a file that names the process: " + err.Error())
		}
	}
	if was.PidFile != next.PidFile {
		complain(writePid(next.PidFile))
	}
	if was.PortsFileDir == next.PortsFileDir {
		return
	}
	if p.ports != "" {
		complain(os.Remove(p.ports))
	}
	var err error
	p.ports, err = writePorts(next.PortsFileDir, p.listeners(&next.Config))
	complain(err)
}
