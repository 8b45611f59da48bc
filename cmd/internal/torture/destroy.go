package torture

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// What destroys data: it befalls one server alone in a run, because damage stays hidden until somebody reads, and a
// cluster promises to survive what a minority of its servers lose.

// weak is that server.
func (n *nemesis) weak() *server {
	return n.run.cluster.servers[n.run.options.Seed%uint64(n.run.options.Nodes)]
}

// wipe ends a server and empties its disk: what starts then is a new server of the same name.
func (n *nemesis) wipe(fault) (string, func() error, error) {
	s := n.weak()
	return s.name, nil, n.destroy(s, func() error { return os.RemoveAll(filepath.Join(s.dir, "data")) })
}

// rot ends a server and changes one byte of what it has stored.
func (n *nemesis) rot(f fault) (string, func() error, error) {
	s := n.weak()
	var where string
	err := n.destroy(s, func() (err error) {
		where, err = flip(filepath.Join(s.dir, "data"), f.at)
		return err
	})
	return s.name + " " + where, nil, err
}

// destroy does something to the disk of a server while it is down and waits until everything is whole again.
func (n *nemesis) destroy(s *server, harm func() error) error {
	n.whole.Lock()
	defer n.whole.Unlock()
	// What is to survive has to be there: a server that lags behind could be the one whose copy counts.
	if err := n.mended(); err != nil {
		return fmt.Errorf("nothing is destroyed: %w", err)
	}
	s.kill()
	if err := errors.Join(harm(), n.run.cluster.start(s)); err != nil {
		return err
	}
	n.run.outages.change(n.run.log.now(), n.quorum(), "after harm")
	if err := n.mended(); err != nil {
		n.run.mu.Lock()
		defer n.run.mu.Unlock()
		n.run.late = append(n.run.late, fmt.Sprintf("what was destroyed on %s is not whole again after %v: %v", s.name, mendMax, err))
		return err
	}
	return nil
}

// mended waits until all streams have all their replicas.
func (n *nemesis) mended() error {
	limit, cancel := context.WithTimeout(context.Background(), mendMax)
	defer cancel()
	return until(limit, func(ctx context.Context) error {
		all := n.steadyCurrent(ctx)
		n.run.load.mu.Lock()
		small := n.run.load.small
		n.run.load.mu.Unlock()
		for i := range small {
			if all != nil {
				break
			}
			all = n.current(ctx, small[i].name, small[i].replicas)
		}
		return all
	})
}

// flip changes a byte of a file below a directory; draw chooses both among the files of the log, of blocks and of
// checkpoints.
func flip(dir string, draw uint64) (string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, dir)
		stored := strings.Contains(name, "/wal/") || strings.HasSuffix(name, ".blk") || strings.HasSuffix(name, ".ckpt")
		if info, err := entry.Info(); err == nil && stored && info.Size() > 0 && !strings.Contains(name, "/dropped/") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		return "", errors.Join(err, errors.New("there is no file to damage"))
	}
	path := files[draw%uint64(len(files))]
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	info, err := file.Stat()
	if err != nil {
		return "", errors.Join(err, file.Close())
	}
	at, one := int64(draw/7%uint64(info.Size())), []byte{0}
	if _, err := file.ReadAt(one, at); err != nil {
		return "", errors.Join(err, file.Close())
	}
	one[0] ^= 1 << (draw % 8)
	_, err = file.WriteAt(one, at)
	return fmt.Sprintf("%s at %d", strings.TrimPrefix(path, dir), at), errors.Join(err, file.Close())
}
