package fastpath

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestBadHandler ends the connection of a handler that panics, or says another length than
// it writes, and nothing else.
func TestBadHandler(t *testing.T) {
	for body, logged := range map[string]string{"abort": "", "panic": "a handler's mistake", "miscount": ""} {
		t.Run(body, func(t *testing.T) {
			var text logText
			n := startNode(t, func(s *http.Server) { s.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&text, nil), slog.LevelError) })
			other := n.dial(t)
			for range 20 {
				c := n.dial(t)
				c.send(post(body))
				c.ends()
				n.until(t, http.StateClosed)
				other.ask("lives on")
			}
			if n.fast.Load() != 40 {
				t.Errorf("%d of 40 served fast", n.fast.Load())
			}
			if got := text.String(); !strings.Contains(got, logged) || logged == "" && got != "" {
				t.Errorf("logged %q, want %q", got, logged)
			}
			check(t, n.shutdown(t, patient))
		})
	}
}

// TestPanicInShutdown is not waited for any longer.
func TestPanicInShutdown(t *testing.T) {
	n := startNode(t, nil)
	idle, c := n.dial(t), n.dial(t)
	n.begins(t, c, "wait and panic")
	ended := n.beginShutdown(t, patient)
	n.sees(idle)
	close(n.release)
	c.ends()
	check(t, await(t, ended))
}

// logText is what was logged.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
