package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// NotCommitted reports whether err, the error of a COMMIT, proves that nothing of the transaction was done.
// False means that the result is unknown. NotCommitted also applies to a round trip without a COMMIT that the
// server commits at its end.
//
// Three facts prove it. First, the server refused the COMMIT with an ERROR, which it raises only before it
// writes the commit, and then rolls back. Second, the server had ended the session because of a timeout for idle
// sessions, which it checks before it reads the next statement. Third, the COMMIT never left this program.
//
// A FATAL error proves nothing, such as 57P01 of a server that stops. The session may have ended before the
// COMMIT, or right after the COMMIT and before the response.
func NotCommitted(err error) bool {
	said, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case !answered:
		return errors.Is(err, pgx.ErrTxCommitRollback) || unsent(err)
	case said.Code == "25P03", said.Code == "57P05": // an idle session, inside or outside a transaction
		return true
	case said.Code == "40003", // the server itself does not know the result
		strings.HasPrefix(said.Code, "08"): // a component between quotad and the server lost its connection
		return false
	}
	return said.SeverityUnlocalized == "ERROR"
}

// unsent reports whether err proves that nothing reached the server. If err joins several errors, every joined
// error must be a proof, because closing a broken connection also fails before anything is sent.
//
// pgconn.ErrConnClosed is no proof, whatever SafeToRetry returns. pgx returns this error also if the connection
// ended during the wait for a response.
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
