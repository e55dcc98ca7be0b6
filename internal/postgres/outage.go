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

// Outage reports whether err means that the database is out of reach. Either the database did not respond (no
// server, a broken connection, a deadline), or it reported that it is starting or stopping. Outage does not
// report whether anything was done before the connection broke.
//
// Server errors about a statement or a login are not outages. Neither are a read-only database, calls that the
// caller cancelled, and errors of this program.
func Outage(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return saysOutage(said.Code) || poolerOutage(said)
	}
	if err == nil || errors.Is(err, context.Canceled) || ReadOnly(err) {
		return false
	}
	_, network := errors.AsType[net.Error](err)
	return network || pgconn.SafeToRetry(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, pgconn.ErrReadOnlyConnection) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, puddle.ErrClosedPool) || errors.Is(err, driver.ErrBadConn)
}

// saysOutage reports whether a SQLSTATE means an outage.
func saysOutage(code string) bool {
	switch code {
	case "08004", // login errors
		"08P01": // a protocol violation, so a server responded
		return false
	case "57P01", // the server is stopping, or the session was ended
		"57P02", // another session crashed
		"57P03", // the server is starting or stopping
		"57P05", // the session was ended because it was idle
		"25P03": // the session was ended because it was idle in a transaction
		return true
	}
	return strings.HasPrefix(code, "08") // connection exceptions
}

// readOnlyState is the SQLSTATE of a write that a read-only server refuses.
const readOnlyState = "25006"

// ReadOnly reports whether err means that the database is reachable but accepts no writes, because it is a
// standby or was set to be read-only. If there are several hosts, every host must be reachable and read-only. If
// a host is out of reach, the error is an outage, because this host may be the primary.
func ReadOnly(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return said.Code == readOnlyState
	}
	if errors.Is(err, errStandby) || errors.Is(err, ErrReadOnly) {
		return true
	}
	_, unreached := errors.AsType[net.Error](err)
	return errors.Is(err, pgconn.ErrReadOnlyConnection) && !unreached
}

// poolerOutage reports whether a PgBouncer cannot reach the server. All errors of PgBouncer have the code of a
// protocol violation. Unlike PostgreSQL, PgBouncer names no position in its source code.
func poolerOutage(said *pgconn.PgError) bool {
	if said.Code != "08P01" || said.File != "" || strings.Contains(said.Message, "authentication failed") {
		return false
	}
	for _, text := range []string{
		"server login has been failing", // text about the last attempts, to which newer versions add the reason
		"cannot connect to server", "connect failed", "server conn crashed",
		"shutting down",
	} {
		if strings.Contains(said.Message, text) {
			return true
		}
	}
	return false
}

// Refused reports whether the database is reachable but prevents this program from working. A login, a right, a
// table or room for another session is missing, the disk is full, or the database is read-only. Every attempt
// fails until somebody repairs the cause. Such an error is not an outage.
func Refused(err error) bool {
	if Outage(err) {
		return false
	}
	if ReadOnly(err) {
		return true
	}
	said, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		_, connecting := errors.AsType[*pgconn.ConnectError](err) // for example an error of TLS
		return connecting
	}
	switch said.Code {
	case "08004", "08P01",
		"3D000", "3F000", // no such database or schema
		"42501", // a missing right
		"42P01", // no such table
		"55000", // the database accepts no connections
		"57P04": // the database was dropped
		return true
	}
	class := said.Code[:min(2, len(said.Code))]
	return class == "28" || // a rejected login
		class == "53" || // out of connections, memory or disk
		class == "58" // input and output errors of the machine
}

// Passing reports whether a starting program should try again. It should if the database is out of reach,
// accepts no writes yet or has no free session, or if a statement took too long.
func Passing(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch said.Code {
		case "53300", // no free session of the server, the database or the role
			"25006": // read only
			return true
		}
	}
	return Outage(err) || Retryable(err) ||
		errors.Is(err, ErrClockUnsure) || errors.Is(err, ErrReadOnly) || errors.Is(err, pgconn.ErrReadOnlyConnection)
}

// Retryable reports whether the server rolled back the whole transaction for a reason that may be gone at the
// next attempt. The reason is a conflict with another transaction, or a timeout of a lock or a statement.
// Nothing was done, and such an error is not an outage.
func Retryable(err error) bool {
	said, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch said.Code {
	case "40001", // serialization failure
		"40P01", // deadlock
		"55P03", // the lock is not available, or not within lock_timeout
		"57014": // cancelled, for example by statement_timeout
		return true
	case "23514": // a month was created meanwhile; a violation of a partition's bounds names no constraint
		return said.ConstraintName == ""
	}
	return false
}

// Archived reports whether the database refused a change of archived usage. The constraints and triggers of
// migrations/00011_archive.sql and of quotad archive all have that name.
func Archived(err error) bool {
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == "23514" && said.ConstraintName == "archived"
}
