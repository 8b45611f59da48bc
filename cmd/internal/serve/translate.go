package serve

import (
	"math"
	"net"
	"runtime"
	"strconv"
	"time"

	"weir/model/jsapi"
	"weir/node"
	"weir/node/auth"
	"weir/node/config"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/storage"
)

// identity is what a process is, apart from its configuration.
type identity struct {
	id     string
	seed   uint64
	boot   uint64
	server event.ServerID // of the data directory, or of the process without one
}

// nodeConfig translates the configuration into that of a node. The listening port is set by the host.
func nodeConfig(s *settings, self identity) (node.Config, error) {
	authenticator, err := auth.New(authConfig(s))
	if err != nil {
		return node.Config{}, err
	}
	name := s.ServerName
	if name == "" {
		name = self.id
	}
	c := node.Config{Engine: engine.Config{
		ServerID:      self.id,
		ServerName:    name,
		Host:          s.Host,
		Port:          max(s.Port, 0),
		GoVersion:     runtime.Version(),
		Auth:          authenticator,
		Accounts:      accounts(s),
		Limits:        clientLimits(&s.Config),
		Protection:    protection(&s.Config),
		WebSockets:    door(&s.Config),
		SystemAccount: s.SystemAccount,
		Seed:          self.seed,
		Boot:          self.boot,
		Server:        self.server,
		Cluster:       clusterConfig(&s.Config),
	}}
	c.Engine.AdvertiseHost, c.Engine.AdvertisePort = advertisedClients(&s.Config)
	if s.JetStream.Enabled {
		dir, _ := storeDir(&s.JetStream)
		c.Engine.JetStream = jetStream(&s.JetStream, dir)
		c.Storage.ReserveBytes, c.Storage.LogReserveBytes = storage.ReserveBytesDefault, storage.LogReserveBytesDefault
	}
	return c, nil
}

// clientLimits bounds what clients may do.
func clientLimits(c *config.Config) engine.Limits {
	return engine.Limits{
		ControlLineBytes:  c.MaxControlLineBytes,
		PayloadBytes:      c.MaxPayloadBytes,
		PendingBytes:      int(min(c.MaxPendingBytes, math.MaxInt)),
		Connections:       max(c.MaxConnections, 0),
		Subscriptions:     max(c.MaxSubscriptions, 0),
		PingIntervalNanos: c.PingIntervalNanos,
		PingsOut:          c.PingMax,
		NoHeaders:         c.NoHeaderSupport,
		AuthTimeoutNanos:  c.Authorization.TimeoutNanos,
	}
}

// advertisedClients is the address that clients are told instead of that on which the server listens; a port of 0 is the
// same.
func advertisedClients(c *config.Config) (name string, port int) {
	name, text, err := net.SplitHostPort(c.ClientAdvertise)
	if err != nil {
		return c.ClientAdvertise, 0
	}
	if port, err = strconv.Atoi(text); err != nil {
		port = 0
	}
	return name, port
}

// advertised completes an address that may lack its port.
func advertised(address string, port int) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(address, strconv.Itoa(port))
}

func jetStream(j *config.JetStream, dir string) engine.JetStream {
	if j.MaxMemoryBytes == config.Dynamic {
		j.MaxMemoryBytes = memoryLimit()
	}
	if j.MaxFileBytes == config.Dynamic {
		j.MaxFileBytes = diskLimit(dir)
	}
	if j.SyncAlways {
		j.SyncIntervalNanos = 0
	}
	return engine.JetStream{
		Enabled:  true,
		StoreDir: dir,
		Strict:   j.Strict,
		Domain:   j.Domain,

		UniqueTag: j.UniqueTag, ReadLease: j.ReadLease,
		Limits: jsapi.Limits{
			DuplicateWindow:     time.Duration(j.Limits.DuplicateWindowNanos),
			ServerMaxAckPending: int(max(j.Limits.MaxAckPending, 0)),
			MaxRequestBatch:     int(max(j.Limits.MaxRequestBatch, 0)),
			MaxConsumers:        int(j.Limits.MaxConsumers),
			ServerMaxMemory:     j.MaxMemoryBytes,
			ServerMaxStore:      j.MaxFileBytes,
			Account:             jsapi.Unlimited(),
		},
		SyncIntervalNanos: j.SyncIntervalNanos,
	}
}

// accounts translates the accounts, and what each may store. As long as none but the system account is configured, all
// clients share one that may use everything.
func accounts(s *settings) []engine.Account {
	c := &s.Config
	if s.trust != nil {
		return trustedAccounts(s.trust)
	}
	var all []engine.Account
	for _, a := range c.Accounts {
		made := engine.Account{Name: a.Name}
		if j := a.JetStream; j != nil {
			made.JetStream = &jsapi.AccountLimits{
				MaxMemory: j.MaxMemoryBytes, MaxStore: j.MaxFileBytes, MaxStreams: int(j.MaxStreams),
				MaxConsumers: int(j.MaxConsumers), MaxAckPending: int(j.MaxAckPending),
				MemoryMaxStreamBytes: j.MemoryMaxStreamBytes, StoreMaxStreamBytes: j.FileMaxStreamBytes,
				MaxBytesRequired: j.MaxBytesRequired,
			}
		}
		all = append(all, made)
	}
	if len(all) == 1 && all[0].Name == c.SystemAccount {
		return nil
	}
	return all
}

// authConfig collects all users of all accounts.
func authConfig(s *settings) auth.Config {
	c := &s.Config
	if s.trust != nil {
		return auth.Config{Trust: s.trust}
	}
	a := auth.Config{Token: c.Authorization.Token, NoAuthUser: c.NoAuthUser, MapCertificates: c.TLS != nil && c.TLS.VerifyAndMap}
	if c.Authorization.User != "" || c.Authorization.Password != "" {
		a.Users = append(a.Users, auth.User{
			Name: c.Authorization.User, Password: c.Authorization.Password, Permissions: permissions(c.Authorization.Permissions),
		})
	}
	add := func(users []config.User, account string, limits *auth.Limits) {
		for i := range users {
			u := &users[i]
			a.Users = append(a.Users, auth.User{
				Name: u.Name, Password: u.Password, Account: account, Permissions: permissions(u.Permissions),
				Ways: u.ConnectionTypes, Nkey: u.Nkey, Limits: limits,
			})
		}
	}
	add(c.Authorization.Users, config.GlobalAccount, nil)
	for _, account := range c.Accounts {
		add(account.Users, account.Name, memberLimits(account.Limits))
	}
	if w := &c.WebSocket; w.Port != 0 {
		a.MapWebSockets = w.TLS != nil && w.TLS.VerifyAndMap
		if w.Overrides() {
			a.WebSockets = &auth.Override{User: w.User, Password: w.Password, Token: w.Token, NoAuthUser: w.NoAuthUser}
		}
	}
	if len(c.Accounts) == 0 {
		a.DefaultPermissions = permissions(c.Authorization.Permissions)
	}
	return a
}

// memberLimits translates the limits of an account.
func memberLimits(l *config.AccountLimits) *auth.Limits {
	if l == nil {
		return nil
	}
	return &auth.Limits{Connections: l.MaxConnections, Subscriptions: l.MaxSubscriptions, PayloadBytes: l.MaxPayloadBytes}
}

// permissions translates permissions, whose patterns have been checked with the configuration.
func permissions(p *config.Permissions) *auth.Permissions {
	if p == nil {
		return nil
	}
	c := auth.PermissionsConfig{
		Publish:   auth.Rules{Allow: p.Publish.Allow, Deny: p.Publish.Deny},
		Subscribe: auth.Rules{Allow: p.Subscribe.Allow, Deny: p.Subscribe.Deny},
	}
	if p.Responses != nil {
		c.Responses = &auth.Responses{Max: p.Responses.Max, ExpiresNanos: p.Responses.ExpiresNanos}
	}
	made, err := auth.NewPermissions(c)
	if err != nil {
		panic("checked permissions are refused: " + err.Error())
	}
	return made
}
