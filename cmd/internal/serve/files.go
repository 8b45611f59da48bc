package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// writePid stores the process id.
func writePid(file string) error {
	if file == "" {
		return nil
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o660); err != nil {
		return fmt.Errorf("could not write pidfile: %w", err)
	}
	return nil
}

// portsFile is what tells scripts where the server listens: lists of URLs by the kind of port.
type portsFile struct {
	Nats       []string `json:"nats,omitempty"`
	Monitoring []string `json:"monitoring,omitempty"`
	Cluster    []string `json:"cluster,omitempty"`
	WebSocket  []string `json:"websocket,omitempty"`
}

// listeners are where a server listens; nil where it does not. Where TLS has to be spoken, the URLs say so.
type listeners struct {
	client, monitoring, cluster, web net.Addr
	clientTLS, clusterTLS, webTLS    bool
}

func scheme(tls bool) string {
	if tls {
		return "tls"
	}
	return "nats"
}

func webScheme(tls bool) string {
	if tls {
		return "wss"
	}
	return "ws"
}

// writePorts stores the addresses in dir and returns the name of the file; "" when dir is "".
func writePorts(dir string, l listeners) (string, error) {
	if dir == "" {
		return "", nil
	}
	p := portsFile{Nats: urls(scheme(l.clientTLS), l.client), Monitoring: urls("http", l.monitoring), Cluster: urls(scheme(l.clusterTLS), l.cluster)}
	p.WebSocket = urls(webScheme(l.webTLS), l.web)
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, fmt.Sprintf("%s_%d.ports", executable(), os.Getpid()))
	// Whoever waits for the file sees all of it or none.
	whole := name + ".new"
	if err := os.WriteFile(whole, text, 0o666); err != nil {
		return "", fmt.Errorf("could not write ports file: %w", err)
	}
	return name, os.Rename(whole, name)
}

// urls lists under which URLs an address can be reached: one, or one per address of the machine when it is a wildcard.
func urls(scheme string, addr net.Addr) []string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return nil
	}
	format := func(ip string) string {
		return scheme + "://" + net.JoinHostPort(ip, strconv.Itoa(tcp.Port))
	}
	if !tcp.IP.IsUnspecified() {
		return []string{format(tcp.IP.String())}
	}
	var list []string
	own, err := net.InterfaceAddrs()
	if err != nil {
		return []string{format("127.0.0.1")}
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			list = append(list, format(n.IP.String()))
		}
	}
	return list
}

// listening writes where a port is open as the operator named it: the host of the configuration with the port that was
// found for it.
func listening(host string, addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
	}
	return addr.String()
}

// signals are the words of the --signal flag.
var signals = map[string]syscall.Signal{
	"stop": syscall.SIGKILL, "quit": syscall.SIGINT, "term": syscall.SIGTERM,
	"reload": syscall.SIGHUP, "reopen": syscall.SIGUSR1, "ldm": syscall.SIGUSR2,
}

// sendSignal carries out --signal: a word, and the process as its id or a file that holds it.
func sendSignal(order string) error {
	word, target, _ := strings.Cut(order, "=")
	signal, known := signals[word]
	if !known {
		return fmt.Errorf("unknown signal %q", word)
	}
	if target == "" {
		return fmt.Errorf("name the process: --signal %s=<pid>, or the path of a PID file", word)
	}
	text := target
	pid, err := strconv.Atoi(text)
	if err != nil {
		content, readErr := os.ReadFile(target)
		if readErr != nil {
			return readErr
		}
		if pid, err = strconv.Atoi(strings.TrimSpace(string(content))); err != nil {
			return fmt.Errorf("%s holds no process id: %w", target, err)
		}
	}
	if pid <= 0 {
		return fmt.Errorf("%d is no process id", pid)
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("signal %q to process %d: %w", word, pid, err)
	}
	return nil
}
