package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// ErrTransactionPooler is returned if a pooler assigns each transaction another session of the server. quotad
// keeps settings, prepared statements, locks and LISTEN in its sessions.
var ErrTransactionPooler = errors.New("the database URL leads to a transaction pooler, such as PgBouncer with pool_mode = transaction or statement: it gives each transaction another session")

// atStartup reports whether a parameter is sent in the first message of a connection. All other parameters are
// set later, because a pooler refuses a first message with an unknown setting.
func atStartup(name string) bool {
	switch strings.ToLower(name) {
	case "application_name", "client_encoding", "options", "replication":
		return true
	}
	return strings.HasPrefix(name, "_pq_.") // a parameter of the protocol
}

// setLater removes the settings from the first message. The new connection sets them immediately, before
// anything else can use the connection.
func setLater(config *pgconn.Config) {
	settings := make(map[string]string)
	for name, value := range config.RuntimeParams {
		if !atStartup(name) {
			settings[name] = value
			delete(config.RuntimeParams, name)
		}
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error { return set(ctx, conn, settings) }
}

// setSQL and readBackSQL run in separate transactions. Both return the process id of the session and its
// settings. The server writes some values differently from the input, but always in the same way.
const (
	setSQL      = `SELECT pg_backend_pid(), json_object_agg(key, set_config(key, value, false)) FROM json_each_text($1)`
	readBackSQL = `SELECT pg_backend_pid(), json_object_agg(key, current_setting(key)) FROM json_each_text($1)`
)

// set sets a session's settings in one transaction and reads them back in another. If a pooler runs the second
// transaction in another session, set returns ErrTransactionPooler.
func set(ctx context.Context, conn *pgconn.PgConn, settings map[string]string) error {
	all, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	var said [2][]byte
	for i, sql := range []string{setSQL, readBackSQL} {
		result := conn.ExecParams(ctx, sql, [][]byte{all}, []uint32{pgtype.JSONOID}, nil, nil).Read()
		if result.Err != nil {
			return fmt.Errorf("set the session's settings: %w", result.Err)
		}
		if len(result.Rows) != 1 {
			return errors.New("set the session's settings: an answer of no row")
		}
		said[i] = bytes.Join(result.Rows[0], []byte(" "))
	}
	if !bytes.Equal(said[0], said[1]) {
		return ErrTransactionPooler
	}
	return nil
}

// pidOrder is the order in which two connections query their process id, in one transaction for each query. In
// whatever order a pooler assigns its sessions, one connection gets different sessions, or both connections get
// the same session.
var pidOrder = []int{0, 1, 0, 0, 1, 1, 0}

// CheckPooler returns ErrTransactionPooler if a pooler assigns sessions only for a transaction. It compares the
// sessions of two connections, because a single connection may get the same session each time while nobody else
// uses the pooler.
func CheckPooler(ctx context.Context, databaseURL string) error {
	var pair [2]*pgx.Conn
	var pids [2]int
	for i := range pair {
		conn, err := Connect(ctx, databaseURL, nil)
		if err != nil {
			return err
		}
		defer CloseConn(conn)
		pair[i] = conn
	}
	for _, i := range pidOrder {
		var pid int
		if err := pair[i].QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid); err != nil {
			return err
		}
		if pids[i] != 0 && pids[i] != pid || pids[1-i] == pid {
			return ErrTransactionPooler
		}
		pids[i] = pid
	}
	return nil
}
