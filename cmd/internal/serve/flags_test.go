package serve

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"weir/node/config"
)

func TestFlagsTakeOneDashOrTwoAndBothForms(t *testing.T) {
	for _, args := range []string{
		"-p 4333 -js -sd /d -a ::1 -n s1", "--port=4333 --jetstream --store_dir=/d --net=::1 --name s1",
		"-port 4333 -js=true -store_dir /d -addr ::1 --server_name=s1",
	} {
		f, err := parseFlags(strings.Fields(args))
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		c := config.Default()
		f.apply(&c)
		if c.Port != 4333 || !c.JetStream.Enabled || c.JetStream.StoreDir != "/d" || c.Host != "::1" || c.ServerName != "s1" {
			t.Errorf("%s: got %+v", args, c)
		}
	}
}

func TestClusterFlags(t *testing.T) {
	for args, want := range map[string]config.Cluster{
		"-cluster nats://h:6222":                                   {Host: "h", Port: 6222},
		"--cluster_listen=nats://u:p%40@[::1]:-1":                  {Host: "::1", Port: -1, User: "u", Password: "p@"},
		"-cluster nats://h:6222 -cluster_name c -cluster= -name x": {Name: "c"},
		"-cluster h:1 -routes nats://a:1,,nats://u:p@b:2 --cluster_advertise=e:1 -no_advertise --connect_retries 3": {
			Host: "h", Port: 1, Advertise: "e:1", NoAdvertise: true, ConnectRetries: 3,
			Routes: []config.Route{{Address: "a:1"}, {Address: "b:2", User: "u", Password: "p"}},
		},
	} {
		f, err := parseFlags(strings.Fields(args))
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		c := config.Config{Cluster: config.Cluster{User: "file", Password: "file"}}
		f.apply(&c)
		if !reflect.DeepEqual(c.Cluster, want) {
			t.Errorf("%s gives %+v, want %+v", args, c.Cluster, want)
		}
	}
}

func TestLogFlags(t *testing.T) {
	for args, want := range map[string][3]bool{
		"-D": {true, false, false}, "-V": {false, true, false}, "-VV": {false, true, true}, "-DV": {true, true, false},
		"-DVV": {true, true, true}, "--debug=false": {}, "": {},
	} {
		f, err := parseFlags(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		c := config.Default()
		f.apply(&c)
		if got := [3]bool{c.Debug, c.Trace, c.TraceVerbose}; got != want {
			t.Errorf("%q sets debug, trace, verbose to %v, want %v", args, got, want)
		}
	}
}

func TestWrongFlagsAreUsageErrors(t *testing.T) {
	for _, args := range []string{"-foo", "-p", "-p x", "-js=perhaps", "-cluster x", "-cluster nats://u@h:1", "-routes h:1"} {
		if _, err := parseFlags(strings.Fields(args)); !errors.As(err, &usageError{}) {
			t.Errorf("%q: got %v", args, err)
		}
	}
	for args, want := range map[string]string{
		"-js -syslog": "flag -syslog is", "-s": "flag -s is",
	} {
		_, err := parseFlags(strings.Fields(args))
		if err == nil || errors.As(err, &usageError{}) || !strings.HasPrefix(err.Error(), want+" not supported") {
			t.Errorf("%q: got %v", args, err)
		}
	}
	if _, err := parseFlags([]string{"foo"}); err == nil || errors.As(err, &usageError{}) {
		t.Errorf("an unknown command gave %v", err)
	}
}

func TestFlagsOverrideTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.conf")
	text := "port: 4555\nserver_name: from_file\njetstream { store_dir: \"/file\" }\nmax_payload: 1000\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := parseFlags([]string{"-c", file, "-p", "-1", "-sd", "/flag", "-m", "8222"})
	if err != nil {
		t.Fatal(err)
	}
	s, warnings, err := load(f)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if s.Port != -1 || s.ServerName != "from_file" || s.JetStream.StoreDir != "/flag" || s.HTTPPort != 8222 || s.MaxPayloadBytes != 1000 {
		t.Errorf("got %+v", s.Config)
	}
	if !strings.HasPrefix(s.digest, "sha256:") {
		t.Errorf("digest is %q", s.digest)
	}
	if dir, temporary := storeDir(&s.JetStream); dir != "/flag/jetstream" || temporary {
		t.Errorf("data goes to %s, temporary %v", dir, temporary)
	}
}

func TestCheckCountsWarningsAsErrors(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"port: 4222\n":      "",
		"ping_interval: 2m": "should be converted to a duration",
		"prot: 4222\n":      `a.conf:1:0: unknown field "prot"`,
		"# nothing\n":       "a.conf: config has no values or is empty",
	} {
		file := filepath.Join(dir, "a.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkOnly(&flags{file: file})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if checkOnly(&flags{}) == nil {
		t.Error("-t without -c is no error")
	}
}
