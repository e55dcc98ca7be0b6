package session

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Pipeline is a transaction of several round trips on a connection. Each round trip ends with a
// Sync. So the server waits inside of the transaction between two round trips. If no next one
// comes, the server ends the transaction (idle_in_transaction_session_timeout).
type Pipeline struct {
	conn     *Conn
	pipeline *pgconn.Pipeline
	pending  []func(*pgconn.ResultReader) error
}

// Begin begins a transaction. It must end with commit, or abandon.
func (s *Conn) Begin(ctx context.Context) *Pipeline {
	s.unlimited()
	pipe := &Pipeline{conn: s, pipeline: s.conn.PgConn().StartPipeline(ctx)}
	pipe.command("BEGIN")
	return pipe
}

// command sends a statement without parameters or rows with the next round trip.
func (pipe *Pipeline) command(sql string) {
	pipe.pipeline.SendQueryParams(sql, nil, nil, nil, nil)
	pipe.pending = append(pipe.pending, noRows)
}

func noRows(*pgconn.ResultReader) error { return nil }

var errMisread = errors.New("an answer of the database cannot be read")

// Misread reports whether a transaction failed because an answer of the database could not be
// read.
func Misread(err error) bool { return errors.Is(err, errMisread) }

// Ask sends a statement with the next round trip; read reads its rows.
func (pipe *Pipeline) Ask(name StatementName, params [][]byte, read func(*pgconn.ResultReader) error) {
	pipe.conn.makeRoom(params)
	pipe.pipeline.SendQueryStatement(pipe.conn.statements[name], params, binaryFormat, binaryFormat)
	pipe.pending = append(pipe.pending, read)
	if name == pipe.conn.faults.CommitAfter {
		pipe.command("COMMIT")
		pipe.command("BEGIN")
	}
}

// Do sends a statement whose rows nobody reads.
func (pipe *Pipeline) Do(name StatementName, params [][]byte) { pipe.Ask(name, params, noRows) }

// Answers makes a round trip. The transaction stays open.
func (pipe *Pipeline) Answers() error {
	if err := pipe.pipeline.Sync(); err != nil {
		return err
	}
	for _, read := range pipe.pending {
		results, err := pipe.pipeline.GetResults()
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
	pipe.pending = pipe.pending[:0]
	_, err := pipe.pipeline.GetResults() // the Sync's
	return err
}

// Commit sends what is still to be sent and commits. When it returns nil all of it is
// durable.
func (pipe *Pipeline) Commit() error {
	pipe.command("COMMIT")
	if err := pipe.Answers(); err != nil {
		return err
	}
	return pipe.pipeline.Close()
}

// Abandon rolls back a transaction that has failed. It closes a connection that does not get out
// of the transaction; any other can be used again.
func (pipe *Pipeline) Abandon() {
	conn := pipe.conn.conn
	// A connection that broke is being closed by a goroutine of pgx, which writes to it too.
	if !conn.IsClosed() {
		pipe.command("ROLLBACK")
		_ = pipe.pipeline.Sync()
	}
	_ = pipe.pipeline.Close()
	if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		pipe.conn.close()
	}
}
