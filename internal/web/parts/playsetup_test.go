package parts

import (
	"testing"
)

func TestLasting(t *testing.T) {
	for us, want := range map[int64]string{
		0: "0 µs", 1: "1 µs", 999: "999 µs", 1000: "1 ms", 1001: "2 ms", 999_001: "1000 ms", 1e6: "1 s", 59_000_001: "60 s", 60e6: "1 min", 61e6: "1 min 1 s",
		3600e6: "1 h", 5025e6: "1 h 24 min", 86400e6: "1 d", 90000e6: "1 d 1 h",
	} {
		if got := lasting(us); got != want {
			t.Errorf("%d µs is %q, want %q", us, got, want)
		}
	}
	for at, want := range map[int64]string{0: "0:00", 90e6: "1:30", 7200e6: "120:00"} {
		if got := into(at, 7200e6); got != want {
			t.Errorf("%d is %q, want %q", at, got, want)
		}
	}
	for us, want := range map[int64]string{0: "0", 1e6: "1", 1_500_000: "1.5", 1: "0.000001"} {
		if got := seconds(us); got != want {
			t.Errorf("%d is %q", us, got)
		}
		if back, ok := readSeconds(want); !ok || back != us {
			t.Errorf("%s is read as %d", want, back)
		}
	}
}

// An instant is said to the millisecond, so that what is said of it twice agrees.
func TestInstantsOfPlaysAreExact(t *testing.T) {
	for us, says := range map[int64]string{
		0: "0.000 s", 2_500_000: "2.500 s", 3_217_001: "3.218 s", 59_999_999: "1:00.000 min", 75_000_000: "1:15.000 min", 90_061_500_000: "25:01:01.500 h",
	} {
		if got := Exactly(us); got != says {
			t.Errorf("%d µs are %q, not %q", us, got, says)
		}
	}
}
