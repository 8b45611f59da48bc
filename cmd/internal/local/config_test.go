package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/conf"

	"weir/node/config"
)

// TestConfigurationsAreValid reads what the servers of a local cluster are given.
func TestConfigurationsAreValid(t *testing.T) {
	o := Options{Nodes: 5, Dir: filepath.Join(t.TempDir(), `a "strange" name`), Port: 4222, ClusterPort: 6222, HTTPPort: 8222}
	seen := map[string]bool{}
	for i := range o.Nodes {
		file := filepath.Join(t.TempDir(), "weir.conf")
		if err := os.WriteFile(file, []byte(Config(o, i)), 0o600); err != nil {
			t.Fatal(err)
		}
		tree, err := conf.ParseFileWithChecks(file)
		if err != nil {
			t.Fatal(err)
		}
		c := config.Default()
		warnings, err := c.Apply(tree)
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		if c.ServerName != Name(i) || c.Port != 4222+i || c.Cluster.Port != 6222+i || c.HTTPPort != 8222+i || len(c.Cluster.Routes) != o.Nodes ||
			c.AccountOf(AppUser) != "APP" || c.AccountOf(SystemUser) != c.SystemAccount || c.NoAuthUser != AppUser || seen[c.JetStream.StoreDir] {
			t.Errorf("server %d has the configuration %+v", i, c)
		}
		seen[c.JetStream.StoreDir] = true
	}
	guide := Guide(o, []int{11, 12, 13, 14, 15})
	for _, want := range []string{"n5  pid 15", "nats://127.0.0.1:4226", "--replicas 3"} {
		if !strings.Contains(guide, want) {
			t.Errorf("the guide lacks %q:\n%s", want, guide)
		}
	}
}

func TestNumberOfServersIsBounded(t *testing.T) {
	for _, n := range []int{-1, 0, NodesMax + 1} {
		if err := Run(Options{Nodes: n, Dir: t.TempDir()}); err == nil {
			t.Errorf("%d servers are taken", n)
		}
	}
}
