package api

import (
	"encoding/json"
	"strings"
	"time"

	"quotad/internal/billing"
	"quotad/internal/testkit/oracle"
)

// yearDelay is how long after its end a period is closed, and a little, µs.
const yearDelay = 11e6

// foreseen is what a preview said of a change.
type foreseen struct {
	At                time.Time
	Invoice, Upcoming *yearInvoice
}

// planBody asks for the preview of a plan.
func planBody(t oracle.Terms, change string) map[string]any {
	body := map[string]any{"plan": t.Plan, "change": change}
	if t.Pin > 0 {
		body["plan_version"] = t.Pin
	}
	return body
}

// foresee asks what a change would make, which must be answered as the change will be. The change comes
// next. It is nil where that is too far away.
func (c *guest) foresee(status int, body map[string]any) *foreseen {
	c.group.t.Helper()
	got := c.group.try("POST", c.path+"/preview", body)
	if status == 200 && got.status == 409 && strings.Contains(got.text, billing.ErrFarPreview.Error()) {
		c.group.done("preview: too far")
		return nil
	}
	if got.status != status {
		c.fail("preview of %v: %d %s, want %d", body, got.status, got.text, status)
	}
	f := new(foreseen)
	if status == 200 {
		check(c.group.t, json.Unmarshal([]byte(got.text), f))
		c.did("preview of %v: at %s", body, stamp(f.At.UnixMicro()))
	}
	return f
}

// foresaw holds a preview of what comes later against what is upcoming, right after the change was
// written. What came to be is compared later, if the customer does nothing until then.
func (c *guest) foresaw(f *foreseen) {
	c.group.t.Helper()
	if c.foreseen = f; f == nil {
		return
	}
	start, end, runs := c.Running()
	if !runs || start+yearDelay > c.Clock.Now || end != f.At.UnixMicro() {
		return // the period before may not be closed yet, and takes what is upcoming now
	}
	if is := c.readUpcoming(); f.At.UnixMicro() > c.Clock.Now {
		c.same("invoice", "until the change", f.Invoice, is)
	}
}

// same holds an invoice of a preview against the one that is there.
func (c *guest) same(what, when string, foreseen, is *yearInvoice) {
	c.group.t.Helper()
	if got, want := c.text(foreseen), c.text(is); got != want {
		c.fail("%s there is\n%sforeseen was\n%s", when, want, got)
	}
	c.group.done("preview: " + what)
}

func (c *guest) readUpcoming() *yearInvoice {
	got := c.group.try("GET", c.path+"/invoices/upcoming", nil)
	if got.status == 404 {
		return nil
	}
	i := new(yearInvoice)
	check(c.group.t, json.Unmarshal([]byte(got.text), i))
	return i
}

// cameToBe holds a preview against the invoice that came, once its instant is over and all is done.
func (c *guest) cameToBe() {
	f := c.foreseen
	if f == nil || f.At.UnixMicro()+yearDelay > c.Clock.Now || c.behind() {
		return
	}
	c.foreseen = nil
	var is *yearInvoice
	for _, i := range c.invoices() {
		if i.shown.Kind == "period" && i.shown.PeriodEnd.Equal(f.At) {
			is = &i
		}
	}
	c.same("invoice that came", "after all", f.Invoice, is)
	if up := f.Upcoming; up != nil && c.Clock.Now < up.shown.PeriodEnd.UnixMicro() {
		c.same("upcoming", "later", up, c.readUpcoming())
	}
}

// text is an invoice as a draft, which says nothing of credits. Credits may go elsewhere meanwhile.
func (c *guest) text(i *yearInvoice) string {
	if i == nil || len(i.shown.Lines) == 0 {
		return "none\n"
	}
	s := i.shown
	for n := range s.Lines {
		if named := c.nameOf(s.Lines[n].Of); named != "" {
			s.Lines[n].Of = named
		}
	}
	s.Status, s.DueAt = "draft", nil
	return s.String()
}
