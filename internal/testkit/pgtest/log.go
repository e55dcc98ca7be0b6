package pgtest

import (
	"strings"
	"sync"
)

// Log is a log that can be read while it is written.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends to the log.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// Count says how often the log has a text.
func (l *Log) Count(what string) int { return strings.Count(l.String(), what) }

// String is the whole log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
