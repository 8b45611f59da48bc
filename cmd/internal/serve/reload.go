package serve

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"weir/node/auth"
	"weir/node/config"
)

// reload reads the configuration file again. What can be changed while the server runs is changed: the bound of
// connections, and the users with their passwords. Nothing is when anything else differs.
func (p *process) reload() error {
	if p.flags.file == "" {
		return errors.New("can only reload config when a file is provided using -c or --config")
	}
	next, warnings, err := load(p.flags)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		p.log.Warn(w.Error())
	}
	was := p.current.Load()
	settle(&next, p.settings)
	if err := unchangeable(&was.Config, &next.Config); err != nil {
		return err
	}
	var users *auth.Authenticator
	if !reflect.DeepEqual(usersOf(&was.Config), usersOf(&next.Config)) {
		if users, err = auth.New(authConfig(&next.Config)); err != nil {
			return err
		}
	}
	p.current.Store(&next)
	p.host.Reload(max(next.MaxConnections, 0), users)
	if users != nil {
		p.log.Info("Reloaded: users")
	}
	if next.MaxConnections != was.MaxConnections {
		p.log.Info(fmt.Sprintf("Reloaded: max_connections = %d", next.MaxConnections))
	}
	return nil
}

// settle puts what was found out when the server started in the place of what asks for that.
func settle(next, started *settings) {
	if next.JetStream.MaxMemoryBytes == config.Dynamic {
		next.JetStream.MaxMemoryBytes = started.JetStream.MaxMemoryBytes
	}
	if next.JetStream.MaxFileBytes == config.Dynamic {
		next.JetStream.MaxFileBytes = started.JetStream.MaxFileBytes
	}
	if next.JetStream.SyncAlways {
		next.JetStream.SyncIntervalNanos = started.JetStream.SyncIntervalNanos
	}
}

// changeable are the parts of a configuration that a reload may change.
type changeable struct {
	Authorization config.Authorization
	NoAuthUser    string
	Accounts      [][]config.User
}

func usersOf(c *config.Config) changeable {
	u := changeable{Authorization: c.Authorization, NoAuthUser: c.NoAuthUser}
	for i := range c.Accounts {
		u.Accounts = append(u.Accounts, c.Accounts[i].Users)
	}
	return u
}

// unchangeable is an error that names the first part that differs and can not be changed while the server runs. It shows
// no values that may be secret.
func unchangeable(was, next *config.Config) error {
	a, b := withoutChangeable(was), withoutChangeable(next)
	for i, x := 0, reflect.ValueOf(a); i < x.NumField(); i++ {
		before, after := x.Field(i).Interface(), reflect.ValueOf(b).Field(i).Interface()
		if reflect.DeepEqual(before, after) {
			continue
		}
		name := x.Type().Field(i).Name
		switch x.Field(i).Kind() {
		case reflect.Struct, reflect.Slice, reflect.Map, reflect.Pointer:
			return fmt.Errorf("config reload not supported for %s", name)
		}
		return fmt.Errorf("config reload not supported for %s: old=%v, new=%v", name, before, after)
	}
	permissions := permissionsOf(was)
	for name, p := range permissionsOf(next) {
		if before, stays := permissions[name]; stays && !reflect.DeepEqual(before, p) {
			return fmt.Errorf("config reload not supported for permissions: those of user %q differ", name)
		}
	}
	return nil
}

// withoutChangeable is a copy without what a reload may change.
func withoutChangeable(c *config.Config) config.Config {
	k := *c
	k.MaxConnections, k.NoAuthUser = 0, ""
	k.Authorization = config.Authorization{TimeoutNanos: c.Authorization.TimeoutNanos}
	k.Accounts = slices.Clone(c.Accounts)
	for i := range k.Accounts {
		k.Accounts[i].Users = nil
	}
	return k
}

// permissionsOf are the permissions of all users by their names; "" is who needs no name.
func permissionsOf(c *config.Config) map[string]*config.Permissions {
	all := map[string]*config.Permissions{c.Authorization.User: c.Authorization.Permissions}
	add := func(users []config.User) {
		for i := range users {
			all[users[i].Name] = users[i].Permissions
		}
	}
	add(c.Authorization.Users)
	for i := range c.Accounts {
		add(c.Accounts[i].Users)
	}
	return all
}
