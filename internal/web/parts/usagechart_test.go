package parts

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotad/client"
	"quotad/internal/calendar"
)

var drawnText = regexp.MustCompile(`<text class="(tick|tick minor|limit-label)" x="([0-9.]+)%?" y="\d+" text-anchor="(start|middle|end)">([^<]+)</text>`)

// A span is what a text takes across, in pixels.
type textSpan struct {
	text        string
	left, right float64
}

func spansOf(drawn, class string, plot float64) (all []textSpan) {
	const letterWidth = tickLetter / 10.0
	for _, m := range drawnText.FindAllStringSubmatch(drawn, -1) {
		if m[1] != "tick" && m[1] != class {
			continue
		}
		at, _ := strconv.ParseFloat(m[2], 64)
		s := textSpan{text: m[4], left: at / 100 * plot}
		width := letterWidth * float64(len(m[4]))
		s.left -= map[string]float64{"start": 0, "middle": width / 2, "end": width}[m[3]]
		s.right = s.left + width
		all = append(all, s)
	}
	return all
}

// Labels below a chart never touch each other, however many bars there are and wherever they begin.
func TestChartLabelsAreApart(t *testing.T) {
	zone, err := calendar.Location("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		step string
		ns   []int
		next func(time.Time) time.Time
	}{
		{"hour", []int{1, 24, 48, 72, 96, 100, 168, 192, 300, 400}, func(at time.Time) time.Time { return at.Add(time.Hour) }},
		{"day", []int{1, 2, 5, 7, 12, 30, 31, 90, 366, 400}, func(at time.Time) time.Time { return at.AddDate(0, 0, 1) }},
		{"month", []int{1, 2, 6, 11, 12, 13, 24, 25, 36, 100}, func(at time.Time) time.Time { return at.AddDate(0, 1, 0) }},
	} {
		for _, n := range c.ns {
			for begin := range 26 {
				chart := usageChart{step: c.step, zone: zone, now: time.Date(2030, 1, 1, 0, 0, 0, 0, zone)}
				at := map[string]time.Time{
					"hour": time.Date(2026, 3, 20, 0, 0, 0, 0, zone).Add(time.Duration(begin*7) * time.Hour), "day": time.Date(2026, 1, 20+begin, 0, 0, 0, 0, zone),
					"month": time.Date(2024, time.Month(1+begin), 1, 0, 0, 0, 0, zone),
				}[c.step]
				for range n {
					chart.points = append(chart.points, client.UsagePoint{Start: at, UsageUnits: &client.UsageUnits{Admitted: 1}})
					at = c.next(at)
				}
				drawn := string(chart.html())
				for class, plot := range map[string]float64{"tick": narrowPlot / 10, "tick minor": broadPlot / 10} {
					all := spansOf(drawn, class, plot)
					slices.SortFunc(all, func(a, b textSpan) int { return cmp.Compare(a.left, b.left) })
					if c.step != "hour" && len(all) == 0 || len(all) > 0 && all[len(all)-1].right > plot && n > 1 {
						t.Errorf("%d %ss from %s, %.0f px: the labels are %v", n, c.step, chart.points[0].Start.Format(time.DateTime), plot, all)
					}
					for i := 1; i < len(all); i++ {
						if all[i].left < all[i-1].right {
							t.Errorf("%d %ss from %s, %.0f px: %q touches %q", n, c.step, chart.points[0].Start.Format(time.DateTime), plot, all[i-1].text, all[i].text)
						}
					}
				}
			}
		}
	}
}

// The limit's label stands where no bar is taller than the limit, on the narrowest page too.
func TestLimitLabelIsOverNoBar(t *testing.T) {
	const limit = 5000
	for name, c := range map[string]struct {
		tall   []int
		anchor string
	}{
		"none": {nil, "end"}, "the last": {[]int{47}, "start"}, "one near the end": {[]int{40}, "start"}, "one at the beginning": {[]int{0}, "end"},
		"both ends": {[]int{2, 46}, ""}, "in the middle": {[]int{24}, "end"},
	} {
		chart := usageChart{step: "hour", zone: time.UTC, limit: limit}
		for i := range 48 {
			chart.points = append(chart.points, client.UsagePoint{Start: time.Unix(int64(i)*3600, 0), UsageUnits: &client.UsageUnits{Admitted: limit}})
		}
		for _, i := range c.tall {
			chart.points[i].Denied = 1
		}
		got := ""
		for _, m := range drawnText.FindAllStringSubmatch(string(chart.html()), -1) {
			if m[1] == "limit-label" {
				got = m[3]
			}
		}
		if got != c.anchor {
			t.Errorf("%s: the label is at %q, not %q", name, got, c.anchor)
		}
		for _, s := range spansOf(string(chart.html()), "limit-label", narrowPlot/10) {
			for _, i := range c.tall {
				if left, right := float64(i)*narrowPlot/480, float64(i+1)*narrowPlot/480; s.text == "limit 5,000" && left < s.right && right > s.left {
					t.Errorf("%s: the label is over bar %d", name, i)
				}
			}
		}
	}
}

// What is held is a line, with a step where it changed, that ends with the point that holds now. Nothing is a
// bar, also on the days of changes.
func TestHeldIsALine(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	chart := usageChart{step: "day", zone: time.UTC, now: day(4).Add(time.Hour)}
	for i, p := range []client.UsageLevel{{Last: 3, Peak: 3}, {Last: 3, Peak: 3}, {Last: 1, Peak: 5}, {Last: 1, Peak: 1}, {}} {
		chart.points = append(chart.points, client.UsagePoint{Start: day(1 + i), UsageLevel: &p})
	}
	drawn := string(chart.html())
	for what, want := range map[string]int{
		`class="held" x="`:  4 + 3, // a line for each day until now, and what joins each with the day before
		`class="held peak"`: 1,
		`class="admitted`:   0,
	} {
		if got := strings.Count(drawn, what); got != want {
			t.Errorf("%d of %s, not %d: %s", got, what, want, drawn)
		}
	}
	// 3 falls to 1 on the third day: there the join is as high as two units, and elsewhere as the line.
	high := 0
	for _, m := range regexp.MustCompile(`class="held" x="([^"]*)" width="2" y="\d+" height="(\d+)"`).FindAllStringSubmatch(drawn, -1) {
		if m[2] != "2" {
			if high++; m[1] != "40.000%" {
				t.Errorf("a step at %s", m[1])
			}
		}
	}
	if high != 1 {
		t.Errorf("%d steps: %s", high, drawn)
	}
}
