package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// The log of an outage must not hide its cause under thousands of lines, nor fill the disk. So no
// minute has more than twenty lines. An outage has some ten messages. So each is written once in a minute,
// and few are written again.
const (
	budgetTime = time.Minute
	// mostAgain is how many lines of a minute may have been written when a message that was written
	// in that minute is written again.
	mostAgain = 6
	// mostLines bounds the lines of a minute, beside the one that says what was left out.
	mostLines = 19
	// mostNamed bounds the messages that this one names.
	mostNamed = 10
)

// lines is a handler that writes no more lines than that. Lines for debugging are not counted.
type lines struct {
	slog.Handler
	budget *lineBudget
}

// lineBudget is what a handler and those that were made from it share.
type lineBudget struct {
	told slog.Handler // is told how many lines were left out

	mu      sync.Mutex
	written []writtenLine // within budgetTime, the oldest first
	leftOut int
	unseen  []string // messages left out that the minute before has no line of
}

type writtenLine struct {
	at   time.Time
	what string
}

// budgeted is a handler in front of another one.
func budgeted(to slog.Handler) slog.Handler {
	return lines{to, &lineBudget{told: to}}
}

// everyLine is the same log without its budget: for what ends by itself, as the steps of a start.
func everyLine(log *slog.Logger) *slog.Logger {
	if l, ok := log.Handler().(lines); ok {
		return slog.New(l.Handler)
	}
	return log
}

// Handle implements slog.Handler.
func (l lines) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo && !l.budget.take(r) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lines{l.Handler.WithAttrs(attrs), l.budget}
}

// WithGroup implements slog.Handler.
func (l lines) WithGroup(name string) slog.Handler {
	return lines{l.Handler.WithGroup(name), l.budget}
}

// take reports whether a line may be written, and notes it.
func (b *lineBudget) take(r slog.Record) bool {
	what := whatOf(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.written) > 0 && r.Time.Sub(b.written[0].at) >= budgetTime {
		b.written = b.written[1:]
	}
	again := false
	for _, w := range b.written {
		again = again || w.what == what
	}
	if again && len(b.written) >= mostAgain || len(b.written) >= mostLines {
		if b.leftOut++; b.leftOut == 1 {
			time.AfterFunc(budgetTime, b.tell)
		}
		if !again && len(b.unseen) < mostNamed && !slices.Contains(b.unseen, r.Message) {
			b.unseen = append(b.unseen, r.Message)
		}
		return false
	}
	b.written = append(b.written, writtenLine{r.Time, what})
	return true
}

// whatOf is what lines of one message have in common: its text, and a SQLSTATE. A text of the
// embedded server may name files and rows, so its SQLSTATE alone tells its lines apart.
func whatOf(r slog.Record) string {
	state, server := "", false
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "sqlstate":
			state = a.Value.String()
		case "severity":
			server = true
		}
		return true
	})
	if server {
		return state
	}
	return r.Message + state
}

// tell writes how many lines were left out since the last time, and the messages without a line.
func (b *lineBudget) tell() {
	b.mu.Lock()
	n, unseen := b.leftOut, b.unseen
	b.leftOut, b.unseen = 0, nil
	b.mu.Unlock()
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "lines like those before were left out of this log", 0)
	r.AddAttrs(slog.Int("lines_left_out", n))
	if len(unseen) > 0 {
		r.AddAttrs(slog.String("messages_left_out", strings.Join(unseen, "; ")))
	}
	_ = b.told.Handle(context.Background(), r) // a log that cannot be written to cannot be told so
}
