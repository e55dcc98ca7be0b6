package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// Outage reports whether err says that the database is out of reach or does not serve:
// there was no answer of its at all (no connection, a broken one, a deadline), or its
// answer was that it cannot work now. Whether something was done before the connection
// broke it does not say.
//
// What the server complains of in a statement, what a caller gave up, and what this
// program found wrong are no outages.
func Outage(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return saysOutage(said.Code)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || pgconn.SafeToRetry(err) ||
		errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, puddle.ErrClosedPool) || errors.Is(err, driver.ErrBadConn)
}

// saysOutage reads a SQLSTATE.
func saysOutage(code string) bool {
	switch {
	case strings.HasPrefix(code, "08"), // connection exceptions
		strings.HasPrefix(code, "53"),  // out of connections, memory or disk
		strings.HasPrefix(code, "57P"), // shutting down, crashed, starting, the database dropped, a session ended
		strings.HasPrefix(code, "58"):  // the machine beneath it: input and output
		return true
	case code == "25006": // read only: a standby that has not been promoted yet
		return true
	case code == "25P03": // the session was ended: idle in a transaction
		return true
	}
	return false
}

// Retryable reports whether the server rolled the whole transaction back for a reason
// that may be gone the next time: it clashed with another one, or a lock or the
// statement took too long. Nothing of it was done, and it is no outage.
func Retryable(err error) bool {
	said, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch said.Code {
	case "40001", // serialization failure
		"40P01", // deadlock
		"55P03", // lock not available, or not within lock_timeout
		"57014": // cancelled, as by statement_timeout
		return true
	}
	return false
}
