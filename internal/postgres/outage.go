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
// (nobody there, a broken connection, a deadline), or it answered that it is starting or
// stopping. Outage does not say whether something was done before the connection broke.
//
// Errors of the server about a statement or a login are no outages, nor is a database that is
// read only. Nor are calls that the caller cancelled, nor errors of this program.
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
	case "08004", // the login was rejected
		"08P01": // a fault of the protocol: somebody answers
		return false
	case "57P01", // stopping, or the session was ended
		"57P02", // another session crashed
		"57P03", // starting or stopping
		"57P05", // the session was ended: idle
		"25P03": // the session was ended: idle in a transaction
		return true
	}
	return strings.HasPrefix(code, "08") // connection exceptions
}

// readOnlyState is the SQLSTATE of a write that the server refuses since it takes none.
const readOnlyState = "25006"

// ReadOnly reports whether err says that the database is there and takes no writes: it is a standby,
// or somebody set it so. Of several hosts all that answer must say so. Where one is out of reach,
// that one may be the primary: this is an outage.
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

// poolerOutage reports whether a PgBouncer says that it cannot reach the server. All that it says
// has the code of a fault of the protocol. Other than PostgreSQL it names no place of its source.
func poolerOutage(said *pgconn.PgError) bool {
	if said.Code != "08P01" || said.File != "" || strings.Contains(said.Message, "authentication failed") {
		return false
	}
	for _, text := range []string{
		"server login has been failing", // the last attempts; newer ones add why
		"cannot connect to server", "connect failed", "server conn crashed",
		"shutting down",
	} {
		if strings.Contains(said.Message, text) {
			return true
		}
	}
	return false
}

// Refused reports whether the database is there, but does not let this program work. A login,
// a right, a table or room for one more session is missing, its disk is full, or it is read only.
// Every attempt fails until somebody repairs that. It is no outage.
func Refused(err error) bool {
	if Outage(err) {
		return false
	}
	if ReadOnly(err) {
		return true
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

// Passing reports whether a program that starts should try again: the database is out of reach or
// takes no writes yet, has no session left, or something took too long.
func Passing(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch said.Code {
		case "53300", // out of sessions: of the server, the database or the role
			"25006": // read only
			return true
		}
	}
	return Outage(err) || Retryable(err) ||
		errors.Is(err, ErrClockUnsure) || errors.Is(err, ErrReadOnly) || errors.Is(err, pgconn.ErrReadOnlyConnection)
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
	case "23514": // a month was made meanwhile: what violates a partition's bounds names no constraint
		return said.ConstraintName == ""
	}
	return false
}

// Archived reports whether the database refused what is about usage that was taken out: the constraints
// and triggers of migrations/00011_archive.sql and quotad archive all have that name.
func Archived(err error) bool {
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == "23514" && said.ConstraintName == "archived"
}
