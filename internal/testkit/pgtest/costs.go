package pgtest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
)

// costsFile names the file to which Main appends what the tests of a package asked of PostgreSQL. If the
// environment variable is not set, nothing is counted.
var costsFile = os.Getenv("QUOTAD_TEST_COSTS")

// costs are the private and shared servers that the test binary started, and the sessions on them. A session
// is a process that the server forks. The sessions before a server's crash are not counted.
var costs struct{ servers, sessions atomic.Int64 }

// countSessions adds the sessions of a database, or of all databases if the name is empty.
func countSessions(ctx context.Context, conn *pgx.Conn, database string) error {
	if costsFile == "" {
		return nil
	}
	var sessions int64
	err := conn.QueryRow(ctx, "SELECT sum(sessions)::bigint FROM pg_stat_database WHERE $1::text IN ('', datname)", database).Scan(&sessions)
	costs.sessions.Add(sessions)
	return err
}

// countServer adds a server that is about to stop, and its sessions.
func countServer(ctx context.Context, admin string) error {
	if costsFile == "" {
		return nil
	}
	costs.servers.Add(1)
	conn, err := postgres.Connect(ctx, Patiently(admin), nil)
	if err != nil {
		return err
	}
	defer postgres.CloseConn(conn)
	return countSessions(ctx, conn, "")
}

// appendCosts appends the costs to their file, as a line of JSON. scripts/measured.sh names the package.
func appendCosts() error {
	if costsFile == "" {
		return nil
	}
	line, err := json.Marshal(struct {
		Package   string `json:"package"`
		Servers   int64  `json:"servers"`
		Databases int64  `json:"databases"`
		Sessions  int64  `json:"sessions"`
	}{os.Getenv("QUOTAD_TEST_PACKAGE"), costs.servers.Load(), cloned.Load(), costs.sessions.Load()})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(costsFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
