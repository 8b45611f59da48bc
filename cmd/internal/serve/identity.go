package serve

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weir/node/event"
)

// identityFile holds the identity of a data directory. Other servers of a cluster know this one by it, so a directory
// whose data is gone has to get a new one, and a copy of a directory must not be served beside the original.
const identityFile = "identity"

const identityPrefix = "weir server "

// serverID reads the identity of a data directory, or makes one for a directory that has none yet.
func serverID(dir string) (event.ServerID, error) {
	name := filepath.Join(dir, identityFile)
	text, err := os.ReadFile(name)
	switch {
	case err == nil:
		return parseIdentity(name, string(text))
	case !errors.Is(err, os.ErrNotExist):
		return 0, fmt.Errorf("identity of the data directory: %w", err)
	}
	id, err := randomID()
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("could not create storage directory - %w", err)
	}
	return id, writeDurably(name, fmt.Sprintf("%s%016x\n", identityPrefix, uint64(id)))
}

func parseIdentity(name, text string) (event.ServerID, error) {
	digits, ok := strings.CutPrefix(strings.TrimSpace(text), identityPrefix)
	id, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil || id == 0 {
		return 0, fmt.Errorf("%s is damaged: it holds no identity of a server", name)
	}
	return event.ServerID(id), nil
}

// randomID draws an identity that is not 0.
func randomID() (event.ServerID, error) {
	var random [8]byte
	for {
		if _, err := rand.Read(random[:]); err != nil {
			return 0, err
		}
		if id := event.ServerID(binary.LittleEndian.Uint64(random[:])); id != 0 {
			return id, nil
		}
	}
}

// writeDurably makes a file that after a crash is there as a whole or not at all.
func writeDurably(name, text string) (err error) {
	part := name + ".new"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
