package testkit

import (
	"context"
	"os"
	"testing"
	"time"
)

// Patience is how long a test waits for what must come. It guards against hanging alone, so a slow
// machine never meets it. Nothing may be concluded from how long something took.
const Patience = 5 * time.Minute

// Context ends with the test, and some seconds before the deadline of the test's binary, so that
// the test can still say what it waited for and clean up.
func Context(t testing.TB) context.Context {
	t.Helper()
	deadline := time.Now().Add(10 * Patience)
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := d.Deadline(); ok {
			deadline = end.Add(-5 * time.Second)
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// Bounded ends after Patience, or with the test. It is for one step of a test.
func Bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// askedAgain is how long Eventually waits at most before it asks again. The first pauses are shorter, because most
// of what tests wait for is there soon, and a question costs a request or a statement.
const askedAgain = 40 * time.Millisecond

// Eventually waits until something holds. It returns how long that took, for a log or a bench.
func Eventually(t testing.TB, what string, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for pause := 2 * time.Millisecond; !holds(); pause = min(pause*3/2, askedAgain) {
		if time.Since(began) > Patience {
			t.Fatalf("waited in vain: %s", what)
		}
		<-time.After(pause)
	}
	return time.Since(began)
}

// AtMost says how long something took. In the long form, on a quiet machine, it fails the test where
// that is more than was promised.
func AtMost(t testing.TB, what string, took, promised time.Duration) {
	t.Helper()
	if took <= promised {
		return
	}
	if os.Getenv("QUOTAD_TEST_LONG") == "" {
		t.Logf("%s took %s, more than %s: the machine is busy, or the promise is broken (the long form tells)", what, took, promised)
		return
	}
	t.Errorf("%s took %s, more than %s", what, took, promised)
}
