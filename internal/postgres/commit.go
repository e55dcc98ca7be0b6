package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// NotCommitted reports whether err, the error of a COMMIT, proves that nothing of the transaction
// was done. False means that nobody can know. It holds too for a round trip without a COMMIT that
// the server commits at its end.
//
// Three things prove it. The server refused the COMMIT with an ERROR: it raises one only before
// it writes the commit, and then rolls back. The server had ended the session for idleness, for
// which it looks before it reads the next statement. The COMMIT never left this program.
//
// A FATAL proves nothing, such as 57P01 of a server that stops. The session may have ended before
// the COMMIT, or right after it, before the answer.
func NotCommitted(err error) bool {
	said, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case !answered:
		return errors.Is(err, pgx.ErrTxCommitRollback) || unsent(err)
	case said.Code == "25P03", said.Code == "57P05": // idle, within a transaction or outside
		return true
	case said.Code == "40003", // the server does not know itself
		strings.HasPrefix(said.Code, "08"): // something between us and the server lost its connection
		return false
	}
	return said.SeverityUnlocalized == "ERROR"
}

// unsent reports whether err says that nothing reached the server. An error that joins several
// has to say so with each: to close a connection that broke fails before anything is sent, too.
//
// pgconn.ErrConnClosed is no proof, whatever SafeToRetry says. pgx answers it also where the
// connection ended while the answer was awaited.
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
