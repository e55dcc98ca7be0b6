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

// Outage reports whether err says that the database is out of reach. Either it did not answer
// (nobody there, a broken connection, a deadline), or it answered that it is starting,
// stopping or a standby. Outage does not say whether something was done before the connection
// broke.
//
// Errors of the server about a statement or a login are no outages. Nor are calls that the
// caller cancelled, nor errors of this program.
func Outage(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return saysOutage(said.Code)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	_, network := errors.AsType[net.Error](err)
	return network || pgconn.SafeToRetry(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errStandby) || errors.Is(err, pgconn.ErrReadOnlyConnection) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, puddle.ErrClosedPool) || errors.Is(err, driver.ErrBadConn)
}

// saysOutage reports whether a SQLSTATE means an outage.
func saysOutage(code string) bool {
	switch code {
	case "08004", // the login was rejected
		"08P01": // a fault of the protocol: somebody answers
		return false
	case "57P01", // stopping, or the session was ended
		"57P02", // another session crashed
		"57P03", // starting or stopping
		"57P05", // the session was ended: idle
		"25P03", // the session was ended: idle in a transaction
		"25006": // read only: a standby that has not been promoted yet
		return true
	}
	return strings.HasPrefix(code, "08") // connection exceptions
}

// Refused reports whether the database is there, but does not let this program work. A login,
// a right, a table or room for one more session is missing, or its disk is full. Every attempt
// fails until somebody repairs that. It is no outage.
func Refused(err error) bool {
	if Outage(err) {
		return false
	}
	said, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		_, connecting := errors.AsType[*pgconn.ConnectError](err) // as by TLS
		return connecting
	}
	switch said.Code {
	case "08004", "08P01",
		"3D000", "3F000", // no such database or schema
		"42501", // not allowed
		"42P01", // no such table
		"55000", // the database takes no connections
		"57P04": // the database was dropped
		return true
	}
	class := said.Code[:min(2, len(said.Code))]
	return class == "28" || // the login
		class == "53" || // out of connections, memory or disk
		class == "58" // the machine beneath it: input and output
}

// Retryable reports whether the server rolled the whole transaction back for a reason that may
// be gone the next time. It clashed with another transaction, or a lock or the statement took
// too long. Nothing of it was done, and it is no outage.
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
