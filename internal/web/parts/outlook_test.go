package parts

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"quotad/internal/calendar"
	"quotad/internal/web/page"
)

// TestPaceOfAMonth: the pace of a window counts from where the API says that the window began. A
// month before its end would be 71 hours later here: March has no 31st day a month before April.
func TestPaceOfAMonth(t *testing.T) {
	var s Standing
	if err := json.Unmarshal([]byte(`{"at":"2026-03-31T11:00:00Z","limits":[
		{"name":"month","algorithm":"fixed_window","limit":1000,"used":500,"remaining":500,"reset_at":"2026-03-31T22:00:00Z",
		 "window":"calendar_month","window_start":"2026-02-28T23:00:00Z"},
		{"name":"first","algorithm":"fixed_window","limit":1000,"used":0,"remaining":1000,"reset_at":"2026-03-31T11:00:00Z",
		 "window":"7d","window_start":null}]}`), &s.Quota); err != nil {
		t.Fatal(err)
	}
	v := &page.Visit{}
	got, ok := s.pace(v, &s.Quota.Limits[0])
	if since := time.Duration(got.micros) * time.Microsecond; !ok || got.units != 500 || since != (30*24+12)*time.Hour {
		t.Errorf("%d units in %s", got.units, since)
	}
	if got, ok := s.pace(v, &s.Quota.Limits[1]); ok {
		t.Errorf("a window that does not run has a pace: %+v", got)
	}
}

// TestDaysThatBeginLate: in São Paulo 2018-11-04 began at one, for the clocks left midnight out.
func TestDaysThatBeginLate(t *testing.T) {
	zone, err := calendar.Location("America/Sao_Paulo")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	asked := url.Values{"from": {"2018-11-04"}, "to": {"2018-11-04"}}
	a, wrong := readUsage(asked, []string{"requests"}, at("2018-12-01T00:00:00Z"), zone)
	if len(wrong) > 0 || !a.start.Equal(at("2018-11-04T03:00:00Z")) || !a.end.Equal(at("2018-11-05T02:00:00Z")) || a.step != "hour" {
		t.Errorf("%+v %v", a, wrong)
	}
	a, _ = readUsage(url.Values{"range": {"7d"}}, []string{"requests"}, at("2018-11-10T12:00:00Z"), zone)
	if !a.start.Equal(at("2018-11-04T03:00:00Z")) {
		t.Errorf("the last seven days begin at %s", a.start)
	}
	a, _ = readUsage(url.Values{"range": {"12mo"}}, []string{"requests"}, at("2018-11-10T12:00:00Z"), zone)
	if !a.start.Equal(at("2017-12-01T02:00:00Z")) {
		t.Errorf("the last twelve months begin at %s", a.start)
	}
}
