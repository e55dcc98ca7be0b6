package faults

import (
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// addressOf is where the server of a database URL listens.
func addressOf(t testing.TB, databaseURL string) address {
	t.Helper()
	c, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(int(c.Port))
	if strings.HasPrefix(c.Host, "/") {
		return address{"unix", filepath.Join(c.Host, ".s.PGSQL."+port)}
	}
	return address{"tcp", net.JoinHostPort(c.Host, port)}
}

// throughProxy is a database's URL by way of a proxy to its server.
func throughProxy(t testing.TB, databaseURL string, p *proxy) string {
	t.Helper()
	c, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "postgres", User: url.User(c.User), Host: p.addr(), Path: "/" + c.Database, RawQuery: "sslmode=disable"}
	if c.Password != "" {
		u.User = url.UserPassword(c.User, c.Password)
	}
	return u.String()
}
