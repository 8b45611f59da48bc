package serve

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"weir/node/config"
)

// flags is a command line that has been read.
type flags struct {
	file       string // configuration file
	check      bool   // only check it
	version    bool
	help       bool
	signal     string // signal to send to another process
	profile    string // profiling mode
	profileDir string
	settings   []func(*config.Config) // to be applied after the file, in the order given
	// unsupported is the name of a flag that only other versions have, "" when there is none.
	unsupported string
}

// apply overrides what the file says.
func (f *flags) apply(c *config.Config) {
	for _, set := range f.settings {
		set(c)
	}
}

// usageError is an error of the command line itself.
type usageError struct{ error }

// parseFlags reads a command line in the form of the standard flag package: one dash or two, "-x v" or "-x=v".
func parseFlags(args []string) (*flags, error) {
	f := &flags{}
	set := flag.NewFlagSet("weir", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	f.register(set)
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			f.help = true
			return f, nil
		}
		if f.unsupported != "" {
			return nil, fmt.Errorf("flag -%s is not supported by this version of weir (weir -h lists what is)", f.unsupported)
		}
		return nil, usageError{err}
	}
	switch rest := set.Args(); {
	case len(rest) == 0:
	case strings.EqualFold(rest[0], "version"):
		f.version = true
	case strings.EqualFold(rest[0], "help"):
		f.help = true
	default:
		return nil, fmt.Errorf("unrecognized command: %q", rest[0])
	}
	return f, nil
}

func (f *flags) register(set *flag.FlagSet) {
	for name := range strings.FieldsSeq("c config") {
		set.StringVar(&f.file, name, "", "")
	}
	for name := range strings.FieldsSeq("sl signal") {
		set.StringVar(&f.signal, name, "", "")
	}
	for name := range strings.FieldsSeq("v version") {
		set.BoolVar(&f.version, name, false, "")
	}
	for name := range strings.FieldsSeq("h help") {
		set.BoolVar(&f.help, name, false, "")
	}
	set.BoolVar(&f.check, "t", false, "")
	set.StringVar(&f.profile, "profile", "", "")
	set.StringVar(&f.profileDir, "profile_dir", ".", "")
	f.registerTexts(set)
	f.registerNumbers(set)
	f.registerSwitches(set)
	f.registerCluster(set)
	f.registerTLS(set)
	for name := range strings.FieldsSeq("ms https_port r remote_syslog") {
		set.Func(name, "", func(string) error { return f.refuse(name) })
	}
	for name := range strings.FieldsSeq("s syslog help_tls") {
		set.BoolFunc(name, "", func(string) error { return f.refuse(name) })
	}
}

var errUnsupported = errors.New("not supported by this version of weir")

// refuse remembers a flag that this version does not have, since package flag words the errors of values only.
func (f *flags) refuse(name string) error {
	f.unsupported = name
	return errUnsupported
}

// texts registers a flag under several names that sets a text.
func (f *flags) texts(set *flag.FlagSet, names string, field func(*config.Config) *string) {
	for name := range strings.FieldsSeq(names) {
		set.Func(name, "", func(text string) error {
			f.settings = append(f.settings, func(c *config.Config) { *field(c) = text })
			return nil
		})
	}
}

func (f *flags) registerTexts(set *flag.FlagSet) {
	f.texts(set, "a addr net", func(c *config.Config) *string { return &c.Host })
	f.texts(set, "n name server_name", func(c *config.Config) *string { return &c.ServerName })
	f.texts(set, "client_advertise", func(c *config.Config) *string { return &c.ClientAdvertise })
	f.texts(set, "P pid", func(c *config.Config) *string { return &c.PidFile })
	f.texts(set, "ports_file_dir", func(c *config.Config) *string { return &c.PortsFileDir })
	f.texts(set, "l log", func(c *config.Config) *string { return &c.LogFile })
	f.texts(set, "user", func(c *config.Config) *string { return &c.Authorization.User })
	f.texts(set, "pass", func(c *config.Config) *string { return &c.Authorization.Password })
	f.texts(set, "auth", func(c *config.Config) *string { return &c.Authorization.Token })
	f.texts(set, "sd store_dir", func(c *config.Config) *string { return &c.JetStream.StoreDir })
}

// numbers registers a flag under several names that sets a number; 0 changes nothing, as in the reference server.
func (f *flags) numbers(set *flag.FlagSet, names string, take func(*config.Config, int64)) {
	for name := range strings.FieldsSeq(names) {
		set.Func(name, "", func(text string) error {
			n, err := strconv.ParseInt(text, 0, 64)
			if err != nil {
				return errors.New("parse error")
			}
			if n != 0 {
				f.settings = append(f.settings, func(c *config.Config) { take(c, n) })
			}
			return nil
		})
	}
}

func (f *flags) registerNumbers(set *flag.FlagSet) {
	f.numbers(set, "p port", func(c *config.Config, n int64) { c.Port = int(n) })
	f.numbers(set, "m http_port", func(c *config.Config, n int64) { c.HTTPPort = int(n) })
	f.numbers(set, "log_size_limit", func(c *config.Config, n int64) { c.LogSizeLimitBytes = n })
	f.numbers(set, "max_traced_msg_len", func(c *config.Config, n int64) { c.MaxTracedBytes = int(n) })
}

// switches registers a flag under several names that sets truths.
func (f *flags) switches(set *flag.FlagSet, names string, take func(*config.Config, bool)) {
	for name := range strings.FieldsSeq(names) {
		set.BoolFunc(name, "", func(text string) error {
			on, err := strconv.ParseBool(text)
			if err != nil {
				return errors.New("parse error")
			}
			f.settings = append(f.settings, func(c *config.Config) { take(c, on) })
			return nil
		})
	}
}

func (f *flags) registerCluster(set *flag.FlagSet) {
	for name := range strings.FieldsSeq("cluster cluster_listen") {
		set.Func(name, "", func(text string) error {
			var listen config.Cluster
			if err := listen.Listen(text); err != nil {
				return err
			}
			f.settings = append(f.settings, func(c *config.Config) {
				k := &c.Cluster
				k.Host, k.Port, k.User, k.Password = listen.Host, listen.Port, listen.User, listen.Password
			})
			return nil
		})
	}
	set.Func("routes", "", func(text string) error {
		routes, err := config.ParseRoutes(text)
		f.settings = append(f.settings, func(c *config.Config) { c.Cluster.Routes = routes })
		return err
	})
	f.texts(set, "cluster_name", func(c *config.Config) *string { return &c.Cluster.Name })
	f.texts(set, "cluster_advertise", func(c *config.Config) *string { return &c.Cluster.Advertise })
	f.numbers(set, "connect_retries", func(c *config.Config, n int64) { c.Cluster.ConnectRetries = int(max(n, 0)) })
	f.switches(set, "no_advertise", func(c *config.Config, on bool) { c.Cluster.NoAdvertise = on })
}

// registerTLS registers the flags about the protection of clients. Each of them asks for it.
func (f *flags) registerTLS(set *flag.FlagSet) {
	block := func(c *config.Config) *config.TLS {
		if c.TLS == nil {
			c.TLS = config.NewTLS()
		}
		return c.TLS
	}
	f.texts(set, "tlscert", func(c *config.Config) *string { return &block(c).CertFile })
	f.texts(set, "tlskey", func(c *config.Config) *string { return &block(c).KeyFile })
	f.texts(set, "tlscacert", func(c *config.Config) *string { return &block(c).CAFile })
	f.switches(set, "tls", func(c *config.Config, on bool) {
		if on {
			block(c)
		}
	})
	f.switches(set, "tlsverify", func(c *config.Config, on bool) {
		if on {
			block(c).Verify = true
		}
	})
}

func (f *flags) registerSwitches(set *flag.FlagSet) {
	f.switches(set, "js jetstream", func(c *config.Config, on bool) { c.JetStream.Enabled = on })
	f.switches(set, "D debug", func(c *config.Config, on bool) { c.Debug = on })
	f.switches(set, "V trace", func(c *config.Config, on bool) { c.Trace = on })
	f.switches(set, "VV", func(c *config.Config, on bool) { c.Trace, c.TraceVerbose = on, on })
	f.switches(set, "DV", func(c *config.Config, on bool) { c.Debug, c.Trace = on, on })
	f.switches(set, "DVV", func(c *config.Config, on bool) { c.Debug, c.Trace, c.TraceVerbose = on, on, on })
	f.switches(set, "T logtime", func(c *config.Config, on bool) { c.LogTime = on })
	f.switches(set, "logtime_utc", func(c *config.Config, on bool) { c.LogTimeUTC = on })
}
