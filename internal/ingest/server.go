package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// ServerOptions configure a Server. Zero fields take their defaults.
type ServerOptions struct {
	// Address to listen on, host:port; port 0 takes a free one.
	Address string
	Handler http.Handler
	// Log gets what net/http has to say, at debug level; nil is silent.
	Log *slog.Logger
	// MaxConnections is the most connections at one time; more wait to be
	// accepted. Default 4096.
	MaxConnections int
	// MaxHeader is the most bytes of a request's header. Default 64 KiB.
	MaxHeader int
	// HeaderTimeout bounds the time to receive a header (default 10 s), and
	// ReadTimeout that of a whole request (default 30 s).
	HeaderTimeout, ReadTimeout time.Duration
	// WriteTimeout bounds the time from the end of the header to the end of the
	// answer. Default 60 s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request.
	// Default 2 min.
	IdleTimeout time.Duration
}

func (o ServerOptions) withDefaults() ServerOptions {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = 4096
	}
	if o.MaxHeader <= 0 {
		o.MaxHeader = 64 << 10
	}
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&o.HeaderTimeout, 10 * time.Second}, {&o.ReadTimeout, 30 * time.Second},
		{&o.WriteTimeout, time.Minute}, {&o.IdleTimeout, 2 * time.Minute},
	} {
		if *d.value <= 0 {
			*d.value = d.def
		}
	}
	return o
}

// Server serves HTTP on one address within bounds.
type Server struct {
	http     *http.Server
	listener net.Listener
	start    sync.Once
	done     chan struct{} // closed when serving has ended
	err      error         // why serving ended, if not by Stop
	fresh    fresh
}

// Listen binds the address; Start begins to accept.
func Listen(o ServerOptions) (*Server, error) {
	o = o.withDefaults()
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", o.Address, err)
	}
	s := &Server{
		fresh:    fresh{conns: map[net.Conn]struct{}{}},
		listener: &bounded{Listener: l, slots: make(chan struct{}, o.MaxConnections), closed: make(chan struct{})},
		done:     make(chan struct{}),
		http: &http.Server{
			Handler:           o.Handler,
			ReadHeaderTimeout: o.HeaderTimeout,
			ReadTimeout:       o.ReadTimeout,
			WriteTimeout:      o.WriteTimeout,
			IdleTimeout:       o.IdleTimeout,
			MaxHeaderBytes:    o.MaxHeader,
			ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
			// Without this an OPTIONS * would be answered by net/http itself.
			DisableGeneralOptionsHandler: true,
		},
	}
	s.http.ConnState = s.fresh.track
	return s, nil
}

// Addr is the address that is listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Start begins to accept. Calling it again does nothing.
func (s *Server) Start() {
	s.start.Do(func() {
		go func() {
			defer close(s.done)
			if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
				s.err = err
			}
		}()
	})
}

// Failed is closed when serving has ended, by Stop or by an error.
func (s *Server) Failed() <-chan struct{} { return s.done }

// Stop ends accepting, finishes the requests in hand, and cuts those off that
// are not finished when ctx ends. It may be called again, and without Start.
func (s *Server) Stop(ctx context.Context) error {
	s.start.Do(func() { close(s.done) })
	grace := time.AfterFunc(freshGrace, s.fresh.cut)
	defer grace.Stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("requests were cut off: %w", errors.Join(err, s.http.Close()))
	}
	_ = s.listener.Close() // closed already if it was ever served
	<-s.done
	return errors.Join(err, s.err)
}

// freshGrace is how long Stop waits for the first request of a connection that
// has not sent one yet. net/http alone would wait for five seconds.
const freshGrace = 250 * time.Millisecond

// fresh holds the connections that have not sent a request yet.
type fresh struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	over  bool
}

func (f *fresh) track(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(f.conns, c)
	case f.over:
		_ = c.Close() // nothing was read from it
	default:
		f.conns[c] = struct{}{}
	}
}

func (f *fresh) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	for c := range f.conns {
		_ = c.Close() // nothing was read from it
	}
}

// bounded is a listener that accepts only so many connections at one time.
type bounded struct {
	net.Listener
	slots  chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.slots <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.slots
		return nil, err
	}
	return &boundedConn{Conn: c, free: func() { <-b.slots }}, nil
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

type boundedConn struct {
	net.Conn
	once sync.Once
	free func()
}

// CloseWrite lets net/http half-close, so that an early answer (413) reaches a
// sender that is still sending.
func (c *boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *boundedConn) Close() error {
	defer c.once.Do(c.free)
	return c.Conn.Close()
}
