package embedded

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A file of WAL is filled with zeros and flushed when it is begun, and all commits wait for
// that, some 7 ms with 4 MiB: at 15,000 hits a second nearly each second. Files that a
// checkpoint has no more use for are used again instead, as many as min_wal_size says and
// what was written lately asks for. So a server has them that has run for a while; a new
// one gets its first here.

// Bounds of how many files a new server gets, whatever min_wal_size says: so many, and a
// share of what is free on the disk. A server that finds no room for WAL dies.
const (
	mostWALFiles = 128
	freeShareWAL = 4
)

// countWALFiles is how many files to make of a size, to have as many bytes as least, with
// some bytes free.
func countWALFiles(least, size, free int64) int {
	return int(min(least/size, free/freeShareWAL/size, mostWALFiles))
}

// makeWALFiles writes as many files of WAL as min_wal_size keeps, and has them used again.
func makeWALFiles(ctx context.Context, conn *pgx.Conn, dir string) error {
	free, err := freeSpace(dir)
	if err != nil {
		return fmt.Errorf("ask for the space that is free in %s: %w", dir, err)
	}
	var least, size int64
	err = conn.QueryRow(ctx, `SELECT pg_size_bytes(current_setting('min_wal_size')), pg_size_bytes(current_setting('wal_segment_size'))`).Scan(&least, &size)
	if err != nil {
		return fmt.Errorf("ask for the size of WAL: %w", err)
	}
	for range countWALFiles(least, size, free) {
		// A file in which nothing was written is not left for the next.
		if _, err := conn.Exec(ctx, "SELECT pg_logical_emit_message(false, '', ''), pg_switch_wal()"); err != nil {
			return fmt.Errorf("begin another file of WAL: %w", err)
		}
	}
	if _, err := conn.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("have the files of WAL used again: %w", err)
	}
	return nil
}
