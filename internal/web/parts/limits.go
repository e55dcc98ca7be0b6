package parts

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/quota/model"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// A Card is a limit as a customer reads it.
type Card struct {
	ID    string
	Name  string // the limit's
	Title string // the meter's
	Chip  *Chip
	Rule  string // in words
	Note  string // instead of numbers
	Unit  string // of what is left
	Left  int64
	Used  int64
	Of    int64
	Shown bool // the numbers are
	Facts []Fact
	Open  openData
	Per   *per

	meter      string
	mode       string
	concurrent bool      // it counts what is in flight alone
	inFlight   int64     // units that open reservations hold, of those that count
	At         time.Time // when it changes by itself; zero: it does not
	Slides     bool      // it changes all the time
}

// A Chip is a mark.
type Chip struct{ Class, Text string }

// A Fact is a line below a card's numbers. At is an instant that Text counts down to, and Every the
// milliseconds after which the next one comes.
type Fact struct {
	Term, Text, At string
	Every          int64
}

// per is the attribute that each value of has a limit of its own, and the value that is shown.
type per struct{ Attribute, Field, Value string }

// cardsOf makes the cards of all limits that a customer may see, the fullest first.
func cardsOf(v *page.Visit, q *client.Quota, plan *client.Plan, meters page.MeterNames) []Card {
	specs := map[string]client.Limit{}
	for _, s := range plan.Limits {
		specs[s.Name] = s
	}
	var all []Card
	for i := range q.Limits {
		l := &q.Limits[i]
		if l.Mode == "shadow" && v.Customer != nil {
			continue // a trial of the operator's, that refuses nobody
		}
		spec, ok := specs[l.Name]
		if !ok { // the plan changed between the two answers
			spec.Spec = client.Spec{Name: l.Name, Algorithm: l.Algorithm, Mode: l.Mode}
			if l.Window != nil {
				spec.Window = *l.Window
			}
		}
		m := meters.Of(l.Meter)
		c := Card{ID: anchor(l.Name), Name: l.Name, Title: page.TitleOf(m), Unit: m.Unit, meter: l.Meter, mode: l.Mode}
		c.fill(v, l, &spec, q.At, beyond(plan, l.Meter))
		if l.Name == model.CapName {
			c.capped(q)
		}
		if v.Customer == nil { // staff know limits by their names
			c.Rule = strings.TrimSuffix(l.Name+": "+c.Rule, ": ")
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Card) int { return cmp.Compare(b.share(), a.share()) })
	return all
}

// anchor is a name as an id of HTML.
func anchor(name string) string { return "limit-" + url.PathEscape(name) }

// share is how full a limit is, in thousandths; what shows no numbers comes last.
func (c *Card) share() int64 {
	if !c.Shown {
		return -1
	}
	if c.Of == 0 {
		return 1001
	}
	return words.MulDiv(max(0, c.Used), 1000, c.Of)
}

// fill says in words what a limit is and how it stands.
func (c *Card) fill(v *page.Visit, l *client.QuotaLimit, spec *client.Limit, now time.Time, beyond string) {
	algorithm := model.AlgorithmNamed(l.Algorithm)
	c.Rule = Rule(l, spec)
	c.Left, c.Used, c.Of, c.Shown = l.Remaining, l.Used, l.Limit, true
	if algorithm.Refills() {
		c.Of = l.Used + l.Remaining // its capacity
	}
	if l.Mode == "shadow" { // marked always: it refuses nothing
		c.Chip = &Chip{"accent", "Shadow"}
	}
	if spec.Per != "" {
		c.Per = &per{Attribute: spec.Per, Field: "attr." + spec.Per, Value: v.R.URL.Query().Get("attr." + spec.Per)}
		c.Rule += ", for each " + spec.Per
		if c.Shown = c.Per.Value != ""; !c.Shown {
			return
		}
	}
	if c.Of == 0 {
		c.Shown = false
		c.closed(l, beyond)
		return
	}
	c.Chip = chipOf(c, l)
	c.concurrent, c.inFlight = algorithm.OnlyHolds(), l.Reserved
	c.comesBack(v, l, spec, now)
	switch l.Mode {
	case "soft":
		c.fact("Beyond it", beyond)
	case "shadow":
		c.fact("Beyond it", "admitted, only watched")
	default:
		c.fact("Beyond it", "refused")
	}
	if c.concurrent || c.inFlight > 0 { // its reservations stand below
		c.fact("In flight", words.Number(c.inFlight))
	}
}

// capped says what a cap is in money, too.
func (c *Card) capped(q *client.Quota) {
	for i := range q.Meters {
		m := &q.Meters[i]
		if m.Meter != c.meter || m.CapMinor == nil {
			continue
		}
		if c.Rule = "At most " + words.Money(*m.CapMinor, m.Currency) + " in this period"; m.AmountMinor != nil {
			c.Rule += ", " + words.Money(max(0, *m.CapMinor-*m.AmountMinor), m.Currency) + " left"
		}
		if c.Of == 0 {
			c.Note = "A cap on what it may cost lets none through in this period."
		}
	}
}

// closed says what a limit of 0 does.
func (c *Card) closed(l *client.QuotaLimit, beyond string) {
	switch l.Mode {
	case "soft":
		c.Note = "All of it is beyond the limit."
		c.fact("Beyond it", beyond)
	case "shadow":
		c.Note = "It would let none through, and admits all."
	default:
		c.Rule, c.Note, c.Chip = "", "Closed: your plan lets none through.", &Chip{"bad", "Closed"}
	}
}

func chipOf(c *Card, l *client.QuotaLimit) *Chip {
	switch share := c.share(); {
	case l.Mode == "shadow" && c.Left == 0:
		return &Chip{"accent", "Shadow, used up"}
	case l.Mode == "shadow" && share >= 800:
		return &Chip{"accent", fmt.Sprintf("Shadow, %d %% used", share/10)}
	case l.Mode == "shadow":
		return c.Chip
	case l.Mode == "soft" && c.Used > c.Of:
		return &Chip{"high", "Exceeded"}
	case c.Left == 0:
		return &Chip{"bad", "Used up"}
	case share >= 800:
		return &Chip{"high", fmt.Sprintf("%d %% used", share/10)}
	}
	return nil
}

// comesBack says when units are there again.
func (c *Card) comesBack(v *page.Visit, l *client.QuotaLimit, spec *client.Limit, now time.Time) {
	switch said := AlgorithmOf(l.Algorithm); {
	case said.gone != "":
		c.fact("Comes back", said.gone)
	case l.ResetAt == nil:
		c.fact("Comes back", "not by itself")
	case c.Used <= 0:
		c.fact("All of it is there", "now")
	case said.resets != nil:
		said.resets(c, l, spec, now, v.Zone)
	}
}

// beyond is what becomes of units beyond a soft limit.
func beyond(plan *client.Plan, meter string) string {
	for _, p := range plan.Prices {
		if p.Meter == meter && p.Model == "per_unit" && p.UnitPrice != nil {
			return words.PerUnit(*p.UnitPrice, plan.Currency)
		}
	}
	return "goes on"
}

const (
	// openOnCard is how many open reservations a card shows.
	openOnCard = 5
	// openLists is how many lists of them a page asks for. A plan can have a hundred limits.
	openLists = 10
)

// openData are the open reservations of a card's meter, those that end first at the front.
type openData struct {
	Rows []OpenRow
	More string // how many there are beside the rows; empty: none
}

// An OpenRow is one of them. At is the instant that Ends counts down to.
type OpenRow struct{ Text, Ends, At string }

// addOpen shows open reservations on the cards of limits that have units in flight. A list that
// cannot be read is left out: the number stays.
func (s *Standing) addOpen(v *page.Visit) {
	asked := map[string]*client.List[client.OpenReservation]{}
	for i := range s.cards {
		c := &s.cards[i]
		if c.inFlight == 0 || !c.Shown {
			continue
		}
		query := url.Values{"meter": {c.meter}, "limit": {strconv.Itoa(openOnCard)}}
		if c.Per != nil {
			query.Set(c.Per.Field, c.Per.Value)
		}
		list, known := asked[query.Encode()]
		if !known && len(asked) < openLists {
			found, err := v.API.Reservations(v.Ctx(), v.Key, query)
			if err != nil {
				v.Note("the open reservations", err)
			} else {
				list = &found
			}
			asked[query.Encode()] = list
		}
		if list != nil {
			c.show(list, s.Quota.At)
		}
	}
}

// show puts open reservations onto a card. A concurrency limit counts all of them, so it can be said
// how many units there are beside those that are shown. Other limits count those of their window.
func (c *Card) show(list *client.List[client.OpenReservation], now time.Time) {
	unit := cmp.Or(c.Unit, "unit")
	rest := c.inFlight
	for _, r := range list.Items {
		c.Open.Rows = append(c.Open.Rows, OpenRow{
			words.Number(r.Cost) + " " + words.Plural(r.Cost, unit), words.Until(r.ExpiresAt.Sub(now)), r.ExpiresAt.UTC().Format(time.RFC3339Nano),
		})
		c.changes(r.ExpiresAt)
		rest -= r.Cost
	}
	switch {
	case c.concurrent && rest > 0 && list.NextCursor != nil:
		c.Open.More = "and " + words.Number(rest) + " more " + words.Plural(rest, unit)
	case list.NextCursor != nil:
		c.Open.More = "and more"
	}
}
