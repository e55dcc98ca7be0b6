package admin

import (
	"crypto/rand"
	"net/http"
	"slices"
	"time"

	"quotad/internal/plans"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
)

// A staffPage is the data of the template "staff", which renders every admin page that consists of lists, facts
// and forms.
type staffPage struct {
	Crumbs   []page.Link
	Chips    []parts.Chip
	Parts    []part // other pages of the same subject
	Intro    string
	Done     string // confirmation of the previously submitted form
	Secret   *secret
	Search   *search
	Actions  []*form // buttons beside the page's title
	Usage    *parts.UsageData
	Sections []section
}

// A part is a link to one of several pages about the same subject.
type part struct {
	Text, URL string
	Current   bool
}

// A search is a form that filters a list.
type search struct{ Fields []field }

// A secret is a value that is shown only once.
type secret struct{ Label, Value, Note string }

// A section is one panel of a page. It shows only the members that are set.
type section struct {
	Title, Note string
	Failed      string // error shown instead of the other members
	Limits      *parts.LimitsData
	Cost        *parts.CostData
	Facts       []parts.Fact
	Table       *table
	Search      *search
	Links       []page.Link
	Forms       []*form
}

// shownAs returns the view of a staffPage.
func (p *staffPage) shownAs(title, tab string) *page.View {
	return &page.View{Sheet: "staff", Title: title, Tab: tab, Data: p}
}

// done maps the name in the address to the text that confirms a submitted form.
var done = map[string]string{
	"saved": "Saved.", "made": "Made.", "deleted": "Deleted.", "booked": "Saved: the next invoice counts it.", "archived": "Archived.",
	"suspended": "Suspended. Within a second no node lets anything through.", "resumed": "Resumed. Within a second every node lets through what the plan allows.",
	"tested": "The test was taken.", "enabled": "The test was taken. The webhook is on again.", "replayed": "They are sent from now on.",
	"revoked": "Revoked. No node takes this key any more.", "finalized": "Finalized: it has its number now.",
	"changed": "Changed. Within a second every node goes by it.", "scheduled": "Scheduled. It happens by itself.", "dropped": "Dropped: the plan stays.",
	"paid": "The payment is noted.", "applied": "Credits paid.", "reversed": "Reversed: the amount is open again.", "withdrawn": "Withdrawn.",
	"voided": "Voided.", "credited": "The credit note is made.",
}

// doneHere returns the text that confirms the form submitted before this page.
func (v *visit) doneHere() string { return done[v.R.URL.Query().Get("done")] }

// may reports whether the session's key has one of the scopes. The API enforces permissions; pages only hide the
// elements that the API would refuse.
func (v *visit) may(scopes ...plans.Scope) bool { return slices.Contains(scopes, v.As.Scope) }

func (v *visit) isAdmin() bool { return v.may(plans.ScopeAdmin) }

// once returns a hidden field with an idempotency key, so that a form that is submitted twice takes effect once.
func once() field { return field{Name: "id", Kind: kindHidden, Value: "page-" + rand.Text()} }

// sent submits a form to the API and redirects to p.to. If the form has errors, sent calls again with the form
// to show its page.
func (v *visit) sent(p post, again func(*form) (*page.View, error)) (*page.View, error) {
	status, err := v.send(p)
	if err != nil {
		return nil, err
	}
	if status == http.StatusOK {
		return &page.View{To: p.to}, nil
	}
	shown, err := again(p.form)
	if shown != nil {
		shown.Status = status
	}
	return shown, err
}

// with returns forms with back, a submitted form with errors, in place of the form of the same name. If no form
// has that name because the customer's state has changed, with appends back.
func with(forms []*form, back *form) []*form {
	if back == nil {
		return forms
	}
	at := slices.IndexFunc(forms, func(f *form) bool { return f.Name == back.Name })
	if at < 0 {
		return append(forms, back)
	}
	forms[at] = back
	return forms
}

// A table is a list on an admin page. The template renders the table as a part of a section.
type table struct {
	Caption string
	Head    []column
	Rows    [][]cell
	Empty   string // text shown instead of an empty table
	Next    string // address of the next page, or empty if there is none
}

type column struct {
	Text    string
	Numeric bool
}

// A cell is a text, optionally with a link, a second line, a mark or a form.
type cell struct {
	Text, URL, Sub string
	Chip           *parts.Chip
	Numeric, Mono  bool
	Form           *form
	Fold           []string // folded documents
}

func heads(texts ...string) []column {
	all := make([]column, len(texts))
	for i, text := range texts {
		all[i].Text = text
	}
	return all
}

func text(s string) cell { return cell{Text: s} }

func linked(s, to string) cell { return cell{Text: s, URL: to} }

func amount(s string) cell { return cell{Text: s, Numeric: true} }

func mono(s string) cell { return cell{Text: s, Mono: true} }

func marked(class, s string) cell { return cell{Chip: &parts.Chip{Class: class, Text: s}} }

// instant returns a time in the page's zone.
func (v *visit) instant(at *time.Time) cell {
	if at == nil {
		return text("–")
	}
	return text(at.In(v.Zone).Format("2 Jan 2006, 15:04"))
}
