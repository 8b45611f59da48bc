package node_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/disk/wal"
	"weir/node/storage"
)

// damagedGroups are the groups that a server which starts on a copy of the disk finds damaged.
func damagedGroups(t *testing.T, disk *memfs.FS) (damaged []wal.GroupID) {
	t.Helper()
	_, groups, err := storage.Open(disk.Crash(memfs.KeepAll, 0), "data", storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range groups {
		if groups[i].Damage != nil {
			damaged = append(damaged, groups[i].ID)
		}
	}
	return damaged
}

// damageLog damages a place of the log that costs the server the group, and nothing else.
func damageLog(t *testing.T, disk *memfs.FS, group wal.GroupID) {
	t.Helper()
	for _, name := range disk.Files("data/wal") {
		for off := int64(64); strings.HasSuffix(name, ".seg") && off < disk.Size(name); off += 64 {
			image := disk.Crash(memfs.KeepAll, 0)
			if image.Damage(name, memfs.RotBit, off) != nil {
				continue
			}
			if found := damagedGroups(t, image); len(found) == 1 && found[0] == group {
				if err := disk.Damage(name, memfs.RotBit, off); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
	}
	t.Fatalf("no place of the log costs group %d alone", group)
}

// TestDamagedReplicasOfAMajorityKeepWhatTheyHave damages the logs of two of three replicas: neither of them gives up what is left
// of it for another replica, which could never become a member. One alone does.
func TestDamagedReplicasOfAMajorityKeepWhatTheyHave(t *testing.T) {
	const group = 16
	for _, victims := range [][]int{{0}, {0, 1}, {1, 2}, {0, 1, 2}} {
		c := newCluster(t, 3)
		c.create("S", 3)
		for i := range 20 {
			if got := c.request(0, "S", fmt.Sprint(i)); !strings.Contains(got, `"seq"`) {
				t.Fatal(got)
			}
		}
		c.run(20)
		for _, i := range victims {
			c.kill(i)
			damageLog(t, c.rigs[i].disk, group)
			delete(c.rigs[i].out, 900)
		}
		for _, i := range victims {
			c.restart(i)
		}
		c.run(300)
		alone := len(victims) == 1
		for _, i := range victims {
			if kept := len(damagedGroups(t, c.rigs[i].disk)) == 1; kept == alone {
				t.Errorf("with damage on servers %v, server %d keeps what is left: %v", victims, i, kept)
			}
		}
		if got := c.request(2, "$JS.API.STREAM.INFO.S", ""); alone != strings.Contains(got, `"messages":20,`) {
			t.Errorf("with damage on servers %v: %s", victims, got)
		}
	}
}
