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

// A Card is a limit as a page shows it to a customer.
type Card struct {
	ID    string
	Name  string // the limit's name
	Title string // the meter's name
	Chip  *Chip
	Rule  string // the limit in words
	Note  string // text shown instead of numbers
	Unit  string // unit of the remaining quota
	Left  int64
	Used  int64
	Of    int64
	Shown bool // the numbers are shown
	Facts []Fact
	Open  openData
	Per   *per

	meter      string
	mode       string
	concurrent bool      // the limit counts only units in flight
	inFlight   int64     // counted units that open reservations hold
	At         time.Time // when the card changes by itself, or zero if it does not
	Slides     bool      // the card changes continuously
}

// A Chip is a small coloured label.
type Chip struct{ Class, Text string }

// A Fact is a line below a card's numbers. If Text is a countdown, At is the countdown's target. If Every is not
// 0, the countdown starts again for every further target, which is Every milliseconds later.
type Fact struct {
	Term, Text, At string
	Every          int64
}

// per is the attribute for whose values a limit has separate counters, and the value whose counter is shown.
type per struct{ Attribute, Field, Value string }

// cardsOf returns the cards of all limits that the visitor may see, the fullest limit first.
func cardsOf(v *page.Visit, q *client.Quota, plan *client.Plan, meters page.MeterNames) []Card {
	specs := map[string]client.Limit{}
	for _, s := range plan.Limits {
		specs[s.Name] = s
	}
	var all []Card
	for i := range q.Limits {
		l := &q.Limits[i]
		if l.Mode == "shadow" && v.Customer != nil {
			continue // customers do not see shadow limits, which refuse nothing
		}
		spec, ok := specs[l.Name]
		if !ok { // the plan changed between the two API requests
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
		if v.Customer == nil { // staff pages show the limit's name
			c.Rule = strings.TrimSuffix(l.Name+": "+c.Rule, ": ")
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Card) int { return cmp.Compare(b.share(), a.share()) })
	return all
}

// anchor returns a limit's name as an HTML id.
func anchor(name string) string { return "limit-" + url.PathEscape(name) }

// share returns the used part of a limit in thousandths. A card without numbers returns −1 and is therefore
// sorted last.
func (c *Card) share() int64 {
	if !c.Shown {
		return -1
	}
	if c.Of == 0 {
		return 1001
	}
	return words.MulDiv(max(0, c.Used), 1000, c.Of)
}

// fill sets the card's description of the limit and of its usage.
func (c *Card) fill(v *page.Visit, l *client.QuotaLimit, spec *client.Limit, now time.Time, beyond string) {
	algorithm := model.AlgorithmNamed(l.Algorithm)
	c.Rule = Rule(l, spec)
	c.Left, c.Used, c.Of, c.Shown = l.Remaining, l.Used, l.Limit, true
	if algorithm.Refills() {
		c.Of = l.Used + l.Remaining // the bucket's capacity
	}
	if l.Mode == "shadow" { // always marked, because a shadow limit refuses nothing
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
	if c.concurrent || c.inFlight > 0 { // the card lists the reservations below
		c.fact("In flight", words.Number(c.inFlight))
	}
}

// capped adds a cap's amount of money to the card.
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

// closed describes the effect of a limit of 0.
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

// comesBack adds a fact about the return of units to the card.
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

// beyond describes what happens to units above a soft limit.
func beyond(plan *client.Plan, meter string) string {
	for _, p := range plan.Prices {
		if p.Meter == meter && p.Model == "per_unit" && p.UnitPrice != nil {
			return words.PerUnit(*p.UnitPrice, plan.Currency)
		}
	}
	return "goes on"
}

const (
	// openOnCard is the number of open reservations on a card.
	openOnCard = 5
	// openLists is the number of reservation lists that one page queries, because a plan can have a hundred
	// limits.
	openLists = 10
)

// openData contains the open reservations of a card's meter, in the order of their expiry.
type openData struct {
	Rows []OpenRow
	More string // number of further reservations as text, or empty
}

// An OpenRow is one open reservation. At is the target instant of the countdown Ends.
type OpenRow struct{ Text, Ends, At string }

// addOpen adds the open reservations to the cards of limits that have units in flight. If a list cannot be read,
// the card shows only the number of units.
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

// show adds open reservations to a card. A concurrency limit counts all open reservations, so show also computes
// the number of units in hidden reservations. Other limits count only the reservations of their window.
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
