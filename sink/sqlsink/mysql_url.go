package sqlsink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// parseMySQL reads mysql://user:password@host:port/database, or mariadb://….
// Its parameters:
//
//	tls     true (checked), skip-verify, preferred (the default: if the server has it, unchecked) or false
//	ca      a file with the certificates that sign the server's
//	cert    a file with the client's certificate, key the one with its key
//	socket  the path of a Unix socket, in place of host and port
//
// An error does not hold the password.
func parseMySQL(raw string) (*mysql.Config, error) {
	u, err := url.Parse(raw)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err // the rest is the URL
		}
		return nil, fmt.Errorf("the URL cannot be read: %w", err)
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.DBName = strings.TrimPrefix(u.Path, "/")
	c.Net, c.Addr = "tcp", net.JoinHostPort(or(u.Hostname(), "127.0.0.1"), or(u.Port(), "3306"))
	c.InterpolateParams = true // one round trip
	c.MaxAllowedPacket = 0     // the server's
	c.Collation = "utf8mb4_bin"
	c.Logger = &mysql.NopLogger{} // errors are returned
	if strings.Contains(c.DBName, "/") || c.DBName == "" {
		return nil, errors.New("the URL names no database: mysql://user:password@host:3306/database")
	}
	q := u.Query()
	for name := range q {
		switch name {
		case "tls", "ca", "cert", "key", "socket":
		default:
			return nil, fmt.Errorf("the URL has a parameter %s that is not known. There are tls, ca, cert, key and socket", name)
		}
	}
	if s := q.Get("socket"); s != "" {
		c.Net, c.Addr = "unix", s
	}
	return c, secure(c, u.Hostname(), q)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// secure sets how the connection is encrypted.
func secure(c *mysql.Config, host string, q url.Values) error {
	mode := q.Get("tls")
	if mode == "" {
		mode = "preferred"
		if q.Get("ca") != "" {
			mode = "true"
		}
		if c.Net == "unix" {
			mode = "false"
		}
	}
	switch mode {
	case "false":
		if q.Get("ca")+q.Get("cert")+q.Get("key") != "" {
			return errors.New("the URL names certificates and says tls=false. Leave out one of them")
		}
		return nil
	case "true", "skip-verify", "preferred":
	default:
		return fmt.Errorf("tls=%s is not known. There are true, skip-verify, preferred and false", mode)
	}
	config := &tls.Config{ServerName: host, InsecureSkipVerify: mode != "true", MinVersion: tls.VersionTLS12}
	if file := q.Get("ca"); file != "" {
		if mode != "true" {
			return fmt.Errorf("ca is of no use with tls=%s, which does not check the server. Say tls=true", mode)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("ca: %s holds no certificate", file)
		}
	}
	if q.Get("cert")+q.Get("key") != "" {
		pair, err := tls.LoadX509KeyPair(q.Get("cert"), q.Get("key"))
		if err != nil {
			return fmt.Errorf("cert and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	c.TLS, c.AllowFallbackToPlaintext = config, mode == "preferred"
	return nil
}
