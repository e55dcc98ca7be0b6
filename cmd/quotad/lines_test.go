package main

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quotad/internal/testkit/pgtest"
)

// An outage that fails everything, each half second for five minutes: in no minute are more than twenty
// lines, each message is written once in a minute, one that comes once is written, and those that
// were left out are counted.
func TestLinesOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := new(pgtest.Log)
		log := slog.New(budgeted(slog.NewTextHandler(written, nil)))
		const length = 5 * time.Minute
		began, sent := time.Now(), 0
		say := func(level slog.Level, what string, args ...any) {
			log.Log(t.Context(), level, what, args...)
			sent++
		}
		for n := 0; time.Since(began) < length; n++ {
			for part := range 7 {
				say(slog.LevelWarn, fmt.Sprintf("part %d fails", part), "error", n)
				log.With("part", part).Info(fmt.Sprintf("part %d works again", part))
				sent++
			}
			say(slog.LevelError, "hits cannot be charged", "sqlstate", "25006")
			say(slog.LevelError, "hits cannot be charged", "sqlstate", "53100")
			say(slog.LevelWarn, fmt.Sprintf("postgres: no room for row %d", n), "severity", "ERROR", "sqlstate", "53100")
			if n == 301 {
				say(slog.LevelWarn, "the database went back")
			}
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(2 * budgetTime)
		synctest.Wait()
		all := strings.Split(strings.TrimSpace(written.String()), "\n")
		var at []time.Time
		leftOut := 0
		for _, line := range all {
			stamp, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(strings.Fields(line)[0], "time="))
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, stamp)
			if _, n, ok := strings.Cut(line, "lines_left_out="); ok {
				var more int
				if _, err := fmt.Sscan(n, &more); err != nil {
					t.Fatal(err)
				}
				leftOut += more
				sent++ // this line, too
			}
		}
		for from := range at {
			n := 0
			for _, other := range at[from:] {
				if other.Sub(at[from]) < budgetTime {
					n++
				}
			}
			if n > 20 {
				t.Fatalf("%d lines within a minute:\n%s", n, written)
			}
		}
		if len(all)+leftOut != sent || leftOut == 0 {
			t.Errorf("%d lines written and %d left out, of %d", len(all), leftOut, sent)
		}
		for text, least := range map[string]int{
			`"part 6 fails"`: 5, `"part 0 works again"`: 5, "sqlstate=25006": 5, "severity=ERROR": 5, "the database went back": 1,
		} {
			if n := written.Count(text); n < least || n > least+5 {
				t.Errorf("%s is written %d times", text, n)
			}
		}
	})
}

// Lines for debugging are not counted, nor are those of a log without its budget. However many messages
// there are, a minute has twenty lines at most, and the last one names messages that have no line.
func TestLinesBesideTheBudget(t *testing.T) {
	written := new(pgtest.Log)
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(budgeted(slog.NewTextHandler(written, &slog.HandlerOptions{Level: slog.LevelDebug})))
		for range 100 {
			log.Debug("debugging")
			log.Info("again")
			everyLine(log).Info("a step")
		}
		for i := range 100 {
			log.Info(fmt.Sprintf("other message %02d", i))
		}
		time.Sleep(budgetTime)
		synctest.Wait()
	})
	for text, want := range map[string]int{
		"debugging": 100, "msg=again": mostAgain, "a step": 100, `msg="other message`: mostLines - mostAgain,
		"lines_left_out=181": 1, "other message 22; other message 23": 0, `messages_left_out="other message 13; other message 14; `: 1,
	} {
		if n := written.Count(text); n != want {
			t.Errorf("%q is written %d times, not %d", text, n, want)
		}
	}
	plain := slog.New(slog.DiscardHandler)
	if everyLine(plain) != plain {
		t.Error("a log without a budget is another one")
	}
}
