package plans

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"quotad/internal/quota"
)

// classify turns a failed statement's error into quota.ErrUnavailable, wrapped, when the
// database could not be reached or could not serve: then a retry may help and an outage
// is on. Sentinels, field errors, a caller that gave up and the server's own complaints
// about a statement stay what they are.
func classify(err error) error {
	if err == nil || !outage(err) || errors.Is(err, quota.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", quota.ErrUnavailable, err)
}

// settle is classify for the error of a COMMIT: unless the server itself refused it,
// nobody here can know whether the transaction counts.
func settle(err error) error {
	var answered *pgconn.PgError
	if err == nil || errors.As(err, &answered) && !outage(err) {
		return err
	}
	return fmt.Errorf("saving: %w: %w", quota.ErrOutcomeUnknown, err)
}

// outage tells a missing database from one that answered. What the server says itself is
// an outage only in the classes for connections (08), resources (53, such as too many
// connections) and operators (57P, such as a shutdown), and 25006: a standby that has
// not been promoted yet.
func outage(err error) bool {
	if answered, ok := errors.AsType[*pgconn.PgError](err); ok {
		return answered.Code == "25006" || strings.HasPrefix(answered.Code, "08") ||
			strings.HasPrefix(answered.Code, "53") || strings.HasPrefix(answered.Code, "57P")
	}
	if errors.Is(err, context.Canceled) {
		return false
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || pgconn.SafeToRetry(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, puddle.ErrClosedPool)
}
