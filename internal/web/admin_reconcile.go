package web

import (
	"net/http"
	"strings"
	"time"
)

type reconcileAnswer struct {
	OK     bool `json:"ok"`
	Checks []struct {
		Name     string   `json:"name"`
		Rows     int64    `json:"rows"`
		Examples []string `json:"examples"`
	} `json:"checks"`
}

// adminReconcile runs when it is asked to: the check reads all books.
func (v *visit) adminReconcile() (*view, error) {
	page := &staffPage{Intro: "Compares what was charged, booked, rated, billed and paid. It reads all books, and takes from milliseconds to minutes."}
	page.Actions = []*form{{Name: "run", Action: "/admin/reconcile", Button: "Check now", Class: "primary"}}
	if v.r.Method != http.MethodPost {
		return page.shownAs("Check the books", "reconcile"), nil
	}
	if _, err := v.form(); err != nil {
		return nil, err
	}
	began := v.site.options.Wall()
	report, err := ask[reconcileAnswer](v, "/v1/reconcile")
	if err != nil {
		return nil, err
	}
	t := &table{Caption: "Checks", Head: []column{{Text: "Check"}, {Text: "Rows that disagree", Numeric: true}, {}, {Text: "For example"}}}
	for _, c := range report.Checks {
		mark := marked("good", "agrees")
		if c.Rows > 0 {
			mark = marked("bad", "disagrees")
		}
		t.Rows = append(t.Rows, []cell{text(c.Name), amount(number(c.Rows)), mark, text(strings.Join(c.Examples, "; "))})
	}
	title := "The books agree."
	if !report.OK {
		title = "The books do not agree."
	}
	page.Sections = []section{{Title: title, Note: "It took " + v.site.options.Wall().Sub(began).Round(time.Millisecond).String() + ".", Table: t}}
	return page.shownAs("Check the books", "reconcile"), nil
}
