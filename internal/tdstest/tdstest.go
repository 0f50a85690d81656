// Package tdstest is a server that speaks as much of TDS, the protocol of SQL
// Server, as a driver needs to log in, to run statements and to be told what
// became of them. It has no database: what it answers is what a test says. So it
// shows what goes over the wire, and what a program makes of the answers; whether
// a statement is right it cannot tell.
//
// The protocol is Microsoft's MS-TDS.
package tdstest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Kind is what a client asks for.
type Kind string

// What a client may ask for.
const (
	Login    Kind = "login"
	Batch    Kind = "batch" // a text without parameters
	Call     Kind = "call"  // a procedure; sp_executesql comes as its statement
	Begin    Kind = "begin"
	Commit   Kind = "commit"
	Rollback Kind = "rollback"
)

// Request is what a client has sent.
type Request struct {
	Kind Kind
	// Conn is the number of the connection, from 1.
	Conn int
	// SQL is the statement of a batch or of sp_executesql, or the name of a
	// procedure. Of a login it is the database.
	SQL string
	// Declared are the declarations of sp_executesql's parameters.
	Declared string
	// Params are the parameters, without those that sp_executesql itself takes.
	Params []Param
	// Isolation is the level that a transaction begins with, as MS-TDS numbers it:
	// 2 is READ COMMITTED.
	Isolation byte
	// Reset tells that the session is to be reset first.
	Reset bool
	// User and App are of a login.
	User, App string
}

// Param is a parameter as it came over the wire.
type Param struct {
	Name string
	// Type is the type: nvarchar(max), nvarchar, varchar, bigint.
	Type string
	// Value is its text, and Null tells that it is NULL.
	Value string
	Null  bool
}

// Answer is what the server says to a request.
type Answer struct {
	// Columns name the columns of the result, if there is one: all are nvarchar.
	Columns []string
	Rows    [][]any // a string, or nil for NULL
	// Counts are the numbers of rows that statements have changed.
	Counts []int
	// Err ends the answer.
	Err *Error
	// Drop cuts the connection in place of an answer, and DropAfter behind it.
	Drop, DropAfter bool
	// Doomed says that the error has ended the transaction.
	Doomed bool
}

// Error is an error of the server.
type Error struct {
	Number       int32
	State, Class byte
	Message      string
	Procedure    string
	Line         int32
}

// Server is a listening server.
type Server struct {
	listener net.Listener
	tls      *tls.Config
	answer   func(Request) Answer
	work     sync.WaitGroup

	mu       sync.Mutex
	requests []Request
	conns    map[net.Conn]bool
	opened   int
}

// New starts a server on a loopback address that ends with the test. It answers
// as answer says, which is called by several connections at once; of a login
// only an error or a drop counts. With config it speaks TLS to those who ask for
// it; nil is none.
func New(t testing.TB, config *tls.Config, answer func(Request) Answer) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{listener: l, tls: config, answer: answer, conns: map[net.Conn]bool{}}
	s.work.Go(s.serve)
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		s.work.Wait()
	})
	return s
}

// URL is the address, for a user without a need for a password; query is
// encrypt=disable and the like.
func (s *Server) URL(query string) string {
	u := url.URL{Scheme: "sqlserver", User: url.UserPassword("hook", "secret-of-the-test"), Host: s.listener.Addr().String(), RawQuery: query}
	return u.String()
}

// Requests are all that have come, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.requests...)
}

// Statements are the texts of all batches and statements that hold a text.
func (s *Server) Statements(holding string) []Request {
	var out []Request
	for _, r := range s.Requests() {
		if (r.Kind == Batch || r.Kind == Call) && strings.Contains(r.SQL, holding) {
			out = append(out, r)
		}
	}
	return out
}

// Trace writes the requests in short: login, begin, the first word of a
// statement, commit.
func (s *Server) Trace() string {
	var out []string
	for _, r := range s.Requests() {
		word := string(r.Kind)
		if f := strings.Fields(r.SQL); (r.Kind == Batch || r.Kind == Call) && len(f) > 0 {
			word = f[0]
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

func (s *Server) serve() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.opened++
		n := s.opened
		s.conns[c] = true
		s.mu.Unlock()
		s.work.Go(func() {
			defer func() {
				c.Close()
				s.mu.Lock()
				delete(s.conns, c)
				s.mu.Unlock()
			}()
			// What a client breaks off is no fault of the server's.
			_ = (&session{server: s, conn: c, n: n}).run()
		})
	}
}

// say notes a request and asks for its answer.
func (s *Server) say(r Request) Answer {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	return s.answer(r)
}

// session is one connection.
type session struct {
	server *Server
	conn   net.Conn
	n      int
	open   bool // a transaction
}

var errDropped = errors.New("the answer was to drop the connection")

func (s *session) run() error {
	kind, body, _, err := readMessage(s.conn)
	if err != nil || kind != packetPrelogin {
		return fmt.Errorf("no pre-login: %v", err)
	}
	wants, err := encryption(body)
	if err != nil {
		return err
	}
	encrypted := s.server.tls != nil && wants != encryptNot
	says := byte(encryptNot)
	if encrypted {
		says = encryptOn
	}
	if err := writeMessage(s.conn, packetReply, prelogin(says)); err != nil {
		return err
	}
	if encrypted {
		shake := &handshake{Conn: s.conn}
		c := tls.Server(shake, s.server.tls)
		if err := c.HandshakeContext(context.Background()); err != nil {
			return err
		}
		shake.done = true
		s.conn = c
	}
	for {
		kind, body, reset, err := readMessage(s.conn)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if kind == packetAttention {
			w := &writer{}
			w.done(tokenDone, doneAttention, 0)
			if err := writeMessage(s.conn, packetReply, w.b); err != nil {
				return err
			}
			continue
		}
		r, err := parse(kind, body)
		if err != nil {
			return err
		}
		r.Conn, r.Reset = s.n, reset
		if err := s.reply(r, s.server.say(r)); err != nil {
			return err
		}
	}
}

func (s *session) reply(r Request, a Answer) error {
	if a.Drop {
		return errDropped
	}
	w := &writer{}
	if a.Err == nil {
		switch r.Kind {
		case Login:
			w.loginAck()
		case Begin:
			s.open = true
			w.transaction(envBegin)
		case Commit:
			s.open = false
			w.transaction(envCommit)
		case Rollback:
			s.open = false
			w.transaction(envRollback)
		}
	}
	end, step := byte(tokenDone), byte(tokenDone)
	if r.Kind == Call {
		end, step = tokenDoneProc, tokenDoneInProc
	}
	if a.Columns != nil {
		w.rows(a.Columns, a.Rows)
		w.done(step, doneMore|doneCount, len(a.Rows))
	}
	for _, n := range a.Counts {
		w.done(step, doneMore|doneCount, n)
	}
	status := uint16(0)
	if a.Err != nil {
		w.fault(a.Err)
		status = doneError
		if a.Doomed && s.open {
			s.open = false
			w.transaction(envRollback)
		}
	}
	w.done(end, status, 0)
	if err := writeMessage(s.conn, packetReply, w.b); err != nil {
		return err
	}
	if a.DropAfter || r.Kind == Login && a.Err != nil {
		return errDropped
	}
	return nil
}

// Certificate makes a certificate for 127.0.0.1 that nobody knows, and a file
// with it, which a client may be told to trust.
func Certificate(t testing.TB) (*tls.Config, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tdstest"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "server.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}, file
}
