package faults

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/testkit/pgtest"
)

// looker asks a database again and again over one session. A session for each question would cost more than the
// answer. The session is opened again when it has broken.
type looker struct {
	url  string
	conn *pgx.Conn
}

func newLooker(t testing.TB, databaseURL string) *looker {
	t.Helper()
	l := &looker{url: pgtest.Patiently(databaseURL)}
	t.Cleanup(l.close)
	return l
}

// holds reports whether a query answers with true. A question that cannot be asked is answered with false.
func (l *looker) holds(t testing.TB, sql string, args ...any) (yes bool) {
	t.Helper()
	ctx := t.Context()
	if l.conn == nil {
		conn, err := postgres.Connect(ctx, l.url, nil)
		if err != nil {
			return false
		}
		l.conn = conn
	}
	if err := l.conn.QueryRow(ctx, sql, args...).Scan(&yes); err != nil {
		l.close()
		return false
	}
	return yes
}

func (l *looker) close() {
	if l.conn != nil {
		_ = l.conn.Close(context.Background())
		l.conn = nil
	}
}

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
