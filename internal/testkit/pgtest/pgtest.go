// Package pgtest gives each test a real PostgreSQL database of its own. The database is cloned
// in milliseconds from a migrated template, on one server for each test binary. Tests that
// kill their server get one of their own.
//
// It is imported by tests only. It must never hold fixtures: a new database has the schema and
// nothing else.
//
// $PGBIN picks the programs. $QUOTAD_TEST_DATABASE_URL names a running server to use instead
// of starting one, by the URL of a role that may create databases. A database or server whose
// test failed is kept, and the test says how to open it.
package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/migrations"

	"github.com/jackc/pgx/v5"
)

// NewDatabase returns the URL of a fresh database with quotad's schema,
// connecting as a role that owns it and is no superuser. The database goes
// with the test, or is kept when the test failed.
func NewDatabase(t testing.TB) string {
	t.Helper()
	s := sharedServer(t)
	return s.clone(t)
}

// AdminURL is the shared server's superuser on its maintenance database, for
// tests that look at the server itself.
func AdminURL(t testing.TB) string {
	t.Helper()
	return sharedServer(t).admin
}

// server is one on which databases are cloned.
type server struct {
	admin    string // URL that may create databases
	owner    string // URL of the role that owns the clones, on any database
	template string // the database that is cloned; nobody connects with it
	kept     atomic.Bool // a failed test left a database behind
}

var cloned atomic.Int64

// clone makes a database for t.
func (s *server) clone(t testing.TB) string {
	t.Helper()
	name := databaseName(t.Name())
	owner := userOf(s.owner)
	// In memory FILE_COPY takes half the time of WAL_LOG, on a disk five times as long.
	err := execute(s.admin, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY FILE_COPY OWNER %s",
		quote(name), quote(s.template), quote(owner)))
	if err != nil {
		t.Fatalf("clone the test database: %v", err)
	}
	databaseURL := withDatabase(s.owner, name)
	t.Cleanup(func() {
		if t.Failed() {
			s.kept.Store(true)
			t.Logf("the test's database is kept; open it with: psql '%s'", databaseURL)
			return
		}
		if err := execute(s.admin, "DROP DATABASE "+quote(name)+" WITH (FORCE)"); err != nil {
			t.Logf("drop the test database: %v", err)
		}
	})
	return databaseURL
}

// prepareTemplate makes the migrated template unless the server has it. Only a server that was given needs
// one. Its name carries a hash of the migrations, so an old one is never taken.
func (s *server) prepareTemplate() error {
	hash, err := hashOf(migrations.FS)
	if err != nil {
		return err
	}
	s.template = "quotad_template_" + hash
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	conn, err := postgres.Connect(ctx, Patiently(s.admin), nil)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// Several test binaries may share the server: one builds, the others wait.
	// The lock goes with the connection.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", s.template); err != nil {
		return err
	}
	var there bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", s.template).Scan(&there)
	if err != nil || there {
		return err
	}
	// Built under another name, so that a half-built one is never cloned.
	building := s.template + "_building"
	for _, sql := range []string{
		"DROP DATABASE IF EXISTS " + quote(building) + " WITH (FORCE)",
		"CREATE DATABASE " + quote(building) + " OWNER " + quote(userOf(s.owner)),
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := furnish(ctx, withDatabase(s.owner, building)); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+quote(building)+" RENAME TO "+quote(s.template))
	return err
}

// nameSeller gives the default seller a name: the invoices of a nameless one are held.
func nameSeller(ctx context.Context, databaseURL string) error {
	conn, err := postgres.Connect(ctx, Patiently(databaseURL), nil)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, `UPDATE sellers SET name = '`+SellerName+`'`)
	return err
}

// SellerName is what the default seller is called in a test's database.
const SellerName = "The Seller"

// hashOf names a set of migrations.
func hashOf(fsys fs.FS) (string, error) {
	sum := sha256.New()
	names, err := fs.Glob(fsys, "*.sql")
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], err
}

// databaseName is unique on the server, and tells which test made it.
func databaseName(test string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, test)
	return fmt.Sprintf("%.40s_%d_%d", clean, os.Getpid(), cloned.Add(1)) // at most 63 bytes
}

func quote(identifier string) string { return pgx.Identifier{identifier}.Sanitize() }

// withDatabase points a URL at another database.
func withDatabase(databaseURL, name string) string {
	u, err := url.Parse(databaseURL)
	if err != nil {
		panic("pgtest: unreadable database URL") // shown without it: it may hold a password
	}
	u.Path = "/" + name
	return u.String()
}

func userOf(databaseURL string) string {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		panic("pgtest: unreadable database URL")
	}
	return config.User
}

// execute runs one statement on a connection of its own.
func execute(databaseURL, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	conn, err := postgres.Connect(ctx, Patiently(databaseURL), nil)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}
