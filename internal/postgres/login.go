package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// filePrefix begins a database URL that is in a file: file:/run/secrets/database-url.
const filePrefix = "file:"

// maxURLFile bounds what is read of such a file, in bytes.
const maxURLFile = 64 << 10

// InFile is a database URL that is the text of a file. The file is read for each new connection.
func InFile(path string) string { return filePrefix + path }

// textOf returns the text of a database URL, from the file that it names.
func textOf(databaseURL string) (string, error) {
	path, inFile := strings.CutPrefix(databaseURL, filePrefix)
	if !inFile {
		return databaseURL, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadURL, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxURLFile))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadURL, err)
	}
	if text := strings.TrimSpace(string(text)); text != "" {
		return text, nil
	}
	return "", fmt.Errorf("%w: %s is empty", ErrBadURL, path)
}

// login is what connections are made with. Each new connection reads all of it again: the URL's
// file, the file of passwords, certificates and their keys. So those may change while quotad runs.
type login struct {
	url      string
	defaults map[string]string // settings of the session, where the URL has none
	params   map[string]string // settings that win over the URL's

	last atomic.Pointer[pgx.ConnConfig] // that could be read
}

// config reads how to connect now. Where it cannot be read, the last one counts: of two files one
// may have been replaced already, and the other not yet. again is why it could not be read.
func (l *login) config() (config *pgx.ConnConfig, again, err error) {
	config, err = parse(l.url, l.defaults, l.params)
	if err == nil {
		l.last.Store(config.Copy())
		return config, nil, nil
	}
	if last := l.last.Load(); last != nil {
		return last.Copy(), err, nil
	}
	return nil, nil, err
}

// connect makes a connection. Without a deadline in ctx there is one of connect_timeout for each
// host, plus a second.
func (l *login) connect(ctx context.Context) (*pgx.Conn, error) {
	config, again, err := l.config()
	if err != nil {
		return nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		limit := config.ConnectTimeout*time.Duration(1+len(config.Fallbacks)) + time.Second
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the database: %w", eachOnce{err}), again)
	}
	return conn, nil
}

// Connector returns a function that opens connections of the caller's own, such as those of an
// engine's lanes. params are settings of its sessions, for instance
// plan_cache_mode=force_generic_plan; they win over the URL's. Several hosts are tried in order
// until one takes writes. Errors to branch on: ErrBadURL, ErrTransactionPooler.
func Connector(databaseURL string, params map[string]string) func(context.Context) (*pgx.Conn, error) {
	l := &login{url: databaseURL, params: maps.Clone(params)}
	return l.connect
}

// Connect opens one connection as Connector does.
func Connect(ctx context.Context, databaseURL string, params map[string]string) (*pgx.Conn, error) {
	return Connector(databaseURL, params)(ctx)
}

// CloseConn ends a connection politely, within a second.
func CloseConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
