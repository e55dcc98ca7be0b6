package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// In an outage, the log must neither hide the cause under thousands of lines nor fill the disk. Therefore a
// minute has at most twenty lines. An outage has about ten different messages, so each of them is written once
// in a minute, and few are repeated.
const (
	budgetTime = time.Minute
	// mostAgain is the number of lines in a minute from which a message is no longer repeated in that minute.
	mostAgain = 6
	// mostLines is the maximum number of lines in a minute, in addition to the line about omitted messages.
	mostLines = 19
	// mostNamed is the maximum number of messages that the line about omitted messages names.
	mostNamed = 10
)

// lines is a handler that writes at most this number of lines. Debug lines are not counted.
type lines struct {
	slog.Handler
	budget *lineBudget
}

// lineBudget is the state that a handler shares with the handlers that are derived from it.
type lineBudget struct {
	told slog.Handler // handler for the line about omitted messages

	mu      sync.Mutex
	written []writtenLine // lines within budgetTime, the oldest first
	leftOut int
	unseen  []string // omitted messages without a line in the last minute
}

type writtenLine struct {
	at   time.Time
	what string
}

// budgeted returns a handler that limits the lines of another handler.
func budgeted(to slog.Handler) slog.Handler {
	return lines{to, &lineBudget{told: to}}
}

// everyLine returns the same log without a limit, for messages that end by themselves, such as the steps of a
// start.
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

// take reports whether a line may be written, and records it.
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

// whatOf returns the common part of all lines with the same message: its text and a SQLSTATE. A text of the
// embedded server may contain files and rows, so only its SQLSTATE identifies the message.
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

// tell writes the number of lines that were omitted since the last report, and the messages that were omitted
// completely.
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
	_ = b.told.Handle(context.Background(), r) // an error of the log cannot be logged
}
