package quota

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// flight is a transaction of several round trips on a store's session.
type flight struct {
	store      *store
	pipeline   *pgconn.Pipeline
	pending    []func(*pgconn.ResultReader) error
	committing bool // its commit may have reached the server
}

// begin begins a transaction. It must end with commit, or abandon.
func (s *store) begin(ctx context.Context) *flight {
	return &flight{store: s, pipeline: s.conn.PgConn().StartPipeline(ctx)}
}

// errMisread: the database answered with something else than what was asked for.
var errMisread = errors.New("an answer of the database cannot be read")

// ask sends a statement with the next round trip; read reads its rows.
func (f *flight) ask(name statementName, params [][]byte, read func(*pgconn.ResultReader) error) {
	f.pipeline.SendQueryStatement(f.store.statements[name], params, binaryFormat, binaryFormat)
	f.pending = append(f.pending, read)
}

// do sends a statement whose rows nobody reads.
func (f *flight) do(name statementName, params [][]byte) {
	f.ask(name, params, func(*pgconn.ResultReader) error { return nil })
}

// answers makes the round trip. The transaction stays open.
func (f *flight) answers() error {
	f.pipeline.SendFlushRequest()
	if err := f.pipeline.Flush(); err != nil {
		return err
	}
	return f.readAll()
}

func (f *flight) readAll() error {
	for _, read := range f.pending {
		results, err := f.pipeline.GetResults()
		if err != nil {
			return err
		}
		reader, ok := results.(*pgconn.ResultReader)
		if !ok {
			return errors.New("an answer that is none of a statement")
		}
		bad := read(reader)
		if _, err := reader.Close(); err != nil {
			return err
		}
		if bad != nil {
			return errors.Join(errMisread, bad)
		}
	}
	f.pending = f.pending[:0]
	return nil
}

// commit sends what is still to be sent and commits. When it returns nil all of it is
// durable; the pipeline's close reads the end of the transaction.
func (f *flight) commit() error {
	f.committing = true
	if err := f.pipeline.Sync(); err != nil {
		return err
	}
	if err := f.readAll(); err != nil {
		return err
	}
	return f.pipeline.Close()
}

// abandon ends a transaction that has failed, by which it is rolled back, and returns why
// it failed. The session can be used again unless its connection is gone.
func (f *flight) abandon(err error) error {
	// A connection that broke is being closed by a goroutine of pgx, which writes to it too.
	if !f.committing && !f.store.conn.IsClosed() {
		_ = f.pipeline.Sync()
	}
	_ = f.pipeline.Close()
	return err
}
