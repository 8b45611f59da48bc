package torture

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// namespaces is a network of one network namespace per server, joined by a bridge in the namespace of the clients. Links
// between two servers are cut by routes into nowhere, which is one-way and tells nobody; a server is unplugged at the
// bridge.
type namespaces struct {
	nodes  int
	prefix string // of all names, short because interfaces have short names
	subnet string // its first three numbers
	tbf    bool   // the kernel can limit the rate of an interface
}

// clientPort, peerPort and monitorPort are the same on each server, since each has an address of its own.
const (
	clientPort  = 4222
	peerPort    = 6222
	monitorPort = 8222
)

// subnetsMax bounds how many subnets are tried until one is free.
const subnetsMax = 16

func newNamespaces(o Options) (fabric, error) {
	sweep()
	pid := os.Getpid()
	n := &namespaces{nodes: o.Nodes, prefix: fmt.Sprintf("wt%x", pid)}
	free := false
	for i := 0; i < subnetsMax && !free; i++ {
		n.subnet = fmt.Sprintf("10.%d.%d", 128+(pid>>8+i)%100, pid&0xff)
		out, err := exec.Command("ip", "-4", "addr", "show").Output()
		if err != nil {
			return nil, fmt.Errorf("torture: network namespaces need the command ip: %w", err)
		}
		free = !bytes.Contains(out, []byte("inet "+n.subnet+"."))
	}
	if !free {
		return nil, errors.New("torture: no free subnet for network namespaces")
	}
	if err := n.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("torture: network namespaces cannot be had: %w", err), n.close())
	}
	n.tbf = n.rate(0, true) == nil && n.rate(0, false) == nil
	return n, nil
}

// sweep takes down what runs have left behind that were killed.
func sweep() {
	names, err := filepath.Glob("/var/run/netns/weir-wt*")
	if err != nil {
		return
	}
	for _, name := range names {
		name = filepath.Base(name)
		prefix, _, _ := strings.Cut(strings.TrimPrefix(name, "weir-"), "-")
		pid, err := strconv.ParseInt(strings.TrimPrefix(prefix, "wt"), 16, 64)
		if err != nil {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			continue
		}
		// What can not be taken away is in nobody's way.
		_ = ip("netns del " + name)
		_ = ip("link del " + prefix + "br")
	}
}

// build makes bridge and namespaces.
func (n *namespaces) build() error {
	steps := []string{
		"link add " + n.bridge() + " type bridge",
		"addr add " + n.subnet + ".254/24 dev " + n.bridge(),
		"link set " + n.bridge() + " up",
	}
	for i := range n.nodes {
		steps = append(steps,
			"netns add "+n.space(i),
			"link add "+n.port(i)+" type veth peer name eth0 netns "+n.space(i),
			"link set "+n.port(i)+" master "+n.bridge(),
			"link set "+n.port(i)+" up",
			"-n "+n.space(i)+" addr add "+n.address(i)+"/24 dev eth0",
			"-n "+n.space(i)+" link set lo up",
			"-n "+n.space(i)+" link set eth0 up",
		)
	}
	for _, step := range steps {
		if err := ip(step); err != nil {
			return err
		}
	}
	return nil
}

// ip runs one command of ip.
func ip(args string) error {
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, bytes.TrimSpace(out))
	}
	return nil
}

func (n *namespaces) bridge() string       { return n.prefix + "br" }
func (n *namespaces) port(i int) string    { return fmt.Sprintf("%sv%d", n.prefix, i) }
func (n *namespaces) space(i int) string   { return fmt.Sprintf("weir-%s-%d", n.prefix, i) }
func (n *namespaces) address(i int) string { return fmt.Sprintf("%s.%d", n.subnet, i+1) }

func (n *namespaces) describe() string {
	return "each in a network namespace of its own (" + n.subnet + ".0/24)"
}

func (n *namespaces) place(i int) place {
	at := func(i, port int) string { return fmt.Sprintf("%s:%d", n.address(i), port) }
	p := place{client: at(i, clientPort), peer: at(i, peerPort), monitor: at(i, monitorPort)}
	for other := range n.nodes {
		if other != i {
			p.routes = append(p.routes, at(other, peerPort))
		}
	}
	return p
}

func (n *namespaces) command(i int, argv []string) *exec.Cmd {
	// ip replaces itself with what it runs, so signals reach the server.
	return exec.Command("ip", append([]string{"netns", "exec", n.space(i)}, argv...)...)
}

func (n *namespaces) cut(from, to int, on bool) error {
	verb := "del"
	if on {
		verb = "add"
	}
	return ip(fmt.Sprintf("-n %s route %s blackhole %s/32", n.space(from), verb, n.address(to)))
}

func (n *namespaces) unplug(i int, on bool) error {
	state := "up"
	if on {
		state = "down"
	}
	return ip(fmt.Sprintf("link set %s %s", n.port(i), state))
}

func (n *namespaces) slow(i int, on bool) error {
	if !n.tbf {
		return errUnsupported
	}
	return n.rate(i, on)
}

// rate limits what a server sends to so little that frames wait for up to half a second.
func (n *namespaces) rate(i int, on bool) error {
	args := "netns exec " + n.space(i) + " tc qdisc del dev eth0 root"
	if on {
		args = "netns exec " + n.space(i) + " tc qdisc add dev eth0 root tbf rate 2mbit burst 16kb latency 500ms"
	}
	return ip(args)
}

func (n *namespaces) close() error {
	var all error
	for i := range n.nodes {
		if _, err := os.Stat("/var/run/netns/" + n.space(i)); err == nil {
			all = errors.Join(all, ip("netns del "+n.space(i)))
		}
	}
	if _, err := os.Stat("/sys/class/net/" + n.bridge()); err == nil {
		all = errors.Join(all, ip("link del "+n.bridge()))
	}
	return all
}
