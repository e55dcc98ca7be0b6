package api

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/hits"
	"quotad/internal/calendar"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// A recount is usage counted by what a wall clock on the customer's desk shows.
type recount map[string][2]int64 // admitted, denied

func (c recount) add(label string, admitted, denied int64) {
	sum := c[label]
	c[label] = [2]int64{sum[0] + admitted, sum[1] + denied}
}

// wallClock is the part of what it shows that makes an hour, a day or a month. An hour
// that comes twice differs by its offset.
var wallClock = map[string]string{"hour": "2006-01-02 15 -07:00", "day": "2006-01-02", "month": "2006-01"}

// TestUsageInTheCustomersZone: usage by hour, day and month is that of a naive recount,
// in zones off the hour and around both kinds of clock change.
func TestUsageInTheCustomersZone(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(`{"name":"some","meter":"requests","algorithm":"fixed_window","limit":40,"window":"1h"}`)
	for i, c := range []struct{ zone, around string }{
		{"Asia/Kolkata", "2026-02-28T18:30:00Z"},        // +05:30, a month's end
		{"Asia/Kathmandu", "2026-02-28T18:15:00Z"},      // +05:45
		{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"}, // half an hour comes twice
		{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"}, // half an hour is left out
		{"America/New_York", "2026-03-08T07:00:00Z"},    // an hour is left out
		{"America/New_York", "2026-11-01T06:00:00Z"},    // an hour comes twice
		{"Africa/Cairo", "2026-04-23T22:00:00Z"},        // a day begins at one o'clock
		{"America/Havana", "2026-11-01T05:00:00Z"},      // midnight comes twice
		{"Pacific/Kiritimati", "2026-12-31T10:00:00Z"},  // +14:00, a year's end
	} {
		t.Run(c.zone+" "+c.around, func(t *testing.T) {
			around, err := time.Parse(time.RFC3339, c.around)
			check(t, err)
			zone, err := calendar.Location(c.zone)
			check(t, err)
			z := &zoneTest{node: n, name: fmt.Sprintf("zone-%d", i), zone: zone, random: rand.New(rand.NewPCG(20261120, uint64(i)))}
			z.run(t, around)
		})
	}
}

type zoneTest struct {
	*node
	name   string
	zone   *time.Location
	random *rand.Rand
	counts map[string]recount
}

// run hits around an instant, half of the time within three hours of it.
func (z *zoneTest) run(t *testing.T, around time.Time) {
	var instants []time.Time
	for i := range quotatest.Sized(30, 60, 240) {
		within := 30 * time.Hour
		if i%2 == 0 {
			within = 3 * time.Hour
		}
		instants = append(instants, around.Add(time.Duration(z.random.Int64N(int64(2*within)))-within).Truncate(time.Microsecond))
	}
	instants = append(instants, around, around.Add(-time.Microsecond))
	slices.SortFunc(instants, time.Time.Compare)
	z.counts = map[string]recount{"hour": {}, "day": {}, "month": {}}
	for i, at := range instants {
		z.hitAt(t, i == 0, at)
	}
	from, to := instants[0], instants[len(instants)-1].Add(time.Microsecond)
	for granularity, want := range z.counts {
		z.compare(t, granularity, from, to, want)
	}
}

func (z *zoneTest) hitAt(t *testing.T, first bool, at time.Time) {
	set := z.do("PUT", "/v1/test-clocks/"+z.name, `{"now":"`+at.UTC().Format(time.RFC3339Nano)+`"}`)
	if set.status != 200 && set.status != 201 {
		t.Fatal(set.text)
	}
	if first {
		z.want(201, "PUT", "/v1/customers/"+z.name, fmt.Sprintf(`{"name":"Z","plan":"pro","timezone":%q,"test_clock":%q}`, z.zone, z.name))
	}
	cost := 1 + z.random.Int64N(20)
	got := z.do("POST", hits.Pattern, fmt.Sprintf(`{"customer":%q,"meter":"requests","cost":%d}`, z.name, cost))
	admitted, denied := cost, int64(0)
	if got.status == 429 {
		admitted, denied = 0, cost
	} else if got.status != 200 {
		t.Fatal(got.text)
	}
	for granularity, count := range z.counts {
		count.add(at.In(z.zone).Format(wallClock[granularity]), admitted, denied)
	}
}

// compare asks again while the statistic of what was denied is not written yet.
func (z *zoneTest) compare(t *testing.T, granularity string, from, to time.Time, want recount) {
	query := url.Values{
		"meter": {"requests"}, "granularity": {granularity}, "from": {from.UTC().Format(time.RFC3339Nano)},
		"to": {to.UTC().Format(time.RFC3339Nano)},
	}
	last := ""
	testkit.Eventually(t, "the usage by "+granularity, func() bool {
		got := z.want(200, "GET", "/v1/customers/"+z.name+"/usage?"+query.Encode(), "")
		wrong := z.differences(got, granularity, want)
		if wrong != last && wrong != "" {
			t.Logf("by %s, so far: %s", granularity, wrong)
		}
		last = wrong
		return wrong == ""
	})
}

func (z *zoneTest) differences(got reply, granularity string, want recount) string {
	var wrong []string
	seen := recount{}
	last := ""
	for _, p := range got.json["points"].([]any) {
		p := p.(map[string]any)
		start, err := time.Parse(time.RFC3339Nano, p["start"].(string))
		check(z.t, err)
		label := start.In(z.zone).Format(wallClock[granularity])
		if label == last {
			wrong = append(wrong, label+" is there twice")
		}
		last = label
		seen.add(label, int64(p["admitted"].(float64)), int64(p["denied"].(float64)))
	}
	for label, sum := range want {
		if seen[label] != sum {
			wrong = append(wrong, fmt.Sprintf("%s: %v, want %v", label, seen[label], sum))
		}
		delete(seen, label)
	}
	for label, sum := range seen {
		if sum != [2]int64{} {
			wrong = append(wrong, fmt.Sprintf("%s: %v, want nothing", label, sum))
		}
	}
	return strings.Join(wrong, "; ")
}
