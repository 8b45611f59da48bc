package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"weir/disk/osfs"
)

// bareRecord is the size of what the bare loop writes each time: a payload with the subject and a frame around it.
const bareRecord = payloadSize + len(subject) + 32

// bareFill is how much of the preallocated file is written with zeros first.
const bareFill = 16 << 20

// loopAppend appends records to a file and syncs each: what a log costs at least on this disk.
func loopAppend(dir string, span time.Duration) (float64, error) { return bareLoop(dir, span, 0) }

// loopFilled does the same within a file whose blocks exist already: the least that a log can cost.
func loopFilled(dir string, span time.Duration) (float64, error) {
	return bareLoop(dir, span, bareFill)
}

func bareLoop(dir string, span time.Duration, fill int) (float64, error) {
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("loop-%d", fill)))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, fill)); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	record := make([]byte, bareRecord)
	n, begin := 0, time.Now()
	for ; n == 0 || time.Since(begin) < span; n++ {
		offset := int64(n) * int64(bareRecord)
		if fill > 0 {
			offset %= int64(fill - bareRecord)
		}
		if _, err := f.WriteAt(record, offset); err != nil {
			return 0, err
		}
		if err := osfs.Datasync(f); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}
