package admin

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"quotad/client"
	"quotad/internal/billing/rating"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

// homeData is the data of the first admin page, which shows the state of the service and the latest changes.
// Each part can fail alone.
type homeData struct {
	AsOf     string
	Said     string   // summary of the service's state
	More     string   // further important facts
	Concerns []string // problems that need attention
	Figures  []figure
	Fullest  fullestData
	Nodes    section
	Books    section
	Changes  *section // nil if the key's scope does not include it
}

// A figure is a card with one number.
type figure struct {
	ID, Title, Rule string
	Failed          string // error shown instead of the other members
	Value, Unit     string
	Used, Of        int64 // a bar; if Of is 0, there is no bar
	Facts           []parts.Fact
}

// fullestData lists the customers who have used the largest share of a limit.
type fullestData struct {
	Failed, Note string
	Rows         []fullestRow
}

type fullestRow struct {
	Customer, Key, URL string
	Meter, Limit       string
	Used, Of           int64
	Chip               parts.Chip
}

// home queries the parts of the page concurrently.
func (v *visit) home() (*page.View, error) {
	data := &homeData{}
	var all sync.WaitGroup
	if v.isAdmin() {
		data.Changes = &section{Title: "Last changes", Failed: "The changes could not be read just now."}
		v.Beside(&all, "the changes", func() error {
			list, err := v.API.Audit(v.Ctx(), url.Values{"limit": {"10"}})
			if err == nil {
				*data.Changes = v.lastChanges(&list)
			}
			return err
		}, func() {})
	}
	v.Beside(&all, "the names of meters", func() error {
		_, err := v.Meters()
		return err
	}, func() {})
	o, err := v.API.Overview(v.Ctx())
	if err != nil {
		v.Note("the overview", err)
		o = client.Overview{Failed: overviewParts}
	}
	all.Wait()
	v.showOverview(data, &o, err == nil)
	return &page.View{Sheet: "home", Title: "Overview", Tab: "overview", Data: data}, nil
}

func (v *visit) lastChanges(list *client.List[client.Audit]) section {
	t := &table{Caption: "Last changes", Head: heads("When", "Who", "What", "On"), Empty: "Nothing was changed yet"}
	for i := range list.Items {
		a := &list.Items[i]
		who := a.Actor
		if a.ActorName != nil {
			who = *a.ActorName
		}
		t.Rows = append(t.Rows, []cell{text(a.At.In(v.Zone).Format("2 Jan, 15:04:05")), text(who), text(a.Action), mono(a.Target)})
	}
	return section{Title: "Last changes", Table: t, Links: []page.Link{{Text: "All changes", URL: "/admin/audit"}}}
}

// overviewParts are the parts that the API may omit from an overview.
var overviewParts = []string{"decisions", "nodes", "database", "fullest"}

// showOverview fills data from the overview. read is false if the overview could not be read.
func (v *visit) showOverview(data *homeData, o *client.Overview, read bool) {
	if read {
		data.AsOf = o.At.In(v.Zone).Format("15:04:05")
	}
	for _, c := range o.Concerns {
		if c.Name == "books_disagree" {
			c.Text = "The books did not agree at the last check: " + checkList(o.Books.Disagreeing) + "."
		}
		data.Concerns = append(data.Concerns, c.Text)
	}
	switch n := len(o.Concerns); {
	case n == 1:
		data.Said = "One thing needs a look."
	case n > 1:
		data.Said = fmt.Sprintf("%d things need a look.", n)
	case len(o.Failed) > 0:
		data.Said = "Not all of it could be read just now."
	default:
		data.Said = "All is well."
	}
	if o.Decisions != nil && !failed(o, "nodes") {
		nodes := int64(len(o.Nodes))
		data.More = fmt.Sprintf("%s decisions a second on %s %s.", rating.Grouped(o.Decisions.PerSecond), words.Number(nodes), words.Plural(nodes, "node"))
	}
	data.Figures = []figure{decisionsFigure(o), refusalsFigure(o), databaseFigure(o)}
	data.Fullest = v.fullest(o)
	data.Nodes = v.nodes(o)
	data.Books = v.books(o, read)
}

func failed(o *client.Overview, part string) bool { return slices.Contains(o.Failed, part) }

func decisionsFigure(o *client.Overview) figure {
	f := figure{ID: "decisions", Title: "Decisions"}
	if o.Decisions == nil {
		f.Failed = "Decisions could not be read just now. Hits are decided all the same."
		return f
	}
	d := o.Decisions
	f.Rule, f.Value, f.Unit = fmt.Sprintf("Hits and reservations on all nodes, over %d seconds", d.Seconds), rating.Grouped(d.PerSecond), "a second"
	f.fact("Last hour", words.Number(d.Hour.Admitted+d.Hour.Refused))
	f.fact("Last 24 hours", words.Number(d.Day.Admitted+d.Day.Refused))
	return f
}

func refusalsFigure(o *client.Overview) figure {
	f := figure{ID: "refusals", Title: "Refusals"}
	if o.Decisions == nil {
		f.Failed = "Refusals could not be read just now. Hits are decided all the same."
		return f
	}
	d := o.Decisions
	f.Rule, f.Value, f.Unit = "Hits and reservations that a limit refused", words.Number(d.Hour.Refused), "in the last hour"
	f.fact("Of all in that hour", words.ShareOf(d.Hour.Refused, d.Hour.Admitted+d.Hour.Refused))
	f.fact("Last 24 hours", words.Number(d.Day.Refused))
	f.fact("Of all in 24 hours", words.ShareOf(d.Day.Refused, d.Day.Admitted+d.Day.Refused))
	return f
}

func databaseFigure(o *client.Overview) figure {
	f := figure{ID: "database", Title: "Database"}
	if o.Database == nil {
		f.Failed = "The database could not be asked how it is just now."
		return f
	}
	d := o.Database
	version, _, _ := strings.Cut(d.Version, " ") // some packages append their vendor after a space
	f.Rule, f.Value, f.Unit = "PostgreSQL "+version, words.Sized(d.SizeBytes), "on disk"
	f.Used, f.Of = int64(d.Connections), int64(d.MaxConnections)
	f.fact("Connections", fmt.Sprintf("%s of %s", words.Number(f.Used), words.Number(f.Of)))
	oldest := "none open"
	if d.OldestTransactionAt != nil {
		oldest = "open for " + words.Lasted(o.At.Sub(*d.OldestTransactionAt))
	}
	f.fact("Oldest transaction", oldest)
	replicas := words.Number(int64(d.Replicas))
	if d.ReplicaLagBytes != nil {
		replicas += ", " + words.Sized(max(0, *d.ReplicaLagBytes)) + " behind"
	}
	f.fact("Replicas", replicas)
	if d.ReadOnly {
		f.fact("Writes", "taken by none: it is in recovery")
	}
	return f
}

func (f *figure) fact(term, text string) {
	f.Facts = append(f.Facts, parts.Fact{Term: term, Text: text})
}

func (v *visit) fullest(o *client.Overview) (data fullestData) {
	f := o.Fullest
	if f == nil {
		data.Failed = "The fullest customers could not be read just now."
		return data
	}
	data.Note = "Each customer's fullest limit, as of " + f.AsOf.In(v.Zone).Format("15:04:05") + "."
	if !f.Complete {
		data.Note += fmt.Sprintf(" Judged were the %s counters that were charged last, of %s that were looked at.", words.Number(int64(f.Judged)),
			words.Number(f.Counters))
	}
	names, _ := v.Meters() // without names, the page shows keys
	for _, item := range f.Items {
		row := fullestRow{
			Customer: item.Name, Key: item.Customer, URL: "/admin/customers/" + page.Segment(item.Customer),
			Meter: page.TitleOf(names.Of(item.Meter)), Limit: item.Limit, Used: item.Used, Of: item.Of,
			Chip: parts.Chip{Class: "", Text: words.Number(item.Percent) + " %"},
		}
		switch {
		case item.Used >= item.Of && item.Mode == "hard":
			row.Chip.Class = "bad"
		case item.Percent >= 80:
			row.Chip.Class = "high"
		}
		if row.Customer == "" {
			row.Customer, row.Key = item.Customer, ""
		}
		data.Rows = append(data.Rows, row)
	}
	return data
}

// nodeMarks maps the states of nodes to the CSS classes of their marks.
var nodeMarks = map[string]string{"ready": "good", "silent": "bad", "degraded": "high"}

func (v *visit) nodes(o *client.Overview) section {
	s := section{Title: "Nodes"}
	if failed(o, "nodes") {
		s.Failed = "The nodes could not be read just now."
		return s
	}
	t := &table{Caption: "Nodes", Head: []column{
		{Text: "Node"},
		{Text: "State"},
		{Text: "Decisions a second", Numeric: true},
		{Text: "Version"},
		{Text: "Started"},
		{Text: "Heard of"},
	}, Empty: "No node has told of itself yet"}
	for _, n := range o.Nodes {
		state := marked(nodeMarks[n.State], n.State)
		state.Sub = n.Reason
		t.Rows = append(t.Rows, []cell{
			text(n.Name), state, amount(rating.Grouped(n.PerSecond)), text(n.Version), text(words.Lasted(o.At.Sub(n.StartedAt)) + " ago"),
			text(words.Lasted(o.At.Sub(n.SeenAt)) + " ago"),
		})
	}
	s.Table = t
	return s
}

func (v *visit) books(o *client.Overview, read bool) section {
	s := section{Title: "Books"}
	if !read {
		s.Failed = "The books could not be asked for just now."
		return s
	}
	last := "not since the nodes started"
	if o.Books.CheckedAt != nil {
		last = o.Books.CheckedAt.In(v.Zone).Format("2 Jan, 15:04:05")
		if len(o.Books.Disagreeing) == 0 {
			last += ": they agree"
		} else {
			last += ": " + checkList(o.Books.Disagreeing)
		}
	}
	blocked := "of no customer"
	if n := o.Books.BlockedCustomers; n > 0 {
		blocked = "of " + words.Number(n) + " " + words.Plural(n, "customer")
	}
	s.Facts = []parts.Fact{{Term: "Checked", Text: last}, {Term: "Billing blocked", Text: blocked}}
	if v.isAdmin() {
		s.Links = []page.Link{{Text: "Check the books", URL: "/admin/reconcile"}}
	}
	return s
}
