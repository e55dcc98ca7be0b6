package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// NotCommitted reports whether err, the error of a COMMIT, proves that the transaction had no effect. False
// means that the outcome is unknown. NotCommitted also works for a round trip without a COMMIT that the server
// commits at its end.
//
// There are three proofs. First, the server refused the COMMIT with an ERROR, because the server raises an ERROR
// only before it writes the commit, and then rolls back. Second, the server had ended the idle session, because
// the server checks for idleness before it reads the next statement. Third, the COMMIT never left this program.
//
// A FATAL, such as the 57P01 of a server that stops, proves nothing. The session may have ended before the
// COMMIT, or after the COMMIT and before the answer.
func NotCommitted(err error) bool {
	said, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case !answered:
		return errors.Is(err, pgx.ErrTxCommitRollback) || unsent(err)
	case said.Code == "25P03", said.Code == "57P05": // the session was idle, inside or outside a transaction
		return true
	case said.Code == "40003", // the server does not know the outcome
		strings.HasPrefix(said.Code, "08"): // a proxy between this program and the server lost its connection
		return false
	}
	return said.SeverityUnlocalized == "ERROR"
}

// unsent reports whether err proves that nothing reached the server. If err joins several errors, each error
// must prove it, because closing a broken connection also fails before anything is sent.
//
// pgconn.ErrConnClosed is no proof, whatever SafeToRetry reports. pgx returns this error also if the connection
// ended while the answer was awaited.
func unsent(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed)
	}
	all := joined.Unwrap()
	for _, one := range all {
		if !unsent(one) {
			return false
		}
	}
	return len(all) > 0
}
