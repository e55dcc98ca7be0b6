package embedded_test

import (
	"testing"

	"quotad/internal/testkit/pgtest"
)

// A new server has its files of WAL: what is written begins none.
func TestNewServerHasWALFiles(t *testing.T) {
	t.Parallel()
	opts := options(pgtest.Dir(t))
	opts.Settings["min_wal_size"] = "48MB" // twelve files
	e := start(t, opts)
	const files = "SELECT count(*) FROM pg_ls_waldir()"
	before := pgtest.Query[int](t, e.AdminURL(), files)
	pgtest.Query[bool](t, e.AdminURL(), "SELECT pg_logical_emit_message(false, '', repeat('x', 8 * 1024 * 1024)) IS NOT NULL FROM generate_series(1, 4)")
	pgtest.Query[bool](t, e.AdminURL(), "SELECT pg_switch_wal() IS NOT NULL") // flushed, so that the files are there
	if after := pgtest.Query[int](t, e.AdminURL(), files); before < 12 || after > before {
		t.Errorf("%d files of WAL, and %d behind 32 MiB: it had to make some", before, after)
	}
}
