package embedded

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

func TestTroubleGrowsAndEnds(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tr := trouble{giveUpAfter: time.Minute, readyAt: now}
	now = now.Add(time.Hour)
	if pause, ok := tr.next(now); pause != 0 || !ok {
		t.Fatalf("the first restart waits %v, %v", pause, ok)
	}
	var last time.Duration
	for ok := true; ok; {
		var pause time.Duration
		if pause, ok = tr.next(now); ok && (pause < last || pause < firstBackoff || pause > maxBackoff) {
			t.Fatalf("pause %v after %v", pause, last)
		}
		last = pause
		// A server that comes up for moments only does not end the trouble.
		tr.readyAt = now
		now = now.Add(pause + time.Second)
	}
	if end := now.Sub(tr.since); end < time.Minute || end > 2*time.Minute {
		t.Errorf("given up after %v", end)
	}
	tr.readyAt = now
	if pause, ok := tr.next(now.Add(stableAfter)); pause != 0 || !ok {
		t.Errorf("after a good time: %v, %v", pause, ok)
	}
}

func TestServerLogLevels(t *testing.T) {
	var buffer bytes.Buffer
	log := slog.New(slog.NewTextHandler(&buffer, nil)) // from info on
	for line, want := range map[string]string{
		"00000 LOG:  database system is ready to accept connections":                "",
		"23505 ERROR:  duplicate key value violates unique constraint":              "",
		"00000 LOG:  server process (PID 7) was terminated by signal 9: Killed":     "level=ERROR",
		"XX001 PANIC:  could not locate a valid checkpoint record":                  "level=ERROR",
		"53100 ERROR:  could not extend file \"base/1/2\": No space left on device": "level=WARN",
		"58030 ERROR:  could not read block 7":                                      "level=WARN",
		"53300 FATAL:  sorry, too many clients already":                             "level=WARN",
		"28000 FATAL:  role \"nobody\" does not exist":                              "level=INFO",
		"53100 DETAIL:  more of it":                                                 "",
		"01000 WARNING:  something":                                                 "level=WARN",
		"postgres: could not find the database system":                              "",
		"": "",
	} {
		buffer.Reset()
		forward(log, line, loud)
		if got := buffer.String(); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q was logged as %q", line, got)
		}
	}
}

// What a failed start has to say is in its error, and is said once; that sessions end
// with their server is said to nobody. What dies later is.
func TestHush(t *testing.T) {
	e := &Server{}
	if !e.hush("FATAL", "XX000") || !e.hush("LOG", "00000") || e.hush("WARNING", "01000") {
		t.Error("before it is ready")
	}
	e.pid.Store(7)
	if e.hush("FATAL", "57P01") || e.hush("PANIC", "XX001") {
		t.Error("while it runs")
	}
	ctx := t.Context()
	e.stopBy.Store(&ctx)
	if !e.hush("FATAL", "57P01") || e.hush("PANIC", "XX001") {
		t.Error("while it is stopped")
	}
}

func TestRemedy(t *testing.T) {
	err := withRemedy(errors.New(`FATAL:  could not open shared memory segment "/PostgreSQL.1": Permission denied`))
	if !strings.Contains(err.Error(), "/dev/shm") || strings.Contains(withRemedy(errStillInUse).Error(), "/dev/shm") {
		t.Error(err)
	}
}

func loud(_, _ string) bool { return false }

func TestServerLogKeepsTheLastWords(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close() // held open to the end, as by a backend that lives on
	l := readServerLog(read, slog.New(slog.DiscardHandler), loud)
	long := strings.Repeat("x", 3*maxLine)
	if _, err := write.WriteString(strings.Repeat("early\n", 100) + long + "\nlast\n"); err != nil {
		t.Fatal(err)
	}
	words := strings.Split(l.close(), "\n")
	if len(words) != keptLines || words[keptLines-1] != "last" || len(words[keptLines-2]) != maxLine {
		t.Errorf("kept %d lines, the last %q", len(words), words[len(words)-1])
	}
}
