package session

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Flight is a transaction of several round trips on a connection. Each round trip ends with a
// Sync. So the server waits inside of the transaction between two round trips. If no next one
// comes, the server ends the transaction (idle_in_transaction_session_timeout).
type Flight struct {
	conn     *Conn
	pipeline *pgconn.Pipeline
	pending  []func(*pgconn.ResultReader) error
}

// Begin begins a transaction. It must end with commit, or abandon.
func (s *Conn) Begin(ctx context.Context) *Flight {
	s.unlimited()
	f := &Flight{conn: s, pipeline: s.conn.PgConn().StartPipeline(ctx)}
	f.command("BEGIN")
	return f
}

// command sends a statement without parameters or rows with the next round trip.
func (f *Flight) command(sql string) {
	f.pipeline.SendQueryParams(sql, nil, nil, nil, nil)
	f.pending = append(f.pending, noRows)
}

func noRows(*pgconn.ResultReader) error { return nil }

var errMisread = errors.New("an answer of the database cannot be read")

// Misread reports whether a transaction failed because an answer of the database could not be
// read.
func Misread(err error) bool { return errors.Is(err, errMisread) }

// Ask sends a statement with the next round trip; read reads its rows.
func (f *Flight) Ask(name StatementName, params [][]byte, read func(*pgconn.ResultReader) error) {
	f.conn.makeRoom(params)
	f.pipeline.SendQueryStatement(f.conn.statements[name], params, binaryFormat, binaryFormat)
	f.pending = append(f.pending, read)
	if name == f.conn.faults.CommitAfter {
		f.command("COMMIT")
		f.command("BEGIN")
	}
}

// Do sends a statement whose rows nobody reads.
func (f *Flight) Do(name StatementName, params [][]byte) { f.Ask(name, params, noRows) }

// Answers makes a round trip. The transaction stays open.
func (f *Flight) Answers() error {
	if err := f.pipeline.Sync(); err != nil {
		return err
	}
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
	_, err := f.pipeline.GetResults() // the Sync's
	return err
}

// Commit sends what is still to be sent and commits. When it returns nil all of it is
// durable.
func (f *Flight) Commit() error {
	f.command("COMMIT")
	if err := f.Answers(); err != nil {
		return err
	}
	return f.pipeline.Close()
}

// Abandon rolls back a transaction that has failed. It closes a connection that does not get out
// of the transaction; any other can be used again.
func (f *Flight) Abandon() {
	conn := f.conn.conn
	// A connection that broke is being closed by a goroutine of pgx, which writes to it too.
	if !conn.IsClosed() {
		f.command("ROLLBACK")
		_ = f.pipeline.Sync()
	}
	_ = f.pipeline.Close()
	if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		f.conn.close()
	}
}
