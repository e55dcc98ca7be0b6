package embedded

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// logPrefix is the log_line_prefix of the server: the SQLSTATE of each message.
	logPrefix = "%e "
	keptLines = 20      // the number of last messages that are kept
	maxLine   = 8 << 10 // bytes; the rest of a longer line is dropped
)

// serverLog passes the server's messages to slog and keeps the last messages. It writes nothing to the disk, so
// no log files must be rotated.
type serverLog struct {
	pipe *os.File
	done chan struct{}

	mu   sync.Mutex
	last []string
}

// readServerLog reads pipe until the server and all its children have closed it. If hush returns true for a
// message, the message is logged only at the debug level.
func readServerLog(pipe *os.File, log *slog.Logger, hush func(severity, sqlstate string) bool) *serverLog {
	l := &serverLog{pipe: pipe, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		reader := bufio.NewReaderSize(pipe, maxLine)
		for {
			line, isPrefix, err := reader.ReadLine()
			if err != nil {
				return
			}
			text := string(line)
			for isPrefix && err == nil {
				_, isPrefix, err = reader.ReadLine()
			}
			l.keep(text)
			forward(log, text, hush)
		}
	}()
	return l
}

func (l *serverLog) keep(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) == keptLines {
		l.last = append(l.last[:0], l.last[1:]...)
	}
	l.last = append(l.last, line)
}

// lastWordsWait is the time for which close waits for messages in transit, because backends that outlive a
// killed postmaster keep the pipe open. The wait is short, because it delays the next start and thereby every
// hit.
const lastWordsWait = 200 * time.Millisecond

// close stops reading and returns the server's last messages.
func (l *serverLog) close() string {
	_ = l.pipe.SetReadDeadline(time.Now().Add(lastWordsWait))
	<-l.done
	_ = l.pipe.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "\n")
}

// forward logs one line of the server. An ERROR is the response to a statement and is handled by its sender. A
// FATAL ends one connection. Higher levels are for errors of the server itself: a PANIC or a crashed process.
// They are also for failures of the machine: a lack of memory, disk space or connections, and errors of the
// operating system.
func forward(log *slog.Logger, line string, hush func(severity, sqlstate string) bool) {
	state, rest, ok := strings.Cut(line, " ")
	severity, message, ok2 := strings.Cut(rest, ":  ")
	if !ok || !ok2 || len(state) != 5 {
		log.Debug("postgres: " + strings.TrimSpace(line))
		return
	}
	level := slog.LevelDebug
	switch severity {
	case "WARNING":
		level = slog.LevelWarn
	case "FATAL":
		level = slog.LevelInfo
	case "PANIC":
		level = slog.LevelError
	case "LOG":
		if strings.Contains(message, "terminated by signal") || strings.Contains(message, "terminated abnormally") {
			level = slog.LevelError
		}
	}
	if class := state[:2]; level < slog.LevelWarn && (class == "53" || class == "58") && (severity == "ERROR" || severity == "FATAL") {
		level = slog.LevelWarn
	}
	if hush(severity, state) {
		level = slog.LevelDebug
	}
	log.Log(context.Background(), level, "postgres: "+message, "severity", severity, "sqlstate", state)
}
