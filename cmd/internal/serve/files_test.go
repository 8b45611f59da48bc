package serve

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestPidFileHoldsTheProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.pid")
	if err := writePid(file); err != nil {
		t.Fatal(err)
	}
	if got := content(t, file); got != strconv.Itoa(os.Getpid()) {
		t.Errorf("got %q", got)
	}
	if err := writePid(""); err != nil {
		t.Error(err)
	}
	if err := writePid(filepath.Join(file, "x")); err == nil {
		t.Error("an impossible file is no error")
	}
}

func TestPortsFileListsURLs(t *testing.T) {
	dir := t.TempDir()
	name, err := writePorts(dir, listeners{
		client: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4222}, monitoring: &net.TCPAddr{IP: net.IPv4zero, Port: 8222},
		cluster: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6222},
	})
	if err != nil {
		t.Fatal(err)
	}
	if base := filepath.Base(name); !strings.HasSuffix(base, "_"+strconv.Itoa(os.Getpid())+".ports") {
		t.Errorf("file is called %s", base)
	}
	var p portsFile
	if err := json.Unmarshal([]byte(content(t, name)), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Nats) != 1 || p.Nats[0] != "nats://127.0.0.1:4222" || len(p.Monitoring) == 0 || !strings.HasSuffix(p.Monitoring[0], ":8222") ||
		len(p.Cluster) != 1 || p.Cluster[0] != "nats://127.0.0.1:6222" {
		t.Errorf("got %+v", p)
	}
	if name, err := writePorts("", listeners{}); name != "" || err != nil {
		t.Error(name, err)
	}
}

func TestSignalNeedsAWordAndAProcess(t *testing.T) {
	for _, order := range []string{"dance=1", "quit", "quit=/nonexistent", "quit=0", "quit=-1"} {
		if err := sendSignal(order); err == nil {
			t.Errorf("%q is no error", order)
		}
	}
}

func TestListeningNamesTheConfiguredHost(t *testing.T) {
	for host, want := range map[string]string{"0.0.0.0": "0.0.0.0:4222", "::": "[::]:4222", "localhost": "localhost:4222"} {
		if got := listening(host, &net.TCPAddr{IP: net.IPv6zero, Port: 4222}); got != want {
			t.Errorf("host %q reads %q, want %q", host, got, want)
		}
	}
}

func TestSizesReadWell(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.00 KB", 1536 << 20: "1.50 GB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d bytes read %q, want %q", n, got, want)
		}
	}
}

func TestLimitsOfTheMachineAreSane(t *testing.T) {
	if n := memoryLimit(); n < 1<<20 {
		t.Errorf("memory limit is %d", n)
	}
	if n := diskLimit(filepath.Join(t.TempDir(), "not", "yet", "there")); n < 1<<20 {
		t.Errorf("disk limit is %d", n)
	}
}
