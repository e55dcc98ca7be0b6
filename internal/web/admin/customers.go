package admin

import (
	"cmp"
	"net/http"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

func (v *visit) customers() (*page.View, error) { return v.customersPage(customerForm(nil)) }

// customerForm returns the form that creates a customer, or that changes an existing customer.
func customerForm(who *client.Customer) *form {
	f := &form{Name: "customer", Title: "New customer", Action: "/admin/customers", Button: "Make the customer", Class: "primary"}
	fields := []field{
		{Name: "name", Label: "Name", Kind: kindText},
		{Name: "plan", Label: "Plan", Kind: kindText, Help: "The key of a plan."},
		{Name: "plan_version", Label: "Pinned version", Kind: kindNumber, Optional: true, Help: "Without one, the newest version that applies."},
		{Name: "timezone", Label: "Time zone", Kind: kindText, Optional: true, Help: "Such as Europe/Berlin. UTC without one."},
	}
	if who == nil {
		f.Fields = append([]field{{Name: "key", Label: "Key", Kind: kindText, Help: "The name in requests. It stays."}}, fields...)
		return f
	}
	f.Title, f.Action, f.Button = "Change the customer", "/admin/customers/"+page.Segment(who.Key), "Save"
	f.Fields = append(fields, field{Name: "change", Label: "The new plan begins", Kind: kindSelect, Optional: true, Options: []option{
		{"", "choose, where it is another one that costs"},
		{"limits_now", "its limits now, its prices with the next billing period"},
		{"now", "now: the period is cut"},
	}})
	for i, value := range []string{who.Name, who.Plan, "", who.Timezone} {
		f.Fields[i].Value = value
	}
	if who.PlanVersion != nil {
		f.Fields[2].Value = words.Number(int64(*who.PlanVersion))
	}
	return f
}

func (v *visit) customersPage(f *form) (*page.View, error) {
	list, err := v.API.Customers(v.Ctx(), v.Query("search"))
	sheet := &staffPage{Done: v.doneHere(), Search: &search{[]field{{Name: "search", Label: "Name or key", Kind: kindText, Value: v.R.URL.Query().Get("search")}}}}
	if err != nil {
		return v.refusedSearch(sheet, err, "Customers", "customers")
	}
	t := &table{Caption: "Customers", Head: heads("Customer", "Plan", "Time zone", "Since", ""), Empty: "There is no such customer", Next: v.Next(list.NextCursor)}
	for i := range list.Items {
		c := &list.Items[i]
		t.Rows = append(t.Rows, []cell{
			{Text: cmp.Or(c.Name, c.Key), URL: "/admin/customers/" + page.Segment(c.Key), Sub: c.Key},
			linked(c.Plan, "/admin/plans/"+page.Segment(c.Plan)),
			text(c.Timezone), v.instant(&c.CreatedAt),
			{Chip: customerChip(c)},
		})
	}
	sheet.Sections = []section{{Table: t}}
	if v.isAdmin() {
		sheet.Sections[0].Forms = []*form{f}
	}
	return sheet.shownAs("Customers", "customers"), nil
}

// customerChip returns the mark of a customer with an unusual state, or nil.
func customerChip(c *client.Customer) *parts.Chip {
	switch {
	case c.ArchivedAt != nil:
		return &parts.Chip{Class: "bad", Text: "archived"}
	case c.Suspension != nil:
		return &parts.Chip{Class: "bad", Text: "suspended"}
	case c.TestClock != nil:
		return &parts.Chip{Class: "high", Text: "test clock " + *c.TestClock}
	case c.Anonymous:
		return &parts.Chip{Class: "", Text: "anonymous"}
	}
	return nil
}

func (v *visit) makeCustomer() (*page.View, error) {
	to := &page.View{}
	shown, err := v.sent(post{
		form: customerForm(nil), method: http.MethodPut, header: client.IfMatch(""), to: "/admin/customers?done=made",
		path: func(members map[string]any) string {
			key, _ := members["key"].(string)
			to.To = "/admin/customers/" + page.Segment(key)
			return named("/v1/customers/", "key")(members)
		},
	}, v.customersPage)
	if shown != nil && shown.To != "" {
		shown.To = to.To + "?done=made"
	}
	return shown, err
}
