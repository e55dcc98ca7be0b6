package admin

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// disagreement describes an inconsistent row and the customer that the row belongs to.
func disagreement(d *client.Disagreement) string {
	var of []string
	for _, each := range []struct{ what, name string }{
		{"customer", d.Customer},
		{"meter", d.Meter},
		{"invoice", cmp.Or(d.Number, d.Invoice)},
		{"seller", d.Seller},
	} {
		if each.name != "" {
			of = append(of, each.what+" "+each.name)
		}
	}
	said := strings.TrimPrefix(strings.Join(of, ", ")+": "+d.Detail, ": ")
	if d.Expected != nil && d.Found != nil {
		said = strings.TrimSuffix(said, ".") + ": " + words.Number(*d.Found) + " in place of " + words.Number(*d.Expected)
	}
	return said
}

// reconcile checks the stored data only when the user requests the check, because the check reads everything.
func (v *visit) reconcile() (*page.View, error) {
	sheet := &staffPage{Intro: "Compares what was charged, booked, rated, billed and paid. It reads all books, and takes from milliseconds to minutes."}
	sheet.Actions = []*form{{Name: "run", Action: "/admin/reconcile", Button: "Check now", Class: "primary"}}
	if v.R.Method != http.MethodPost {
		return sheet.shownAs("Check the books", "reconcile"), nil
	}
	began := v.Site.Options.Wall()
	report, err := v.API.Reconcile(v.Ctx())
	if err != nil {
		return nil, err
	}
	t := &table{Caption: "Checks", Head: []column{{Text: "Check"}, {Text: "Rows that disagree", Numeric: true}, {}, {Text: "For example"}}}
	for _, c := range report.Checks {
		mark := marked("good", "agrees")
		if c.Rows > 0 {
			mark = marked("bad", "disagrees")
		}
		var examples []string
		for i := range c.Examples {
			examples = append(examples, disagreement(&c.Examples[i]))
		}
		t.Rows = append(t.Rows, []cell{text(checkName(c.Name)), amount(words.Number(c.Rows)), mark, text(strings.Join(examples, "; "))})
	}
	title := "The books agree."
	if !report.OK {
		title = "The books do not agree."
	}
	sheet.Sections = []section{{Title: title, Note: "It took " + v.Site.Options.Wall().Sub(began).Round(time.Millisecond).String() + ".", Table: t}}
	return sheet.shownAs("Check the books", "reconcile"), nil
}

// checkNames maps the names of checks to text for people.
var checkNames = map[string]string{
	"charged_is_booked":         "What was charged is booked as usage",
	"caps_count_booked":         "Caps count what is booked",
	"usage_is_billed":           "Usage is on the invoices",
	"units_are_billed":          "Every unit that has a price comes onto an invoice",
	"lines_are_given_back_once": "No line is given back twice",
	"lines_are_totals":          "Lines add up to the totals",
	"rated_is_billed":           "Lines cost what the prices say",
	"periods_are_chained":       "Billing periods follow each other without a gap",
	"numbers_have_no_gap":       "Invoice numbers have no gap",
	"digests_match":             "Final invoices say what they said",
	"adjustments_are_claimed":   "Adjustments are on an invoice",
	"due_is_settled":            "What is due is paid, credited or open",
	"paid_out_is_paid_in":       "No more is paid out than was paid in",
	"credits_add_up":            "Credits add up",
	"periods_can_close":         "Every billing period can be closed",
	"terms_agree":               "Customers are limited by the terms that are billed",
	"changes_exist":             "Counters were judged under changes that there are",
}

// checkName returns the name of a check as text for people.
func checkName(name string) string {
	if words, known := checkNames[name]; known {
		return words
	}
	words := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(words[:min(1, len(words))]) + words[min(1, len(words)):]
}

// checkList returns the names of several checks as one text.
func checkList(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = "“" + checkName(name) + "”"
	}
	return strings.Join(all, ", ")
}
