package portal

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"quotad/internal/web/admin"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
)

// followerOf draws parts of the first page as an open page gets them. more is added to its templates.
func followerOf(t testing.TB, more string) *follower {
	t.Helper()
	site, err := page.New(page.Options{Log: slog.New(slog.DiscardHandler)}, os.DirFS(".."), admin.Functions)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := site.Sheet("overview").Parse(more); err != nil {
		t.Fatal(err)
	}
	return newFollower(nil, &page.Visit{Site: site, Zone: time.UTC}, nil)
}

// partOf draws a part, and says whether it is sent.
func (f *follower) partOf(t testing.TB, name string, data any) (changed bool) {
	t.Helper()
	_, changed, ok := f.drawn(name, data)
	if !ok {
		t.Fatalf("%s cannot be drawn", name)
	}
	return changed
}

// someLimits are cards with what a page can say of limits.
func someLimits(cards int) parts.LimitsData {
	at := func(later time.Duration) string {
		return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(later).Format(time.RFC3339)
	}
	data := parts.LimitsData{Counted: []parts.CountedData{{Title: "Bytes", Unit: "bytes", Used: "12"}}}
	for i := range cards {
		c := parts.Card{
			ID: fmt.Sprint("limit-", i), Name: fmt.Sprint("limit", i), Title: "Requests", Unit: "request", Rule: "100 in any hour", Left: 60,
			Used: 40, Of: 100, Shown: true,
		}
		c.Facts = []parts.Fact{
			{Term: "Resets in", Text: "1:00:00", At: at(time.Hour), Every: 0},
			{Term: "One more in", Text: "1:00", At: at(time.Minute), Every: 60_000},
			{Term: "Beyond it", Text: "refused"},
		}
		c.Open.Rows = []parts.OpenRow{{Text: "2 requests", Ends: "10:00", At: at(10 * time.Minute)}}
		data.Cards = append(data.Cards, c)
	}
	return data
}

// TestWhatIsDrawnIsLive: a field is live since a template shows it; nothing else has to name it.
func TestWhatIsDrawnIsLive(t *testing.T) {
	for _, added := range []bool{false, true} {
		more := ""
		if added { // a part that shows the unit, too
			more = `{{define "limits"}}{{range .Cards}}<b>{{.Unit}}</b>{{end}}{{end}}`
		}
		f, data := followerOf(t, more), someLimits(2)
		if !f.partOf(t, "limits", data) {
			t.Error("the first is not sent")
		}
		if f.partOf(t, "limits", data) {
			t.Error("what is shown already is sent again")
		}
		data.Cards[1].Unit = "hit"
		if got := f.partOf(t, "limits", data); got != added {
			t.Errorf("with the unit in the template (%t) its change is sent: %t", added, got)
		}
	}
}

// TestPartsOfAPageAreApart: each part is compared with what was sent of it.
func TestPartsOfAPageAreApart(t *testing.T) {
	f := followerOf(t, "")
	cost := overviewData{Cost: &parts.CostData{Due: "$1.00"}}
	for _, want := range []bool{true, false} {
		if f.partOf(t, "outlook", &parts.Outlook{By: "x"}) != want || f.partOf(t, "cost-panel", cost) != want {
			t.Errorf("a part that was sent before is sent: not %t", want)
		}
	}
	if !f.partOf(t, "outlook", (*parts.Outlook)(nil)) {
		t.Error("an outlook that went is not sent")
	}
	cost.Cost.Due = "$2.00"
	if !f.partOf(t, "cost-panel", cost) {
		t.Error("another amount is not sent")
	}
}

// TestCountdownsAreNotSent: what a script counts down changes nothing; an instant that it counts to does,
// but for one that begins again by itself.
func TestCountdownsAreNotSent(t *testing.T) {
	const resets, again = 0, 1
	later := "2026-03-01T13:00:01Z"
	for _, c := range []struct {
		what   string
		change func(*parts.Card)
		sent   bool
	}{
		{"the time to a reset", func(c *parts.Card) { c.Facts[resets].Text = "59:59" }, false},
		{"the time to the next unit", func(c *parts.Card) { c.Facts[again].Text = "0:01" }, false},
		{"the time to a reservation's end", func(c *parts.Card) { c.Open.Rows[0].Ends = "9:59" }, false},
		{"the instant of the next unit", func(c *parts.Card) { c.Facts[again].At = later }, false},
		{"how often a unit comes", func(c *parts.Card) { c.Facts[again].Every = 30_000 }, true},
		{"the instant of a reset", func(c *parts.Card) { c.Facts[resets].At = later }, true},
		{"a reservation's end", func(c *parts.Card) { c.Open.Rows[0].At = later }, true},
		{"a reservation's units", func(c *parts.Card) { c.Open.Rows[0].Text = "3 requests" }, true},
		{"a term", func(c *parts.Card) { c.Facts[again].Term = "One more" }, true},
		{"a fact without an instant", func(c *parts.Card) { c.Facts[2].Text = "goes on" }, true},
		{"the title", func(c *parts.Card) { c.Title = "Hits" }, true},
		{"a mark", func(c *parts.Card) { c.Chip = &parts.Chip{Class: "bad", Text: "Used up"} }, true},
		{"what is left", func(c *parts.Card) { c.Left-- }, true},
	} {
		f, data := followerOf(t, ""), someLimits(2)
		f.partOf(t, "limits", data)
		c.change(&data.Cards[1])
		if got := f.partOf(t, "limits", data); got != c.sent {
			t.Errorf("%s: sent %t", c.what, got)
		}
	}
}

// BenchmarkPart is what an open page takes from a processor for limits that are drawn.
func BenchmarkPart(b *testing.B) {
	for _, cards := range []int{2, 12, 100} {
		b.Run(fmt.Sprint(cards), func(b *testing.B) {
			f, data := followerOf(b, ""), someLimits(cards)
			for b.Loop() {
				f.partOf(b, "limits", data)
			}
		})
	}
}
