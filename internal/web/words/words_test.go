package words

import (
	"math"
	"testing"
	"time"
)

func TestSized(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 9_999: "9.9 kB", 10_000: "10 kB", 999_999: "999 kB", 1_000_000: "1.0 MB",
		734_003_200: "734 MB", 2_150_000_000: "2.1 GB", 3e12: "3.0 TB", 4e15: "4.0 PB", math.MaxInt64: "9.2 EB",
	} {
		if got := Sized(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestLasted(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 seconds", 0: "0 seconds", time.Second: "1 second", 119 * time.Second: "119 seconds", 2 * time.Minute: "2 minutes",
		119 * time.Minute: "119 minutes", 2 * time.Hour: "2 hours", 47 * time.Hour: "47 hours", 48 * time.Hour: "2 days", 1000 * time.Hour: "41 days",
	} {
		if got := Lasted(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

func TestShareOf(t *testing.T) {
	for of, want := range map[[2]int64]string{
		{0, 0}: "–", {0, 7}: "0.0 %", {1, 3}: "33.3 %", {999, 1000}: "99.9 %", {5, 5}: "100.0 %", {math.MaxInt64 / 2, math.MaxInt64}: "49.9 %",
	} {
		if got := ShareOf(of[0], of[1]); got != want {
			t.Errorf("%d of %d: %q, want %q", of[0], of[1], got, want)
		}
	}
}
