package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"quotad/internal/testkit/oracle"
)

// standing holds the quota endpoint against the oracle.
func (c *guest) standing() {
	var quota struct {
		Suspension *struct{ Reason string }
		Ended      bool
		Meters     []struct {
			Meter                   string
			Used, Included, Overage int64
			PriceVersion            *int      `json:"price_version"`
			AmountMinor             *int64    `json:"amount_minor"`
			CapMinor                *int64    `json:"cap_minor"`
			PeriodStart             time.Time `json:"period_start"`
			PeriodEnd               time.Time `json:"period_end"`
		}
	}
	c.group.read(c.path+"/quota", &quota)
	if ends := c.Account.EndsAt; (quota.Suspension != nil) != c.Suspended ||
		quota.Ended != (c.Account.AfterEnd == "block" && ends != nil && *ends <= c.Clock.Now) {
		c.fail("quota says suspended %v, ended %v; want %v, %q", quota.Suspension, quota.Ended, c.Suspended, c.Refuses())
	}
	for _, m := range quota.Meters {
		s := c.Standing(m.Meter)
		if (m.PriceVersion != nil) != s.Running || (m.AmountMinor != nil) != s.Priced {
			c.fail("quota %+v, want %+v", m, s)
		}
		if minor, is := c.Caps()[m.Meter]; s.Priced && (is != (m.CapMinor != nil) || is && *m.CapMinor != minor) {
			c.fail("quota %+v, want the cap %d, %t", m, minor, is)
		}
		if !s.Running {
			continue
		}
		if _, is := c.Caps()[m.Meter]; is {
			c.capUnits(m.Meter)
		}
		got := oracle.Standing{
			Start: m.PeriodStart.UnixMicro(), End: m.PeriodEnd.UnixMicro(), Used: m.Used, Version: *m.PriceVersion, Running: true, Priced: s.Priced,
		}
		if s.Priced {
			got.Included, got.Overage, got.Minor = m.Included, m.Overage, *m.AmountMinor
		}
		if got != s {
			c.fail("quota %+v, want %+v", got, s)
		}
	}
	c.group.done("quota")
}

// upcoming holds the upcoming invoice against the oracle.
func (c *guest) upcoming() {
	y, want := c.group.year, c.Upcoming()
	path := c.path + "/invoices/upcoming"
	if want == nil {
		y.call(404, "GET", path, nil)
		return
	}
	var got yearInvoice
	check(y.t, json.Unmarshal([]byte(y.call(200, "GET", path, nil).text), &got))
	for n := range got.shown.Lines {
		got.shown.Lines[n].Of = c.nameOf(got.shown.Lines[n].Of)
	}
	got.shown.Status = "upcoming"
	if got.ID != "" || got.shown.String() != want.String() {
		c.fail("upcoming\nnode:   %s\noracle: %s", got.shown, want)
	}
	y.done("upcoming")
}

// preview asks what line an adjustment would make.
func (c *guest) preview(body map[string]any, meter string, cost, when int64) {
	y, want := c.group.year, c.Preview(meter, cost, when)
	answer := y.try("POST", c.path+"/adjustments?preview=true", body)
	if want == nil {
		if answer.status != http.StatusConflict {
			c.fail("preview of %v: %d %s, want 409", body, answer.status, answer.text)
		}
		return
	}
	var got oracle.ShownLine
	var of struct {
		Of *string `json:"of_invoice"`
	}
	check(y.t, errors.Join(json.Unmarshal([]byte(answer.text), &got), json.Unmarshal([]byte(answer.text), &of)))
	if of.Of != nil {
		got.Of = c.nameOf(*of.Of)
	}
	if answer.status != http.StatusOK || got.String() != want.String() {
		c.fail("preview of %v: %d\nnode:   %s\noracle: %s", body, answer.status, got, want)
	}
	y.done("preview")
}

// nameOf is the oracle's name of the invoice of an id.
func (c *guest) nameOf(id string) string {
	for i, known := range c.ids {
		if known == id && id != "" {
			return i.Name()
		}
	}
	return ""
}

// lineUsage adds up what a line of usage or a correction came from.
func (c *guest) lineUsage(i *oracle.Invoice, path string) {
	shown := i.Show()
	for n, line := range shown.Lines {
		if i.Kind == "credit_note" || line.Kind != "usage" && line.Kind != "correction" {
			continue
		}
		if line.Level != nil {
			c.levelDays(i, path, n+1, line)
			continue
		}
		if line.Kind == "correction" {
			n = -1 // corrections have no order
		}
		c.lineSum(path, n+1, line)
	}
	c.group.done("line usage")
}

// lineSum adds up the pages of a line. n is 0 for a correction, which is looked for.
func (c *guest) lineSum(path string, n int, line oracle.ShownLine) {
	if n == 0 {
		var got yearInvoice
		c.group.read(path, &got)
		for k, l := range got.shown.Lines {
			if l.Of = c.nameOf(l.Of); l.String() == line.String() {
				n = k + 1
			}
		}
	}
	sum, page := int64(0), ""
	for more := true; more; {
		var got struct {
			Hours       []struct{ Admitted int64 }
			Adjustments []struct{ Cost int64 }
			NextCursor  *string `json:"next_cursor"`
		}
		c.group.read(fmt.Sprintf("%s/lines/%d/usage?limit=100%s", path, n, page), &got)
		for _, h := range got.Hours {
			sum += h.Admitted
		}
		for _, a := range got.Adjustments {
			sum += a.Cost
		}
		if more = got.NextCursor != nil; more {
			page = "&cursor=" + *got.NextCursor
		}
	}
	if sum != line.Quantity {
		c.fail("line %d of %s adds up to %d: %s", n, path, sum, line)
	}
}

// levelDays holds the days of a line of a level meter against the line.
func (c *guest) levelDays(i *oracle.Invoice, path string, n int, line oracle.ShownLine) {
	var got struct {
		Points []struct {
			Start      time.Time
			Last, Peak int64
		}
	}
	c.group.read(fmt.Sprintf("%s/lines/%d/usage", path, n), &got)
	peak, last := int64(0), int64(-1)
	for _, p := range got.Points {
		peak, last = max(peak, p.Peak), p.Last
	}
	from, to := line.From.UnixMicro(), line.To.UnixMicro()
	if wantPeak, wantLast := c.Peak(line.Meter, from, to), c.Last(line.Meter, to); peak != wantPeak || last != wantLast || !got.Points[0].Start.Equal(line.From) {
		c.fail("line %d of %s: the days have peak %d and last %d, want %d and %d: %s", n, path, peak, last, wantPeak, wantLast, line)
	}
	c.group.done("days of levels")
}
