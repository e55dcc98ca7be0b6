package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// The log of an outage must neither hide the cause under thousands of lines nor fill the disk. Therefore a
// minute has at most twenty lines. An outage has about ten different messages, so each message is written once a
// minute, and few are repeated.
const (
	budgetTime = time.Minute
	// mostAgain is the number of lines in a minute from which on a message is not repeated.
	mostAgain = 6
	// mostLines is the maximum number of lines in a minute, not counting the line that reports the omitted
	// lines.
	mostLines = 19
	// mostNamed is the maximum number of messages that the report of omitted lines names.
	mostNamed = 10
)

// lines is a handler that limits the number of lines in a minute. Debug lines are not limited.
type lines struct {
	slog.Handler
	budget *lineBudget
}

// lineBudget is the state that a handler shares with the handlers derived from it.
type lineBudget struct {
	told slog.Handler // receives the reports of omitted lines

	mu      sync.Mutex
	written []writtenLine // within the last budgetTime, oldest first
	leftOut int
	unseen  []string // omitted messages without a line in the minute before
}

type writtenLine struct {
	at   time.Time
	what string
}

// budgeted returns a handler that limits the lines written to another handler.
func budgeted(to slog.Handler) slog.Handler {
	return lines{to, &lineBudget{told: to}}
}

// everyLine returns the same log without a limit, for messages whose number is bounded anyway, such as the steps
// of a start.
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

// take reports whether a line may be written, and counts the line.
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

// whatOf returns the text that identifies lines of one message: the message and a SQLSTATE. Messages of the
// embedded server may name files and rows, so the SQLSTATE alone identifies them.
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

// tell logs the number of lines that were omitted since the last report, and the messages of which no line was
// written.
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
	_ = b.told.Handle(context.Background(), r) // if the log cannot be written, there is nowhere to report the error
}
