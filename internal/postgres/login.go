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

// filePrefix is the prefix of a database URL that is stored in a file: file:/run/secrets/database-url.
const filePrefix = "file:"

// maxURLFile is the maximum number of bytes that are read from such a file.
const maxURLFile = 64 << 10

// InFile returns a database URL for a file that contains the actual URL. The file is read for each new
// connection.
func InFile(path string) string { return filePrefix + path }

// textOf returns the text of a database URL. If the URL names a file, textOf reads the file.
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

// login contains the data with which connections are opened. Each new connection reads the URL's file, the
// password file, the certificates and their keys again. Therefore these files may change while quotad runs.
type login struct {
	url      string
	defaults map[string]string // settings of the session that apply if the URL does not set them
	params   map[string]string // settings that override the settings in the URL

	last atomic.Pointer[pgx.ConnConfig] // the last readable configuration
}

// config reads the current configuration. If the current configuration cannot be read, config returns the last
// readable configuration, because of two files one may have been replaced before the other. again is the reason
// why the current configuration could not be read.
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

// connect opens a connection. If ctx has no deadline, connect sets a deadline of connect_timeout for each host,
// plus a second.
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

// Connector returns a function that opens connections for the caller's own use, such as connections of an
// engine's lanes. params are settings of the sessions, for instance plan_cache_mode=force_generic_plan, and
// override the settings in the URL. Several hosts are tried in order until a host accepts writes. Errors to
// branch on: ErrBadURL, ErrTransactionPooler.
func Connector(databaseURL string, params map[string]string) func(context.Context) (*pgx.Conn, error) {
	l := &login{url: databaseURL, params: maps.Clone(params)}
	return l.connect
}

// Connect opens one connection as Connector does.
func Connect(ctx context.Context, databaseURL string, params map[string]string) (*pgx.Conn, error) {
	return Connector(databaseURL, params)(ctx)
}

// CloseConn closes a connection within a second. It notifies the server.
func CloseConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
