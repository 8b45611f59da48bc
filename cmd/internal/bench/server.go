package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"
)

const (
	peerModule  = "github.com/nats-io/nats-server/v2"
	peerVersion = "v2.15.2" // where the build information of this binary names none

	startMax = 60 * time.Second // how long a server may take until it answers
	stopMax  = 30 * time.Second // how long it may take to end when asked
	pollEach = time.Millisecond

	profileDir = "profiles" // below the current directory; a directory per work
)

// contender is a server that can be started.
type contender struct {
	name   string
	binary string
	args   []string
	extra  string // lines of its jetstream block

	profile string // mode of its --profile flag, "" for none
}

func contenders(ctx context.Context, o Options) (servers [columnCount]*contender, err error) {
	servers[weirColumn] = &contender{name: "weir", binary: o.Binary, args: []string{"serve"}, profile: o.Profile}
	if !o.Peer {
		return servers, nil
	}
	binary := o.PeerBinary
	if binary == "" {
		if binary, err = buildPeer(ctx, o); err != nil {
			return servers, fmt.Errorf("build the reference server: %w", err)
		}
	}
	servers[defaultColumn] = &contender{name: "reference", binary: binary}
	servers[alwaysColumn] = &contender{name: "reference, sync always", binary: binary, extra: "sync_interval: always"}
	return servers, nil
}

// buildPeer builds the reference server of the version that this module depends on, once per version and user.
func buildPeer(ctx context.Context, o Options) (string, error) {
	version := peerVersion
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == peerModule {
				version = dep.Version
			}
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "weir", "peer-"+version)
	binary := filepath.Join(dir, "nats-server")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	fmt.Fprintf(o.Progress, "building %s %s\n", peerModule, version)
	work, err := os.MkdirTemp("", "weir-peer-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	cmd := exec.CommandContext(ctx, "go", "install", peerModule+"@"+version)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "GOBIN="+work, "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	made := filepath.Join(work, "nats-server")
	if os.Rename(made, binary) == nil {
		return binary, nil
	}
	text, err := os.ReadFile(made)
	if err != nil {
		return "", err
	}
	return binary, os.WriteFile(binary, text, 0o755)
}
