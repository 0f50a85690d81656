package cases

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy is the way to a database, which can be closed.
type proxy struct {
	t    testing.TB
	to   string
	addr string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	held     chan struct{} // nil if what is sent goes on
	most     int           // of connections at once
}

// newProxy opens a way to the host of a URL.
func newProxy(t testing.TB, database string) *proxy {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, to: u.Host, addr: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	p.open()
	t.Cleanup(p.close)
	return p
}

// url leads a URL through the proxy.
func (p *proxy) url(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		p.t.Fatal(err)
	}
	u.Host = p.addr
	return u.String()
}

// open takes connections, at the same address again.
func (p *proxy) open() {
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.t.Error(err)
		return
	}
	p.mu.Lock()
	p.listener, p.addr = l, l.Addr().String()
	p.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
}

// close refuses connections, and breaks those there are.
func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener.Close()
	for c := range p.conns {
		c.Close()
	}
}

// hold lets nothing through any more, in silence; release lets it go on. With
// lost, what there is of connections stays held for ever.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = make(chan struct{})
}

func (p *proxy) release(lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !lost {
		close(p.held)
	}
	p.held = nil
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	d, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer d.Close()
	p.mu.Lock()
	p.conns[c], p.conns[d] = true, true
	p.most = max(p.most, len(p.conns)/2)
	p.mu.Unlock()
	ended := make(chan struct{}, 2)
	go p.copy(d, c, ended)
	go p.copy(c, d, ended)
	<-ended
	p.mu.Lock()
	delete(p.conns, c)
	delete(p.conns, d)
	p.mu.Unlock()
}

func (p *proxy) copy(to, from net.Conn, ended chan struct{}) {
	defer func() { ended <- struct{}{} }()
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		held := p.held
		p.mu.Unlock()
		if held != nil {
			<-held
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}
