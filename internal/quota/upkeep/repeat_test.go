package upkeep

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"quotad/internal/testkit/pgtest"
)

// The log has one word for each time that it begins to fail, and that it works again; an
// error because of the end is none.
func TestRepeatedWorkLogsOnce(t *testing.T) {
	t.Parallel()
	log := new(pgtest.Log)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	work := Repeated{
		Log: slog.New(slog.NewTextHandler(log, nil)), Pause: time.Microsecond, Fails: "it fails", Works: "it works",
		Do: func(context.Context) error {
			switch n++; n {
			case 2, 3, 4, 7, 8:
				return errors.New("bad")
			case 10, 11:
				return io.EOF // as an outage is
			case 13:
				cancel()
				return errors.New("late")
			}
			return nil
		},
	}
	work.Run(ctx)
	if n != 13 || log.Count("it fails") != 2 || log.Count("it works") != 2 || log.Count("late") != 0 {
		t.Errorf("%d times, %s", n, log)
	}
}
