package admin

import (
	"cmp"
	"net/http"
	"time"

	"quotad/client"
	"quotad/internal/plans"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
)

// subject is the customer that an admin page shows.
type subject struct {
	client.Customer
	etag string
	zone *time.Location // the customer's timezone
}

// subject reads the customer in the address. Afterwards, the visit's API paths refer to that customer, and times
// use the customer's timezone.
func (v *visit) subject() (*subject, error) {
	v.Key = v.R.PathValue("key")
	who, etag, err := v.API.Customer(v.Ctx(), v.Key)
	if err != nil {
		return nil, err
	}
	s := &subject{Customer: who, etag: etag}
	err = v.SetClock(&s.Customer)
	s.zone = v.Zone
	return s, err
}

// setClockOf sets the page's clock to that of a customer, who is identified by the known key. The documents of
// an erased customer remain, and their times are in UTC.
func (v *visit) setClockOf(key string) error {
	v.Key = key
	who, _, err := v.API.Customer(v.Ctx(), v.Key)
	if page.NotThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return v.SetClock(&who)
}

// here returns the address of a page of the customer.
func (s *subject) here(rest string) string { return "/admin/customers/" + page.Segment(s.Key) + rest }

// page returns the common parts of all pages of a customer.
func (v *visit) page(s *subject, open string) *staffPage {
	p := &staffPage{
		Crumbs: []page.Link{{Text: "Customers", URL: "/admin/customers"}}, Done: v.doneHere(),
		Chips: []parts.Chip{{Class: "", Text: s.Key}, {Class: "accent", Text: s.Plan}},
	}
	if c := customerChip(&s.Customer); c != nil {
		p.Chips = append(p.Chips, *c)
	}
	for _, each := range []struct{ rest, text string }{
		{"", "Limits"},
		{"/billing", "Billing"},
		{"/usage", "Usage"},
		{"/plan", "Plan"},
		{"/settings", "Settings"},
	} {
		p.Parts = append(p.Parts, part{each.text, s.here(each.rest), each.rest == open})
	}
	return p
}

func (s *subject) title() string { return cmp.Or(s.Name, s.Key) }

func (v *visit) customer() (*page.View, error) { return v.limitsPage(nil) }

// limitsPage shows the state of a customer's limits, including shadow limits, and the overrides.
func (v *visit) limitsPage(back *form) (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	sheet := v.page(s, "")
	if s.ArchivedAt == nil {
		state, err := parts.StandingOf(v.Visit)
		if err != nil {
			v.Note("the limits", err)
			sheet.Sections = append(sheet.Sections, section{Title: "Limits", Failed: "The limits could not be read just now."})
		} else {
			limits := state.Limits()
			sheet.Sections = append(sheet.Sections, section{Limits: &limits}, v.overrides(s, state, back))
		}
		if v.isAdmin() {
			sheet.Sections = append(sheet.Sections, v.suspension(s, back))
		}
	}
	if v.may(plans.ScopeAdmin, plans.ScopeSupport) && s.ArchivedAt == nil {
		sheet.Actions = []*form{{Name: "portal", Action: s.here("/portal"), Button: "Open the portal as they see it"}}
	}
	return sheet.shownAs(s.title(), "customers"), nil
}

// suspensionForm returns the form that suspends a customer.
func suspensionForm(s *subject) *form {
	return &form{
		Name: "suspend", Title: "Suspend the customer", Action: s.here("/suspension"), Button: "Suspend", Class: "danger",
		Note:   "Within a second nothing is let through any more. What is open may be committed and given back, and billing goes on.",
		Fields: []field{{Name: "reason", Label: "Reason", Kind: kindText, Help: "The customer sees it in the portal."}},
	}
}

// suspension returns the section in which admins suspend a customer or end a suspension.
func (v *visit) suspension(s *subject, back *form) section {
	part := section{Title: "Suspension", Note: "The customer is not suspended."}
	if is := s.Suspension; is != nil {
		part.Note = ""
		part.Facts = []parts.Fact{{Term: "Suspended since", Text: v.instant(&is.At).Text}, {Term: "Reason", Text: is.Reason}}
		part.Forms = []*form{{
			Name: "resume", Action: s.here("/suspension/delete"), Button: "Resume", Class: "primary",
			Ask: "Within a second “" + s.Key + "” may use its plan again.", Sure: "Yes, resume",
		}}
		return part
	}
	part.Forms = []*form{suspensionForm(s)}
	if back != nil && back.Name == "suspend" {
		part.Forms[0] = back
	}
	return part
}

func (v *visit) suspend() (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	return v.sent(post{form: suspensionForm(s), method: http.MethodPut, path: at(v.Of("/suspension")), to: s.here("?done=suspended")}, v.limitsPage)
}

func (v *visit) resume() (*page.View, error) {
	v.Key = v.R.PathValue("key")
	return v.press(func() error { return v.API.Resume(v.Ctx(), v.Key) }, "/admin/customers/"+page.Segment(v.Key)+"?done=resumed")
}

// openPortal creates a link to the customer's portal and redirects to it. The audit trail records the link.
func (v *visit) openPortal() (*page.View, error) {
	made, err := v.API.OpenPortal(v.Ctx(), &client.PortalRequest{Customer: v.R.PathValue("key"), Theme: "auto"})
	return &page.View{To: made.URL}, err
}

// customerUsage shows a customer's usage as the customer sees it in the portal.
func (v *visit) customerUsage() (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	sheet := v.page(s, "/usage")
	if sheet.Usage, _, err = parts.UsageOf(v.Visit, &s.Customer, s.here("/usage"), v.R.URL.Query()); err != nil {
		return nil, err
	}
	shown := sheet.shownAs(s.title(), "customers")
	if len(sheet.Usage.Wrong) > 0 {
		shown.Status = http.StatusUnprocessableEntity
	}
	return shown, nil
}

func (v *visit) customerUsageFile() (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	data, points, err := parts.UsageOf(v.Visit, &s.Customer, s.here("/usage"), v.R.URL.Query())
	if err != nil || len(data.Wrong) > 0 {
		return &page.View{To: s.here("/usage")}, err
	}
	return &page.View{File: parts.UsageCSV(data.Meter, points, v.Zone)}, nil
}

func (v *visit) customerSettings() (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	return v.settingsPage(s, customerForm(&s.Customer))
}

func (v *visit) settingsPage(s *subject, f *form) (*page.View, error) {
	sheet := v.page(s, "/settings")
	facts := []parts.Fact{
		{Term: "Key", Text: s.Key},
		{Term: "Plan", Text: s.Plan},
		{Term: "Time zone", Text: s.Timezone},
		{Term: "Customer since", Text: v.instant(&s.CreatedAt).Text},
	}
	sheet.Sections = []section{{Title: "Customer", Facts: facts}}
	if v.isAdmin() && s.ArchivedAt == nil {
		archive := &form{
			Name: "archive", Action: s.here("/archive"), Button: "Archive", Class: "danger",
			Ask: "Nothing can be charged to “" + s.Key + "” any more, and the last period is billed. This cannot be undone.", Sure: "Yes, archive it",
			Fields: []field{{Name: "sure", Kind: kindHidden, Value: "yes"}},
		}
		sheet.Sections[0].Forms = []*form{f, archive}
	}
	return sheet.shownAs(s.title(), "customers"), nil
}

// kept returns the members of the customer that no form contains.
func (s *subject) kept() map[string]any {
	keep := map[string]any{"billing_anchor": s.BillingAnchor, "metadata": s.Metadata, "features": s.Features}
	if s.TestClock != nil {
		keep["test_clock"] = *s.TestClock
	}
	return keep
}

// saveCustomer updates the customer with the members in the form. All other members stay unchanged.
func (v *visit) saveCustomer() (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	return v.sent(post{
		form: customerForm(&s.Customer), method: http.MethodPut, header: client.IfMatch(s.etag), add: s.kept(),
		path: at(v.Of("")), to: s.here("/settings?done=saved"),
	}, func(f *form) (*page.View, error) { return v.settingsPage(s, f) })
}

func (v *visit) archiveCustomer() (*page.View, error) {
	here := "/admin/customers/" + page.Segment(v.R.PathValue("key"))
	if v.Form.Get("sure") == "" {
		return &page.View{To: here + "/settings"}, nil
	}
	v.Key = v.R.PathValue("key")
	err := v.API.ArchiveCustomer(v.Ctx(), v.Key)
	return &page.View{To: here + "?done=archived"}, err
}
