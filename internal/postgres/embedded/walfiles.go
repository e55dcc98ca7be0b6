package embedded

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// PostgreSQL fills a new WAL file with zeros and flushes it, and all commits wait for that: some 7 ms with 4
// MiB. At 15,000 hits a second, this would happen nearly every second. After a checkpoint, PostgreSQL reuses old
// files instead, as many as min_wal_size and the recent load require. A server that has run for a while has such
// files, and a new server gets its first files here.

// Bounds on the number of WAL files of a new server, whatever min_wal_size requires: a number, and a fraction of
// the free disk space. A server without space for WAL crashes.
const (
	mostWALFiles = 128
	freeShareWAL = 4
)

// countWALFiles returns the number of files of the given size to create, to have least bytes in all. free is the
// number of free bytes on the disk.
func countWALFiles(least, size, free int64) int {
	return int(min(least/size, free/freeShareWAL/size, mostWALFiles))
}

// makeWALFiles writes as many WAL files as min_wal_size keeps, and then runs a checkpoint, after which
// PostgreSQL reuses the files.
func makeWALFiles(ctx context.Context, conn *pgx.Conn, dir string) error {
	free, err := FreeSpace(dir)
	if err != nil {
		return fmt.Errorf("ask for the space that is free in %s: %w", dir, err)
	}
	var least, size int64
	err = conn.QueryRow(ctx, `SELECT pg_size_bytes(current_setting('min_wal_size')), pg_size_bytes(current_setting('wal_segment_size'))`).Scan(&least, &size)
	if err != nil {
		return fmt.Errorf("ask for the size of WAL: %w", err)
	}
	for range countWALFiles(least, size, free) {
		// PostgreSQL does not switch to the next file while nothing was written to the current file.
		if _, err := conn.Exec(ctx, "SELECT pg_logical_emit_message(false, '', ''), pg_switch_wal()"); err != nil {
			return fmt.Errorf("begin another file of WAL: %w", err)
		}
	}
	if _, err := conn.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("have the files of WAL used again: %w", err)
	}
	return nil
}
