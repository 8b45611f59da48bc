package serve

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"weir/node/event"
	"weir/node/storage"
)

// serverID reads the identity of a data directory; fresh is the one that a directory gets that is still to be made. What is
// damaged is left to the storage, which refuses it.
func serverID(dir string, fresh event.ServerID) (event.ServerID, error) {
	text, err := os.ReadFile(filepath.Join(dir, storage.IdentityFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fresh, nil
	case err != nil:
		return 0, fmt.Errorf("identity of the data directory: %w", err)
	}
	if id, err := storage.ParseIdentity(text); err == nil {
		return event.ServerID(id), nil
	}
	return fresh, nil
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
