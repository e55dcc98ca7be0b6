package faults

import (
	"regexp"
	"testing"
	"time"
)

// outageLines is how many lines a node may log in a minute of an outage.
const outageLines = 20

// logLine finds the instant and the message of a line of quotad's log.
var logLine = regexp.MustCompile(`^time=(\S+) level=\S+ msg=("(?:[^"\\]|\\.)*"|\S+)`)

// mostInAMinute is the most lines that were logged within a minute, by their own times.
func mostInAMinute(t testing.TB, lines []string) (most int) {
	t.Helper()
	var at []time.Time
	for _, line := range lines {
		found := logLine.FindStringSubmatch(line)
		if found == nil {
			continue // the rest of a message
		}
		stamp, err := time.Parse(time.RFC3339Nano, found[1])
		if err != nil {
			t.Fatalf("%q has no time: %v", line, err)
		}
		at = append(at, stamp)
	}
	for i, first := 0, 0; i < len(at); i++ {
		for at[i].Sub(at[first]) >= time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// kindsOf is how many messages there are among lines.
func kindsOf(lines []string) int {
	kinds := map[string]bool{}
	for _, line := range lines {
		if found := logLine.FindStringSubmatch(line); found != nil {
			kinds[found[2]] = true
		}
	}
	return len(kinds)
}

func TestLogLines(t *testing.T) {
	lines := []string{
		`time=2026-01-01T00:00:00.000Z level=WARN msg="it fails \"again\"" error=1`,
		`time=2026-01-01T00:00:59.999Z level=WARN msg="it fails \"again\"" error=2`,
		`time=2026-01-01T00:01:00.000Z level=INFO msg=serving url=x`,
		`more of that`,
		`time=2026-01-01T00:01:00.000Z level=INFO msg=stopping`,
	}
	if most, kinds := mostInAMinute(t, lines), kindsOf(lines); most != 3 || kinds != 3 {
		t.Errorf("%d lines in a minute, of %d kinds", most, kinds)
	}
}
