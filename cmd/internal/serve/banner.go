package serve

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"weir/model/jsapi"
	"weir/node/config"
)

// Version is the version of this program. What clients are told is the version of the reference server whose protocol
// it speaks, because they decide by that number what they may use.
const Version = "0.1.0"

// VersionLine is what the version flag prints.
func VersionLine() string {
	return fmt.Sprintf("weir: v%s (compatible with nats-server v%s)", Version, jsapi.Version)
}

// commit is the revision of the build, "" when it was built outside a repository.
func commit() string {
	const shown = 7
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= shown {
			return s.Value[:shown]
		}
	}
	return ""
}

// announce writes the first lines of the log.
func announce(log *slog.Logger, s *settings, self identity) {
	git := commit()
	if git == "" {
		git = "not set"
	}
	name := s.ServerName
	if name == "" {
		name = self.id
	}
	log.Info("Starting weir")
	log.Info("  Version:  " + Version + " (compatible with nats-server " + jsapi.Version + ")")
	log.Info("  Git:      [" + git + "]")
	log.Debug("  Go build: " + runtime.Version())
	if s.Cluster.Port != 0 && s.Cluster.Name != "" {
		log.Info("  Cluster:  " + s.Cluster.Name)
	}
	log.Info("  Name:     " + name)
	log.Info("  Node:     " + self.server.Short())
	log.Info("  ID:       " + self.id)
	if s.file != "" {
		log.Info("Using configuration file: " + s.file + " (" + s.digest + ")")
	}
}

// announceJetStream writes what persistence runs with.
func announceJetStream(log *slog.Logger, s *settings) {
	j := &s.JetStream
	dir, temporary := storeDir(j)
	log.Info("Starting JetStream")
	if temporary {
		log.Warn("Temporary storage directory used, data could be lost on system reboot")
	}
	durability := "acknowledged after sync"
	if j.SyncIntervalNanos > 0 {
		durability = fmt.Sprintf("lazy, synced every %ds: acknowledged messages can be lost in a power cut", j.SyncIntervalNanos/1e9)
	}
	log.Info("---------------- JETSTREAM ----------------")
	log.Info(fmt.Sprintf("  Strict:          %v", j.Strict))
	log.Info("  Max Memory:      " + sizeText(j.MaxMemoryBytes))
	log.Info("  Max Storage:     " + sizeText(j.MaxFileBytes))
	log.Info(fmt.Sprintf("  Store Directory: %q", dir))
	log.Info("  Durability:      " + durability)
	log.Info(fmt.Sprintf("  API Level:       %d", jsapi.APILevel))
	log.Info("-------------------------------------------")
}

// announceCluster writes where other servers connect.
func (p *process) announceCluster() {
	addr := p.host.ClusterAddr()
	if addr == nil {
		return
	}
	p.log.Info("Cluster name is " + clusterName(&p.Config))
	if p.Cluster.Name == "" {
		p.log.Warn("The cluster has no name of its own, consider setting one")
	}
	host := p.Cluster.Host
	if host == "" {
		host = config.DefaultHost
	}
	p.log.Info("Listening for route connections on " + listening(host, addr))
	if t := p.Cluster.TLS; t != nil && t.Insecure {
		p.log.Warn("TLS certificate chain and hostname of solicited routes will not be verified. DO NOT USE IN PRODUCTION!")
	}
}
