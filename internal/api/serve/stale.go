package serve

import (
	"context"
	"errors"
	"fmt"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// MaxResolves bounds how often an operation is judged again because its limits changed
// meanwhile, or an override ended. Each further time needs another one within milliseconds.
const MaxResolves = 4

// WhileStale calls do with atLeast 0, for any change that this node has seen. While do answers
// that its limits were stale, WhileStale calls it again with the newer change.
func WhileStale(do func(atLeast int64) error) error {
	atLeast := int64(0)
	for try := 1; ; try++ {
		err := do(atLeast)
		stale, ok := errors.AsType[*model.StaleError](err)
		if !ok || try == MaxResolves {
			return err
		}
		atLeast = stale.Change
	}
}

// OutOfTime is what an error means that came when its request's time was over: that the request
// waited too long, and never that the database is out of reach. on_outage lets nothing in by it.
func OutOfTime(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, session.ErrUnavailable) || errors.Is(err, session.ErrOutcomeUnknown) {
		return err
	}
	return fmt.Errorf("%w: %v", ctx.Err(), err) //nolint:errorlint // it is no longer what it says
}
