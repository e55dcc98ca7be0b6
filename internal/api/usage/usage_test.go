package usage

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotad/client"
	"quotad/internal/calendar"
	"quotad/internal/quota"
)

func micros(text string) int64 {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}

func TestUsageByLocalDay(t *testing.T) {
	t.Parallel()
	berlin, err := calendar.Location("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	asked := span{micros("2026-03-28T00:00:00+01:00"), micros("2026-03-31T00:00:00+02:00"), calendar.Day}
	starts, ok := bucketStarts(asked, berlin)
	if !ok || len(starts) != 4 {
		t.Fatalf("%d starts", len(starts))
	}
	// The 29th has 23 hours: the clock jumps.
	hours := []quota.UsageHour{
		{Start: micros("2026-03-27T23:00:00Z"), Admitted: 1},
		{Start: micros("2026-03-28T22:00:00Z"), Admitted: 2, Denied: 1},
		{Start: micros("2026-03-28T23:00:00Z"), Admitted: 4},
		{Start: micros("2026-03-29T21:00:00Z"), Admitted: 8},
		{Start: micros("2026-03-29T22:00:00Z"), Denied: 16},
	}
	points := bucketUsage(hours, starts)
	want := []client.UsagePoint{
		{UsageUnits: &client.UsageUnits{Admitted: 3, Denied: 1}},
		{UsageUnits: &client.UsageUnits{Admitted: 12}},
		{UsageUnits: &client.UsageUnits{Denied: 16}},
	}
	for i, p := range points {
		if p.Admitted != want[i].Admitted || p.Denied != want[i].Denied || p.Start.UnixMicro() != starts[i] {
			t.Errorf("point %d: %+v, want %+v", i, p, want[i])
		}
	}
}

// Counts that stop at 2⁶³−1 where they are kept do so in a sum of them, too.
func TestUsageSumsStop(t *testing.T) {
	t.Parallel()
	starts := []int64{0, 86400e6}
	for _, hours := range [][]quota.UsageHour{
		{{Start: 0, Admitted: math.MaxInt64, Denied: 1}, {Start: 3600e6, Admitted: 1, Denied: math.MaxInt64}},
		{{Start: 0, Admitted: 1 << 62, Denied: math.MaxInt64}, {Start: 3600e6, Admitted: 1 << 62, Denied: math.MaxInt64}},
	} {
		if p := bucketUsage(hours, starts)[0]; p.Admitted != math.MaxInt64 || p.Denied != math.MaxInt64 {
			t.Errorf("%+v", p)
		}
	}
	hours := []quota.UsageHour{{Admitted: math.MaxInt64 - 1}, {Admitted: 1, Denied: 0}}
	if p := bucketUsage(hours, starts)[0]; p.Admitted != math.MaxInt64 || p.Denied != 0 {
		t.Errorf("%+v", p)
	}
}

// Nothing is lost, nothing counts twice, and every hour is in its own bucket.
func TestUsageBucketsSum(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/St_Johns"}
	buckets := []func(int64, *time.Location) (int64, int64){calendar.Hour, calendar.Day, calendar.Month}
	rapid.Check(t, func(t *rapid.T) {
		zone, err := calendar.Location(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		from := rapid.Int64Range(0, 4e15).Draw(t, "from")
		asked := span{from, from + rapid.Int64Range(1, 300*86400e6).Draw(t, "length"), rapid.SampledFrom(buckets).Draw(t, "bucket")}
		starts, ok := bucketStarts(asked, zone)
		if !ok {
			t.Fatal("too many")
		}
		var hours []quota.UsageHour
		sum, start := int64(0), from
		for range rapid.IntRange(0, 50).Draw(t, "hours") {
			start, _ = calendar.Hour(start, zone)
			if start >= asked.to {
				break
			}
			hours = append(hours, quota.UsageHour{Start: start, Admitted: start / 3600e6})
			sum += start / 3600e6
			_, start = calendar.Hour(start, zone)
			start += rapid.Int64Range(0, 30*86400e6).Draw(t, "gap")
		}
		for i, p := range bucketUsage(hours, starts) {
			if p.Start.UnixMicro() != starts[i] || starts[i] >= starts[i+1] {
				t.Fatalf("bucket %d starts at %s", i, p.Start)
			}
			sum -= p.Admitted
		}
		if sum != 0 {
			t.Fatalf("%d units are lost", sum)
		}
	})
}

func TestUsagePointsAreBounded(t *testing.T) {
	t.Parallel()
	from := micros("2026-01-01T00:00:00Z")
	for hours, fits := range map[int64]bool{MaxPoints: true, MaxPoints + 1: false} {
		starts, ok := bucketStarts(span{from, from + hours*3600e6, calendar.Hour}, time.UTC)
		if ok != fits || ok && len(starts) != MaxPoints+1 {
			t.Errorf("%d hours: %v, %d starts", hours, ok, len(starts))
		}
	}
	if _, ok := bucketStarts(span{calendar.MinInstant, calendar.MaxInstant, calendar.Month}, time.UTC); ok {
		t.Error("ten thousand years of months fit")
	}
}
