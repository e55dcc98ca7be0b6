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

// A staffPage is what the sheet "staff" shows: every page of the admins that is made of lists,
// facts and forms.
type staffPage struct {
	Crumbs   []page.Link
	Chips    []parts.Chip
	Parts    []part // other pages of the same thing
	Intro    string
	Done     string // what the form before this page did
	Secret   *secret
	Search   *search
	Actions  []*form // buttons beside the title
	Usage    *parts.UsageData
	Sections []section
}

// A part is a page of several that belong to one thing.
type part struct {
	Text, URL string
	Current   bool
}

// A search is a form that asks for a part of a list.
type search struct{ Fields []field }

// A secret is shown once.
type secret struct{ Label, Value, Note string }

// A section is one panel. It shows those of its members that are there.
type section struct {
	Title, Note string
	Failed      string // instead of the rest
	Limits      *parts.LimitsData
	Cost        *parts.CostData
	Facts       []parts.Fact
	Table       *table
	Search      *search
	Links       []page.Link
	Forms       []*form
}

// shownAs makes the view of a staffPage.
func (p *staffPage) shownAs(title, tab string) *page.View {
	return &page.View{Sheet: "staff", Title: title, Tab: tab, Data: p}
}

// done are the words for what a form did, by the name that the address carries.
var done = map[string]string{
	"saved": "Saved.", "made": "Made.", "deleted": "Deleted.", "booked": "Saved: the next invoice counts it.", "archived": "Archived.",
	"suspended": "Suspended. Within a second no node lets anything through.", "resumed": "Resumed. Within a second every node lets through what the plan allows.",
	"tested": "The test was taken.", "enabled": "The test was taken. The webhook is on again.", "replayed": "They are sent from now on.",
	"revoked": "Revoked. No node takes this key any more.", "finalized": "Finalized: it has its number now.",
	"changed": "Changed. Within a second every node goes by it.", "scheduled": "Scheduled. It happens by itself.", "dropped": "Dropped: the plan stays.",
	"paid": "The payment is noted.", "applied": "Credits paid.", "reversed": "Reversed: the amount is open again.", "withdrawn": "Withdrawn.",
	"voided": "Voided.", "credited": "The credit note is made.",
}

// doneHere is what the form before this page did.
func (v *visit) doneHere() string { return done[v.R.URL.Query().Get("done")] }

// may reports whether the session's key has one of the scopes. The API decides; pages only leave
// out what it would refuse.
func (v *visit) may(scopes ...plans.Scope) bool { return slices.Contains(scopes, v.As.Scope) }

func (v *visit) isAdmin() bool { return v.may(plans.ScopeAdmin) }

// once is an idempotency key for a form: sent twice, it is done once.
func once() field { return field{Name: "id", Kind: kindHidden, Value: "page-" + rand.Text()} }

// sent does what a form says. Then it leads to p.to; a form with a fault comes back on its page.
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

// with puts a form that came back in the place of the fresh one of its name. What it asked for
// may be out of date, so that there is no fresh one.
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

// A table is a list as admins read it. A sheet shows it as a part of a section.
type table struct {
	Caption string
	Head    []column
	Rows    [][]cell
	Empty   string // instead of a table without rows
	Next    string // where the next page is; empty: there is none
}

type column struct {
	Text    string
	Numeric bool
}

// A cell is text, perhaps with a link, a second line, a mark or a form.
type cell struct {
	Text, URL, Sub string
	Chip           *parts.Chip
	Numeric, Mono  bool
	Form           *form
	Fold           []string // documents, folded
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

// instant is a time by the clock of the page.
func (v *visit) instant(at *time.Time) cell {
	if at == nil {
		return text("–")
	}
	return text(at.In(v.Zone).Format("2 Jan 2006, 15:04"))
}
