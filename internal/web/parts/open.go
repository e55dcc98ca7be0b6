package parts

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

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

// changes notes that the card changes by itself at an instant.
func (c *Card) changes(at time.Time) {
	if c.At.IsZero() || at.Before(c.At) {
		c.At = at
	}
}
