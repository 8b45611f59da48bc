package torture

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"time"
)

// proxies is a network on loopback: between every two servers stands a proxy per direction of dialing, through which
// both directions of a connection go. A cut direction stands still, and goes on where it stood when it heals, unless the
// connection has been given up by then.
type proxies struct {
	nodes, base int
	mu          sync.Mutex
	wake        *sync.Cond
	cuts        [][]bool // from, to
	slows       []bool
	closed      bool
	listeners   []net.Listener
	open        map[net.Conn]bool
}

// slowBy is the delay of what a slow server sends, chunkMax how much a proxy moves at once.
const (
	slowBy   = 120 * time.Millisecond
	chunkMax = 32 << 10
)

func newProxies(o Options) (fabric, error) {
	p := &proxies{nodes: o.Nodes, base: o.Port, slows: make([]bool, o.Nodes), open: map[net.Conn]bool{}}
	p.wake = sync.NewCond(&p.mu)
	for range o.Nodes {
		p.cuts = append(p.cuts, make([]bool, o.Nodes))
	}
	for from := range o.Nodes {
		for to := range o.Nodes {
			if from == to {
				continue
			}
			l, err := net.Listen("tcp", p.between(from, to))
			if err != nil {
				return nil, errors.Join(err, p.close())
			}
			p.listeners = append(p.listeners, l)
			go p.accept(l, from, to)
		}
	}
	return p, nil
}

func (p *proxies) describe() string {
	return fmt.Sprintf("on loopback with proxies between them (ports from %d)", p.base)
}

// The ports: clients, peers and monitoring by server, then the proxies by pair.
func (p *proxies) client(i int) string  { return fmt.Sprintf("127.0.0.1:%d", p.base+i) }
func (p *proxies) peer(i int) string    { return fmt.Sprintf("127.0.0.1:%d", p.base+20+i) }
func (p *proxies) monitor(i int) string { return fmt.Sprintf("127.0.0.1:%d", p.base+40+i) }
func (p *proxies) between(from, to int) string {
	return fmt.Sprintf("127.0.0.1:%d", p.base+60+from*NodesMax+to)
}

func (p *proxies) place(i int) place {
	at := place{client: p.client(i), peer: p.peer(i), monitor: p.monitor(i)}
	for other := range p.nodes {
		if other != i {
			at.routes = append(at.routes, p.between(i, other))
		}
	}
	return at
}

func (p *proxies) command(_ int, argv []string) *exec.Cmd { return exec.Command(argv[0], argv[1:]...) }

func (p *proxies) cut(from, to int, on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts[from][to] = on
	p.wake.Broadcast()
	return nil
}

func (p *proxies) unplug(int, bool) error { return errUnsupported }

func (p *proxies) slow(i int, on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slows[i] = on
	return nil
}

func (p *proxies) accept(l net.Listener, from, to int) {
	for {
		near, err := l.Accept()
		if err != nil {
			return // closed
		}
		go p.join(near, from, to)
	}
}

// join connects the dialer with the server it wants, once both directions are open.
func (p *proxies) join(near net.Conn, from, to int) {
	if !p.keep(near) {
		return
	}
	defer p.drop(near)
	if !p.pass(from, to) || !p.pass(to, from) {
		return
	}
	far, err := net.Dial("tcp", p.peer(to))
	if err != nil || !p.keep(far) {
		return
	}
	defer p.drop(far)
	back := make(chan struct{})
	go func() {
		defer close(back)
		p.move(near, far, to, from)
	}()
	p.move(far, near, from, to)
	<-back
}

// move copies what one server sends to another until the connection ends, then ends both sides.
func (p *proxies) move(to, from net.Conn, sender, receiver int) {
	defer p.drop(to)
	defer p.drop(from)
	chunk := make([]byte, chunkMax)
	for {
		n, err := from.Read(chunk)
		if n > 0 {
			if !p.pass(sender, receiver) {
				return
			}
			if _, err := to.Write(chunk[:n]); err != nil {
				return
			}
		}
		if err != nil {
			// The end of a connection is told by packets too.
			p.pass(sender, receiver)
			return
		}
	}
}

// pass waits while the direction is cut, and as long as a slow one takes. It reports false when the network is closed.
func (p *proxies) pass(sender, receiver int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slows[sender] {
		p.mu.Unlock()
		time.Sleep(slowBy)
		p.mu.Lock()
	}
	for p.cuts[sender][receiver] && !p.closed {
		p.wake.Wait()
	}
	return !p.closed
}

// keep notes an open connection, or closes it when the network is closed.
func (p *proxies) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close() // nobody waits for it
		return false
	}
	p.open[c] = true
	return true
}

func (p *proxies) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[c] {
		delete(p.open, c)
		_ = c.Close() // the other side learns of it, or is gone
	}
}

func (p *proxies) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.wake.Broadcast()
	var all error
	for _, l := range p.listeners {
		all = errors.Join(all, l.Close())
	}
	for c := range p.open {
		_ = c.Close() // nobody waits for it
	}
	clear(p.open)
	return all
}
