package auth

import (
	"testing"

	"weir/transport/wire"
)

// TestWaysDifferInWhoMayConnect has users who may connect in one way only, and overrides for WebSockets. Credentials are
// "user password"; those of a token have no user.
func TestWaysDifferInWhoMayConnect(t *testing.T) {
	users := []User{{Name: "any", Password: "x"}, {Name: "web", Password: "x", Ways: []string{"MQTT", "WEBSOCKET"}}, {Name: "tcp", Password: "x", Ways: []string{"STANDARD"}}}
	type want struct{ standard, web string } // who is let in as whom; "-" refused, "" nobody
	for name, c := range map[string]struct {
		config Config
		want   map[[2]string]want
	}{
		"users": {Config{Users: users}, map[[2]string]want{
			{"any", "x"}: {"any", "any"}, {"web", "x"}: {"-", "web"}, {"tcp", "x"}: {"tcp", "-"}, {"web", "y"}: {"-", "-"}, {}: {"-", "-"},
		}},
		"nobody is one who may not": {Config{Users: users, NoAuthUser: "tcp"}, map[[2]string]want{{}: {"tcp", "-"}}},
		"nobody, overridden":        {Config{Users: users, NoAuthUser: "any", WebSockets: &Override{NoAuthUser: "web"}}, map[[2]string]want{{}: {"any", "web"}, {"any", "x"}: {"any", "any"}}},
		"open, overridden": {Config{WebSockets: &Override{User: "u", Password: "p"}}, map[[2]string]want{
			{}: {"", "-"}, {"u", "p"}: {"", "u"}, {"u", "q"}: {"", "-"}, {"v", "p"}: {"", "-"},
		}},
		"token, overridden": {Config{Token: "s", WebSockets: &Override{Token: "t"}}, map[[2]string]want{{"", "s"}: {"[REDACTED]", "-"}, {"", "t"}: {"-", "[REDACTED]"}}},
	} {
		a := mustNew(t, c.config)
		for given, want := range c.want {
			connect := wire.Connect{User: given[0], Password: given[1]}
			if given[0] == "" {
				connect = wire.Connect{Token: given[1]}
			}
			for way, user := range map[Way]string{Standard: want.standard, WebSocket: want.web} {
				identity, ok := a.Authenticate(&connect, &Proof{Way: way})
				if ok != (user != "-") || ok && identity.User != user {
					t.Errorf("%s: %q by %v: %q, %v; want %q", name, given, way, identity.User, ok, user)
				}
				if given == [2]string{} && a.Required(way) != (user == "-") {
					t.Errorf("%s by %v: required %v", name, way, a.Required(way))
				}
			}
		}
	}
}
