package session

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Pipeline is a transaction of several round trips on a connection. Each round trip ends with a Sync, so the
// server waits inside the transaction between two round trips. If no further round trip arrives, the server ends
// the transaction (idle_in_transaction_session_timeout).
type Pipeline struct {
	conn     *Conn
	pipeline *pgconn.Pipeline
	pending  []func(*pgconn.ResultReader) error
}

// Begin begins a transaction, which must end with Commit or Abandon.
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

// Misread reports whether a transaction failed because a response of the database could not be read.
func Misread(err error) bool { return errors.Is(err, errMisread) }

// Ask sends a statement with the next round trip; read reads the statement's rows.
func (pipe *Pipeline) Ask(name StatementName, params [][]byte, read func(*pgconn.ResultReader) error) {
	pipe.conn.makeRoom(params)
	pipe.pipeline.SendQueryStatement(pipe.conn.statements[name], params, binaryFormat, binaryFormat)
	pipe.pending = append(pipe.pending, read)
	if name == pipe.conn.faults.CommitAfter {
		pipe.command("COMMIT")
		pipe.command("BEGIN")
	}
}

// Do sends a statement whose rows are ignored.
func (pipe *Pipeline) Do(name StatementName, params [][]byte) { pipe.Ask(name, params, noRows) }

// Answers makes a round trip and reads the responses. The transaction stays open.
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
	_, err := pipe.pipeline.GetResults() // the result of the Sync
	return err
}

// Commit sends the remaining statements and commits. If it returns nil, the whole transaction is durable.
func (pipe *Pipeline) Commit() error {
	pipe.command("COMMIT")
	if err := pipe.Answers(); err != nil {
		return err
	}
	return pipe.pipeline.Close()
}

// Abandon rolls back a transaction that has failed. It closes the connection if the transaction cannot be ended;
// otherwise the connection can be used again.
func (pipe *Pipeline) Abandon() {
	conn := pipe.conn.conn
	// A broken connection is being closed by a goroutine of pgx, which also writes to the connection.
	if !conn.IsClosed() {
		pipe.command("ROLLBACK")
		_ = pipe.pipeline.Sync()
	}
	_ = pipe.pipeline.Close()
	if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		pipe.conn.close()
	}
}
