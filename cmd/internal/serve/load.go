package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/conf"

	"weir/node/auth"
	"weir/node/config"
	"weir/transport/tcp"
)

// settings is what the server runs with, and where it came from.
type settings struct {
	config.Config
	file   string
	digest string // of the file's content, as monitoring shows it
	loaded time.Time
	guard  *tcp.Guard        // of the connections of clients; nil without TLS
	web    *tcp.Guard        // of WebSockets
	trust  *auth.TrustConfig // nil without operators
}

// load reads the configuration file, if any, and lets the flags override it. Warnings do not keep a server from
// starting.
func load(f *flags) (settings, config.Problems, error) {
	s := settings{Config: config.Default(), file: f.file, loaded: time.Now()}
	var warnings config.Problems
	if f.file != "" {
		tree, digest, err := conf.ParseFileWithChecksDigest(f.file)
		if err != nil {
			return s, nil, err
		}
		if warnings, err = s.Apply(tree); err != nil {
			return s, warnings, err
		}
		if len(tree) == 0 {
			warnings = append(warnings, config.Problem{Text: f.file + ": config has no values or is empty"})
		}
		s.digest = digest
	}
	f.apply(&s.Config)
	s.Complete()
	if err := s.Check(); err != nil {
		return s, warnings, err
	}
	var err error
	if s.trust, err = loadTrust(&s.Config); err != nil {
		return s, warnings, err
	}
	if s.guard, err = clientGuard(s.TLS); err != nil {
		return s, warnings, err
	}
	if s.guard != nil {
		s.guard.Optional = s.AllowNonTLS
	}
	if s.web, err = clientGuard(s.WebSocket.TLS); err != nil {
		return s, warnings, fmt.Errorf("websocket: %w", err)
	}
	if s.web != nil {
		s.web.First = true
	}
	return s, warnings, nil
}

// checkOnly is the -t flag: it says whether a configuration could be served, and counts warnings as errors.
func checkOnly(f *flags) error {
	if f.file == "" {
		return errors.New("must specify [-c, --config] option to check configuration file syntax")
	}
	s, warnings, err := load(f)
	if err != nil {
		return err
	}
	if len(warnings) > 0 {
		return warnings
	}
	fmt.Fprintf(os.Stderr, "weir: configuration file %s is valid (%s)\n", s.file, s.digest)
	return nil
}

// dataDir is the server's own directory below the one that the operator names.
const dataDir = "jetstream"

// storeDir is where the server keeps its data, as an absolute path. temporary says that the operator named no directory.
func storeDir(j *config.JetStream) (dir string, temporary bool) {
	base := j.StoreDir
	if base == "" {
		base, temporary = filepath.Join(os.TempDir(), "nats"), true
	}
	if absolute, err := filepath.Abs(base); err == nil {
		base = absolute
	}
	if filepath.Base(base) == dataDir {
		return base, temporary
	}
	return filepath.Join(base, dataDir), temporary
}

// executable is the name under which the process was started.
func executable() string {
	return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
}
