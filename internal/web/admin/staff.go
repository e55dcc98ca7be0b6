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

// staffPage is the data of the template "staff", which shows every admin page of lists, facts and forms.
type staffPage struct {
	Crumbs   []page.Link
	Chips    []parts.Chip
	Parts    []part // other pages of the same subject
	Intro    string
	Done     string // text about the form that led to this page
	Secret   *secret
	Search   *search
	Actions  []*form // buttons beside the page's title
	Usage    *parts.UsageData
	Sections []section
}

// part is one of several pages of the same subject.
type part struct {
	Text, URL string
	Current   bool
}

// search is a form that filters a list.
type search struct{ Fields []field }

// secret is a secret that is shown once.
type secret struct{ Label, Value, Note string }

// section is one panel, which shows its non-empty members.
type section struct {
	Title, Note string
	Failed      string // error text that replaces the rest
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

// done contains the texts that confirm a form's action, by the name in the address.
var done = map[string]string{
	"saved": "Saved.", "made": "Made.", "deleted": "Deleted.", "booked": "Saved: the next invoice counts it.", "archived": "Archived.",
	"suspended": "Suspended. Within a second no node lets anything through.", "resumed": "Resumed. Within a second every node lets through what the plan allows.",
	"tested": "The test was taken.", "enabled": "The test was taken. The webhook is on again.", "replayed": "They are sent from now on.",
	"revoked": "Revoked. No node takes this key any more.", "finalized": "Finalized: it has its number now.",
	"changed": "Changed. Within a second every node goes by it.", "scheduled": "Scheduled. It happens by itself.", "dropped": "Dropped: the plan stays.",
	"paid": "The payment is noted.", "applied": "Credits paid.", "reversed": "Reversed: the amount is open again.", "withdrawn": "Withdrawn.",
	"voided": "Voided.", "credited": "The credit note is made.",
}

// doneHere returns the text about the form that led to this page.
func (v *visit) doneHere() string { return done[v.R.URL.Query().Get("done")] }

// may reports whether the session's key has one of the scopes. Pages only hide actions that the API would
// refuse; the API decides.
func (v *visit) may(scopes ...plans.Scope) bool { return slices.Contains(scopes, v.As.Scope) }

func (v *visit) isAdmin() bool { return v.may(plans.ScopeAdmin) }

// once returns a field with an idempotency key, so that a form that is submitted twice acts once.
func once() field { return field{Name: "id", Kind: kindHidden, Value: "page-" + rand.Text()} }

// sent makes the request of a form and redirects to p.to. If the form has a fault, sent shows the form's page
// again.
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

// with replaces the empty form by the submitted form of the same name, which has a fault. If there is no such
// empty form any more, with adds the submitted form.
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

// table is a list in the form that admins read. A template shows it as a part of a section.
type table struct {
	Caption string
	Head    []column
	Rows    [][]cell
	Empty   string // text that replaces a table without rows
	Next    string // address of the next page; empty if there is none
}

type column struct {
	Text    string
	Numeric bool
}

// cell is a text with an optional link, second line, mark or form.
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

// instant returns a time by the page's clock.
func (v *visit) instant(at *time.Time) cell {
	if at == nil {
		return text("–")
	}
	return text(at.In(v.Zone).Format("2 Jan 2006, 15:04"))
}
