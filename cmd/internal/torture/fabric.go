package torture

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// fabric is the network between the servers, and between them and the clients. Servers are counted from 0.
type fabric interface {
	// describe says on one line what kind of network it is.
	describe() string
	// place says where a server listens and whom it dials.
	place(server int) place
	// command is the command that runs argv as the server.
	command(server int, argv []string) *exec.Cmd
	// cut stops what one server sends to another, or lets it through again. Nobody is told.
	cut(from, to int, on bool) error
	// unplug cuts a server off from everybody, clients as well, or plugs it in again. It returns errUnsupported where
	// that cannot be done.
	unplug(server int, on bool) error
	// slow makes everything that a server sends to others slow, or fast again; errUnsupported where that cannot be done.
	slow(server int, on bool) error
	// close takes the network down.
	close() error
}

// place is where a server is in the network.
type place struct {
	// client, peer and monitor are the addresses it listens on.
	client, peer, monitor string
	// routes are the addresses of the other servers as this one has to dial them.
	routes []string
}

// errUnsupported says that a network cannot break in this way.
var errUnsupported = errors.New("this network cannot do that")

// newFabric makes the network that the options ask for.
func newFabric(o Options) (fabric, error) {
	switch o.Network {
	case "off":
		return newProxies(o)
	case "on":
		return newNamespaces(o)
	case "", "auto":
		if os.Geteuid() == 0 {
			if f, err := newNamespaces(o); err == nil {
				return f, nil
			}
		}
		return newProxies(o)
	default:
		return nil, fmt.Errorf("torture: the network is on, off or auto, not %q", o.Network)
	}
}
