package parts

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"quotad/client"
	"quotad/internal/calendar"
	"quotad/internal/quota/model"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// UsageData is a meter's usage over time, as a chart and as a table.
type UsageData struct {
	Here   string // the page's path; its address contains the whole query
	Meter  string
	Title  string
	Unit   string
	Meters []Choice
	Ranges []Choice
	From   string // first day of a custom range, as typed
	To     string
	By     string
	Steps  []Choice
	Wrong  map[string]string // errors by field
	Own    bool

	Archived          string // day before which usage no longer exists
	Admitted, Refused int64
	Level             bool // the meter is a level meter
	Held              bool // the level was above 0 at some time of the range
	Points            int
	Chart             template.HTML
	Limit             int64
	Rows              []usageRow
	CSV               string
	More              string // address of the full page
}

type usageRow struct {
	Start             string
	Admitted, Refused int64
	Last, Peak        int64 // levels, of a level meter only
	Average           string
}

// Day returns the HTML input type of a field with a day. The type depends on the field because browsers do not
// display an invalid value in a date input.
func (d *UsageData) Day(field string) string {
	if d.Wrong[field] != "" {
		return "text"
	}
	return "date"
}

// A usageRange is a predefined time range that a page offers as a link.
type usageRange struct {
	name, text, step string
	from             func(now time.Time, zone *time.Location) time.Time
}

var usageRanges = []usageRange{
	{"48h", "48 h", "hour", func(now time.Time, zone *time.Location) time.Time { return hoursBack(now, 47) }},
	{"7d", "7 days", "hour", func(now time.Time, zone *time.Location) time.Time { return back(calendar.Day, now, zone, 6) }},
	{"30d", "30 days", "day", func(now time.Time, zone *time.Location) time.Time { return back(calendar.Day, now, zone, 29) }},
	{"12mo", "12 months", "month", func(now time.Time, zone *time.Location) time.Time { return back(calendar.Month, now, zone, 11) }},
}

func hoursBack(now time.Time, n int) time.Time { return now.Add(-time.Duration(n) * time.Hour) }

// back returns the start of the n-th window before the window that contains an instant.
func back(window func(int64, *time.Location) (start, end int64), at time.Time, zone *time.Location, n int) time.Time {
	start, _ := window(at.UnixMicro(), zone)
	for range n {
		start, _ = window(start-1, zone)
	}
	return time.UnixMicro(start).In(zone)
}

// after returns the end of the window that contains an instant.
func after(window func(int64, *time.Location) (start, end int64), at time.Time, zone *time.Location) time.Time {
	_, end := window(at.UnixMicro(), zone)
	return time.UnixMicro(end).In(zone)
}

// usageAsked is the usage query in an address.
type usageAsked struct {
	meter, span, from, to, by string
	step                      string
	start, end                time.Time // a zero end means now
}

// usageSteps are the possible time spans of a bar.
var usageSteps = []string{"hour", "day", "month"}

// readUsage parses a usage query. wrong contains the errors by field.
func readUsage(q url.Values, meters []string, now time.Time, zone *time.Location) (a usageAsked, wrong map[string]string) {
	wrong = map[string]string{}
	a = usageAsked{meter: q.Get("meter"), span: q.Get("range"), from: q.Get("from"), to: q.Get("to"), by: q.Get("by")}
	if a.meter == "" && len(meters) > 0 {
		a.meter = meters[0]
	}
	if !slices.Contains(meters, a.meter) {
		wrong["meter"] = "Your plan has no such meter."
	}
	if a.by != "" && !slices.Contains(usageSteps, a.by) {
		wrong["by"] = "Must be hour, day or month."
	}
	if a.from != "" || a.to != "" {
		a.span = "own"
		a.readOwn(now, zone, wrong)
		return a, wrong
	}
	a.span = cmp.Or(a.span, "48h")
	i := slices.IndexFunc(usageRanges, func(r usageRange) bool { return r.name == a.span })
	if i < 0 {
		wrong["range"] = "Must be 48h, 7d, 30d or 12mo."
		return a, wrong
	}
	a.start, a.step = usageRanges[i].from(now, zone), usageRanges[i].step
	return a, wrong
}

const dayForm = "2006-01-02"

// readOwn parses a custom range of days, which includes its first and last day.
func (a *usageAsked) readOwn(now time.Time, zone *time.Location, wrong map[string]string) {
	day := func(name, text string, otherwise time.Time) time.Time {
		if text == "" {
			return otherwise
		}
		t, err := time.ParseInLocation(dayForm+" 15", text+" 12", zone) // a clock change may skip midnight
		if err != nil || t.Year() < 1970 || t.Year() > 9999 {
			wrong[name] = "Must be a day such as 2026-01-31, from 1970 on."
		}
		return back(calendar.Day, t, zone, 0)
	}
	last := day("to", a.to, back(calendar.Day, now, zone, 0))
	a.start = day("from", a.from, back(calendar.Day, last, zone, 29))
	if a.end = after(calendar.Day, last, zone); a.end.After(now) {
		a.end = time.Time{}
	}
	if len(wrong) == 0 && a.start.After(last) {
		wrong["from"] = "Must not be after the last day."
	}
	if len(wrong) == 0 && a.start.After(now) {
		wrong["from"] = "Must not be in the future."
	}
	a.step = a.by
	if a.step == "" {
		switch days := int64(last.Sub(a.start) / (24 * time.Hour)); {
		case days < 4:
			a.step = "hour"
		case days < 93:
			a.step = "day"
		default:
			a.step = "month"
		}
	}
}

// query returns the parameters of the API request.
func (a *usageAsked) query() url.Values {
	q := url.Values{"meter": {a.meter}, "granularity": {a.step}, "from": {a.start.UTC().Format(time.RFC3339)}}
	if !a.end.IsZero() {
		q.Set("to", a.end.UTC().Format(time.RFC3339))
	}
	return q
}

// UsageOf returns a customer's usage for the query in an address. here is the page's path.
func UsageOf(v *page.Visit, who *client.Customer, here string, q url.Values) (*UsageData, []client.UsagePoint, error) {
	names, err := v.Meters()
	if err != nil {
		return nil, nil, err
	}
	plan, err := v.Plan(who.Plan, who.EffectiveVersion)
	if err != nil {
		return nil, nil, err
	}
	now, err := v.Now()
	if err != nil {
		return nil, nil, err
	}
	meters := MetersOf(&plan)
	asked, wrong := readUsage(q, meters, now, v.Zone)
	data := &UsageData{Here: here, Wrong: wrong}
	data.choices(&asked, meters, names)
	if len(wrong) > 0 {
		return data, nil, nil
	}
	used, err := v.API.Usage(v.Ctx(), v.Key, asked.query())
	if problem, told := page.ProblemOf(err); told && problem.Status == http.StatusUnprocessableEntity {
		for _, e := range problem.Errors {
			field := map[string]string{"granularity": "by"}[e.Field]
			data.Wrong[cmp.Or(field, e.Field)] = "It " + e.Detail + "."
		}
		return data, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if used.ArchivedBefore != nil {
		data.Archived = used.ArchivedBefore.In(v.Zone).Format("2 January 2006")
	}
	data.draw(used.Points, &asked, limitLine(v, &plan, &asked), now, v.Zone)
	return data, used.Points, nil
}

// MetersOf returns the meters of a plan without duplicates, meters with limits first.
func MetersOf(p *client.Plan) (all []string) {
	add := func(meter string) {
		if !slices.Contains(all, meter) {
			all = append(all, meter)
		}
	}
	for _, l := range p.Limits {
		if l.Mode != "shadow" {
			add(l.Meter)
		}
	}
	for _, pr := range p.Prices {
		add(pr.Meter)
	}
	for _, m := range p.Meters {
		add(m)
	}
	return all
}

// choices sets the options of the page's form.
func (d *UsageData) choices(a *usageAsked, meters []string, names page.MeterNames) {
	d.Meter, d.From, d.To, d.By, d.Own = a.meter, a.from, a.to, a.by, a.span == "own"
	for _, key := range meters {
		m := names.Of(key)
		d.Meters = append(d.Meters, Choice{Value: key, Text: page.TitleOf(m), On: key == a.meter})
		if key == a.meter {
			d.Title, d.Unit = page.TitleOf(m), m.Unit
		}
	}
	for _, r := range usageRanges {
		q := url.Values{"meter": {a.meter}, "range": {r.name}}
		d.Ranges = append(d.Ranges, Choice{Text: r.text, URL: d.Here + "?" + q.Encode(), On: r.name == a.span})
	}
	for _, s := range usageSteps {
		d.Steps = append(d.Steps, Choice{Value: s, Text: "each " + s, On: s == a.by})
	}
	q := url.Values{"meter": {a.meter}}
	for name, value := range map[string]string{"range": a.span, "from": a.from, "to": a.to, "by": a.by} {
		if value != "" && (name != "range" || value != "own") {
			q.Set(name, value)
		}
	}
	d.CSV = d.Here + ".csv?" + q.Encode()
}

// The maximum numbers of points that a page shows. A file contains all points.
const (
	drawnPoints = 400
	shownRows   = 1000
)

// draw creates the chart and the table.
func (d *UsageData) draw(points []client.UsagePoint, a *usageAsked, limit int64, now time.Time, zone *time.Location) {
	form := map[string]string{"hour": "Mon 2 Jan, 15:04", "day": "Mon 2 Jan 2006", "month": "January 2006"}[a.step]
	d.Points, d.Limit = len(points), limit
	for _, p := range points {
		row := usageRow{Start: p.Start.In(zone).Format(form)}
		if p.UsageLevel != nil {
			d.Level, d.Held = true, d.Held || p.Peak > 0
			row.Last, row.Peak, row.Average = p.Last, p.Peak, words.Decimal(p.Average)
		} else {
			d.Admitted, d.Refused = d.Admitted+p.Admitted, d.Refused+p.Denied
			row.Admitted, row.Refused = p.Admitted, p.Denied
		}
		if len(points) <= shownRows {
			d.Rows = append(d.Rows, row)
		}
	}
	if len(points) > 0 && len(points) <= drawnPoints {
		c := usageChart{title: d.Title + ", each " + a.step, table: "usage-table", step: a.step, points: points, limit: limit, now: now, zone: zone}
		d.Chart = c.html()
	}
}

// limitLine returns the limit that applies to one bar, for a fixed window as long as a bar or for an allocation.
// It returns 0 if there is no such limit.
func limitLine(v *page.Visit, plan *client.Plan, a *usageAsked) int64 {
	for _, l := range plan.Limits {
		if l.Meter == a.meter && l.Per == "" && l.Mode != "shadow" && l.Algorithm == model.Allocation.String() {
			return inForce(v, &l) // limit of the level
		}
		if l.Meter != a.meter || l.Per != "" || l.Mode == "shadow" || l.Align == "first_hit" || AlgorithmOf(l.Algorithm).pace != byWindow {
			continue
		}
		_, offset := a.start.In(v.Zone).Zone()
		n, unit := unitsOf(l.Window)
		switch {
		case a.step == "hour" && n == 1 && unit == "hour" && offset%3600 == 0, a.step == "day" && l.Window == "calendar_day", a.step == "month" &&
			l.Window == "calendar_month":
			return inForce(v, &l)
		}
	}
	return 0
}

// inForce returns a limit's number, including the customer's override.
func inForce(v *page.Visit, l *client.Limit) int64 {
	quota, err := v.API.Quota(v.Ctx(), v.Key, nil)
	if err == nil {
		for i := range quota.Limits {
			if quota.Limits[i].Name == l.Name {
				return quota.Limits[i].Limit
			}
		}
	}
	return l.Limit
}

// UsageCSV returns the points as a CSV file. The starts of the points are in the customer's zone.
func UsageCSV(meter string, points []client.UsagePoint, zone *time.Location) *page.File {
	var all bytes.Buffer
	w := csv.NewWriter(&all)
	if len(points) > 0 && points[0].UsageLevel != nil {
		_ = w.Write([]string{"start", "last", "peak", "average"}) // writes to a buffer never fail
	} else {
		_ = w.Write([]string{"start", "admitted", "refused"})
	}
	for _, p := range points {
		if p.UsageLevel != nil {
			_ = w.Write([]string{p.Start.In(zone).Format(time.RFC3339), strconv.FormatInt(p.Last, 10), strconv.FormatInt(p.Peak, 10), p.Average})
			continue
		}
		_ = w.Write([]string{p.Start.In(zone).Format(time.RFC3339), strconv.FormatInt(p.Admitted, 10), strconv.FormatInt(p.Denied, 10)})
	}
	w.Flush()
	return &page.File{MediaType: "text/csv; charset=utf-8", Name: "usage-" + meter + ".csv", Body: all.Bytes()}
}
