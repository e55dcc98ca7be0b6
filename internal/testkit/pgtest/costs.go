package pgtest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
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

// appendCosts appends the costs to their file, as a line of JSON.
func appendCosts() error {
	if costsFile == "" {
		return nil
	}
	name, err := packageName()
	if err != nil {
		return err
	}
	line, err := json.Marshal(struct {
		Package   string `json:"package"`
		Servers   int64  `json:"servers"`
		Databases int64  `json:"databases"`
		Sessions  int64  `json:"sessions"`
	}{name, costs.servers.Load(), cloned.Load(), costs.sessions.Load()})
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

// packageName returns the working directory, in which `go test` runs a package's tests, below that of go.mod.
func packageName() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for root := here; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return filepath.Rel(root, here)
		}
		if root == filepath.Dir(root) {
			return "", errors.New("no go.mod is above " + here)
		}
	}
}
