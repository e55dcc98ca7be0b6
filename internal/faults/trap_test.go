package faults

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// trap waits for a statement on its way to PostgreSQL, or for the commit that follows it on its
// connection. It holds that back, or the answer to it, until it is let go.
type trap struct {
	statement string // a part of its text
	commit    bool   // what is meant is the commit after it
	answer    bool   // the answer is held back, so that it was done

	seen    atomic.Pointer[link] // has sent the statement whose commit is meant
	asked   atomic.Pointer[link] // has sent what is meant
	reached chan struct{}
	over    chan struct{}
}

func newTrap(statement string, commit, answer bool) *trap {
	return &trap{statement: statement, commit: commit, answer: answer, reached: make(chan struct{}), over: make(chan struct{})}
}

// asks sees what a client says.
func (t *trap) asks(l *link, b []byte) {
	meant := l.p.statements.in(b, t.statement)
	if t.commit {
		if meant {
			t.seen.CompareAndSwap(nil, l)
		}
		meant = t.seen.Load() == l && bytes.Contains(b, []byte("commit\x00"))
	}
	if meant && t.asked.CompareAndSwap(nil, l) && !t.answer {
		t.hold(l)
	}
}

// answers sees that the server speaks.
func (t *trap) answers(l *link) {
	if t.answer && t.asked.Load() == l {
		t.asked.Store(new(link)) // once
		t.hold(l)
	}
}

func (t *trap) hold(l *link) {
	close(t.reached)
	select {
	case <-t.over:
	case <-l.p.closing:
	}
}

// firstReached waits until a node came to its trap, and says which.
func firstReached(t testing.TB, what string, traps []*trap) (first int) {
	t.Helper()
	came, over := make(chan int, len(traps)), make(chan struct{})
	defer close(over)
	for i, trap := range traps {
		go func() {
			select {
			case <-trap.reached:
				came <- i
			case <-over:
			}
		}()
	}
	select {
	case first = <-came:
	case <-time.After(testkit.Patience):
		t.Fatalf("%s: no node came there", what)
	}
	return first
}

// statements knows what the server was told to prepare, by the names that statements have after
// their texts.
type statements struct {
	mu    sync.Mutex
	named map[string]string
}

const preparedName = "stmtcache_"

// learn finds statements that are prepared.
func (s *statements) learn(b []byte) {
	for rest := b; ; {
		at := bytes.Index(rest, []byte(preparedName))
		if at < 0 {
			return
		}
		message := at >= 5 && rest[at-5] == 'P'
		rest = rest[at:]
		name, behind, whole := bytes.Cut(rest, []byte{0})
		if text, _, ended := bytes.Cut(behind, []byte{0}); message && whole && ended {
			s.mu.Lock()
			if s.named == nil {
				s.named = make(map[string]string)
			}
			s.named[string(name)] = string(text)
			s.mu.Unlock()
		}
		rest = rest[len(preparedName):]
	}
}

// in reports whether a statement of a text, or one of an engine's session by its name, is executed by what a
// client says.
func (s *statements) in(b []byte, text string) bool {
	if bytes.Contains(b, []byte("\x00"+text+"\x00")) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, statement := range s.named {
		if strings.Contains(statement, text) && bytes.Contains(b, []byte("\x00"+name+"\x00")) {
			return true
		}
	}
	return false
}
