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

// filePrefix is the prefix of a database URL that is stored in a file, such as file:/run/secrets/database-url.
const filePrefix = "file:"

// maxURLFile is the maximum number of bytes that are read from such a file.
const maxURLFile = 64 << 10

// InFile returns a database URL that refers to a file. The file contains the actual URL and is read for each new
// connection.
func InFile(path string) string { return filePrefix + path }

// textOf returns the text of a database URL. If the URL refers to a file, textOf reads the file.
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

// login contains the data for new connections. Each new connection reads all files again: the URL's file, the
// password file, certificates and their keys. Therefore these files may change while quotad runs.
type login struct {
	url      string
	defaults map[string]string // session settings that the URL may override
	params   map[string]string // settings that override the URL's

	last atomic.Pointer[pgx.ConnConfig] // last valid configuration
}

// config returns the current configuration of connections. If the current files cannot be read, for example
// because only one of two files has been replaced, config returns the last valid configuration. again is the
// error of the failed read.
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

// connect opens a connection. If ctx has no deadline, the deadline is connect_timeout for each host, plus a
// second.
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

// Connector returns a function that opens separate connections, such as the connections of an engine's lanes.
// params are session settings, for instance plan_cache_mode=force_generic_plan, and override the URL's settings.
// Several hosts are tried in order until one accepts writes. Errors to branch on: ErrBadURL,
// ErrTransactionPooler.
func Connector(databaseURL string, params map[string]string) func(context.Context) (*pgx.Conn, error) {
	l := &login{url: databaseURL, params: maps.Clone(params)}
	return l.connect
}

// Connect opens one connection as the function that Connector returns does.
func Connect(ctx context.Context, databaseURL string, params map[string]string) (*pgx.Conn, error) {
	return Connector(databaseURL, params)(ctx)
}

// CloseConn closes a connection gracefully within a second.
func CloseConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
