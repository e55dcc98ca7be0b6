package timeline

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotad/internal/billing"
	"quotad/internal/calendar"
	"quotad/internal/plans"
)

const day = int64(24 * 3600e6)

func us(t interface{ Fatal(...any) }, text string) int64 {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}

func anchor(t interface{ Fatal(...any) }, text string) calendar.Anchor {
	a, err := calendar.ParseAnchor(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var zones = []string{"UTC", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"}

// drawn is a random timeline, and what the naive recount needs of it beside.
type drawn struct {
	*Timeline
	links []link // the schedules, the oldest first
}

// link is a schedule until an instant.
type link struct {
	anchor   calendar.Anchor
	interval calendar.Interval
	zone     *time.Location
	until    int64
}

// drawTimeline draws a customer that begins in 2026: up to three changes of its schedule, a
// trial, an end, a break, terms, prices and versions at and around its boundaries.
func drawTimeline(t *rapid.T) drawn {
	begin := us(t, "2026-01-31T00:00:00Z")
	instant := rapid.Int64Range(begin-40*day, begin+200*day)
	draw := func(name string) int64 { return instant.Draw(t, name) }
	d := drawn{Timeline: &Timeline{StartsAt: draw("starts")}}
	until := begin - 40*day
	for i := range rapid.IntRange(1, 4).Draw(t, "schedules") {
		zone, err := calendar.Location(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		l := link{
			anchor: anchor(t, rapid.SampledFrom([]string{"2026-01-31T00:00:00", "2026-01-29T02:30:00", "2025-12-01T12:00:00"}).Draw(t, "anchor")),
			interval: calendar.Interval{
				Unit:  rapid.SampledFrom([]calendar.Unit{calendar.Days, calendar.Weeks, calendar.Months}).Draw(t, "unit"),
				Count: rapid.IntRange(1, 3).Draw(t, "count"),
			},
			zone: zone,
		}
		periods := calendar.Periods{Zone: l.zone, Anchor: l.anchor, Interval: l.interval}
		if i > 0 {
			before := d.Periods
			periods.Before, periods.From = &before, until
		}
		d.Periods = periods
		until += rapid.Int64Range(1, 80*day).Draw(t, "until")
		l.until = until
		d.links = append(d.links, l)
	}
	d.links[len(d.links)-1].until = begin + 10_000*day
	if rapid.Bool().Draw(t, "trial") {
		at := draw("trial end")
		d.TrialEnd = &at
	}
	if rapid.Bool().Draw(t, "ends") {
		at := draw("end")
		d.End = &at
	}
	if rapid.Bool().Draw(t, "break") {
		from := draw("break from")
		d.Break = &Break{from, from + rapid.Int64Range(1, 30*day).Draw(t, "break")}
	}
	d.Archived = rapid.Bool().Draw(t, "archived")
	for _, cut := range []*int64{&d.StartsAt, d.TrialEnd, d.End} {
		if cut != nil {
			d.Periods.Cuts = append(d.Periods.Cuts, *cut)
		}
	}
	if d.Break != nil {
		d.Periods.Cuts = append(d.Periods.Cuts, d.Break.From, d.Break.To)
	}
	slices.Sort(d.Periods.Cuts)
	d.drawPricing(t, begin)
	return d
}

func (d *drawn) drawPricing(t *rapid.T, begin int64) {
	near := func(name string) int64 { // an instant that often is a boundary
		start, end := d.Periods.Period(rapid.Int64Range(begin-40*day, begin+200*day).Draw(t, name))
		return rapid.SampledFrom([]int64{start, start, end - 1, start + 1}).Draw(t, name+" exactly")
	}
	change := int64(10)
	next := func() int64 { change += rapid.Int64Range(1, 3).Draw(t, "change"); return change }
	d.Terms = []Terms{{Change: 1, PlanID: 1, Joined: 1}}
	written := func(from int64) int64 { return from - rapid.Int64Range(0, 60*day).Draw(t, "written before") }
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		d.Terms = append(d.Terms, Terms{
			Change: next(), From: near("terms from"), PlanID: rapid.Int32Range(1, 2).Draw(t, "plan"),
			Joined: rapid.IntRange(1, 4).Draw(t, "joined"), Pinned: rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "pinned"),
		})
		last := &d.Terms[len(d.Terms)-1]
		last.At = written(last.From)
	}
	for range rapid.IntRange(0, 4).Draw(t, "own prices") {
		own := OwnPrice{Change: next(), From: near("price from"), Meter: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "meter")}
		own.At = written(own.From)
		if rapid.IntRange(0, 2).Draw(t, "removed") > 0 {
			own.Price = &plans.Price{Model: "per_unit", Included: own.Change}
		}
		d.Prices = append(d.Prices, own)
	}
	if rapid.Bool().Draw(t, "test clock") {
		d.Clock = []int64{}
		for at := int64(2); len(d.Clock) < 2*rapid.IntRange(1, 6).Draw(t, "settings"); at += 4 {
			d.Clock = append(d.Clock, at, near("clock"))
		}
	}
	for n := 1; n <= 4; n++ {
		for plan := range int32(2) {
			d.Versions = append(d.Versions, Version{
				PlanID: plan + 1, Number: n, All: rapid.Bool().Draw(t, "all"),
				Change: rapid.Int64Range(1, 30).Draw(t, "version's change"), CreatedAt: near("created"),
			})
		}
	}
}

// boundaries of the naive recount: those of each schedule, from its anchor on one after the
// other, where a schedule ends, and the cuts. [from, to]
func (d *drawn) boundaries(from, to int64) (all []int64) {
	add := func(at int64) {
		if at >= from && at <= to {
			all = append(all, at)
		}
	}
	since := calendar.MinInstant
	for _, l := range d.links {
		for _, step := range []int{-1, 1} {
			for n := 0; ; n += step {
				at := calendar.Boundary(l.anchor, l.interval, l.zone, n)
				if at < from && step < 0 || at > to && step > 0 {
					break
				}
				if at > since && at < l.until {
					add(at)
				}
			}
		}
		add(l.until)
		since = l.until
	}
	for _, cut := range d.Periods.Cuts {
		add(cut)
	}
	if d.End != nil {
		add(*d.End)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// priced is what the naive recount says of the period that begins at start: the changes are
// done one after the other.
func (d *drawn) priced(start int64) (plan int32, version int, prices map[string]plans.Price) {
	terms := d.Terms[0]
	for _, next := range d.Terms[1:] {
		if start >= next.From || start > next.At {
			terms = next
		}
	}
	prices = map[string]plans.Price{}
	for _, own := range d.Prices {
		switch {
		case start < own.From && start <= own.At:
		case own.Price == nil:
			delete(prices, own.Meter)
		default:
			prices[own.Meter] = *own.Price
		}
	}
	if terms.Pinned > 0 {
		return terms.PlanID, terms.Pinned, prices
	}
	version = terms.Joined
	for _, v := range d.Versions {
		if v.PlanID == terms.PlanID && v.All && v.Number > version && (d.older(v, start) || d.Clock != nil && terms.From == start && v.Change < terms.Change) {
			version = v.Number
		}
	}
	return terms.PlanID, version, prices
}

// older: a version was there before the customer's clock showed the start for good.
func (d *drawn) older(v Version, start int64) bool {
	if d.Clock == nil {
		return v.CreatedAt < start
	}
	for i := 0; i < len(d.Clock); i += 2 {
		stays := true
		for j := i; j < len(d.Clock); j += 2 {
			stays = stays && d.Clock[j+1] >= start
		}
		if stays {
			return v.Change < d.Clock[i]
		}
	}
	return true
}

// known is the end of a period as all but changes within it make it.
func (d *drawn) known(p *billing.Period) int64 {
	known := p.FullEnd
	account := []*int64{d.TrialEnd, d.End}
	if d.Archived && d.End != nil {
		account = []*int64{d.TrialEnd}
	}
	if d.Break != nil {
		account = append(account, &d.Break.From, &d.Break.To)
	}
	for _, at := range account {
		if at != nil && *at > p.Start {
			known = min(known, *at)
		}
	}
	return known
}

func TestChainIsTheNaiveRecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawTimeline(t)
		horizon := d.StartsAt + 250*day
		all := d.boundaries(d.StartsAt, horizon+400*day)
		chain, n, at := 0, 0, d.StartsAt
		p, ok := d.First()
		for at < horizon {
			over := d.End != nil && at >= *d.End
			if over != !ok {
				t.Fatalf("at %d: a period is %v, the end is %v", at, ok, over)
			}
			if over {
				break
			}
			i, there := slices.BinarySearch(all, at)
			if !there {
				t.Fatalf("%d is no boundary", at)
			}
			want := billing.Period{Chain: chain, N: n, Start: at, End: all[i+1], KnownEnd: d.known(&p)}
			want.Trial = d.TrialEnd != nil && want.End <= *d.TrialEnd
			want.PlanID, want.Version, want.Prices = d.priced(at)
			want.FullStart, want.FullEnd = p.FullStart, p.FullEnd
			if !reflect.DeepEqual(p, want) {
				t.Fatalf("got  %+v\nwant %+v", p, want)
			}
			d.checkFull(t, &p)
			if n++; d.Break != nil && want.End >= d.Break.From && want.End <= d.Break.To {
				chain, n, at = chain+1, 0, d.Break.To
			} else {
				at = want.End
			}
			p, ok = d.Next(&p)
		}
	})
}

// checkFull: the full period is one of the schedule that counts at the start, and holds p.
func (d *drawn) checkFull(t *rapid.T, p *billing.Period) {
	for _, l := range d.links {
		if p.Start < l.until {
			_, start, end := calendar.Period(l.anchor, l.interval, l.zone, p.Start)
			if p.FullStart != start || p.FullEnd != end || start > p.Start || end < p.End {
				t.Fatalf("[%d, %d) is cut from [%d, %d), not from [%d, %d)", p.Start, p.End, p.FullStart, p.FullEnd, start, end)
			}
			return
		}
	}
}

// At is the period of the chain that holds an instant, found by looking at each.
func TestAtIsTheOneThatHoldsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawTimeline(t)
		open, ok := d.First()
		if !ok {
			return
		}
		at := open.Start + rapid.Int64Range(-day, 150*day).Draw(t, "at")
		var want *billing.Period
		for p, ok := open, true; ok && p.Start <= at; p, ok = d.Next(&p) {
			if at < p.End {
				want = &p
				break
			}
		}
		got, ok, err := d.At(open, at)
		if err != nil || ok != (want != nil) || ok && !reflect.DeepEqual(got, *want) {
			t.Fatalf("at %d: %+v %v %v, want %+v", at, got, ok, err, want)
		}
	})
}

func TestAtGoesAThousandPeriods(t *testing.T) {
	d := &Timeline{
		Periods: calendar.Periods{Zone: time.UTC, Anchor: anchor(t, "2026-01-01T00:00:00"), Interval: calendar.Interval{Unit: calendar.Days, Count: 1}},
		Terms:   []Terms{{PlanID: 1, Joined: 1}}, StartsAt: us(t, "2026-01-01T00:00:00Z"),
	}
	open, _ := d.First()
	if p, ok, err := d.At(open, open.Start+MaxAhead*day); err != nil || !ok || p.N != MaxAhead {
		t.Error(p, ok, err)
	}
	if _, _, err := d.At(open, open.Start+(MaxAhead+1)*day); !errors.Is(err, ErrFar) {
		t.Error(err)
	}
}

// What a change leaves of the open period: its start; its price unless the terms count from
// there; an end that is known for the base in advance.
func TestAgain(t *testing.T) {
	start, end := us(t, "2026-01-01T00:00:00Z"), us(t, "2026-02-01T00:00:00Z")
	cut := us(t, "2026-01-10T00:00:00Z")
	base := func() *Timeline {
		return &Timeline{
			Periods: calendar.Periods{Zone: time.UTC, Anchor: anchor(t, "2026-01-01T00:00:00"), Interval: calendar.Interval{Unit: calendar.Months, Count: 1}},
			Terms:   []Terms{{PlanID: 1, Joined: 1}, {Change: 5, From: start, At: start, PlanID: 2, Joined: 3}}, StartsAt: start,
		}
	}
	open := billing.Period{
		N: 4, Start: start, End: end, FullStart: start, FullEnd: end, KnownEnd: end, PlanID: 1, Version: 1,
		Prices: map[string]plans.Price{"a": {Included: 7}},
	}
	d := base()
	d.Periods.Cuts, d.End = []int64{cut}, &cut
	got, ok := d.Again(&open, false)
	want := open
	if want.End = cut; !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("cut: %+v, want %+v", got, want)
	}
	got, ok = d.Again(&open, true)
	want.PlanID, want.Version, want.Prices, want.KnownEnd = 2, 3, map[string]plans.Price{}, cut
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("cut at its start: %+v, want %+v", got, want)
	}
	d = base()
	short := open
	short.End, short.KnownEnd = cut, cut
	if got, ok = d.Again(&short, false); !ok || got.End != end || got.KnownEnd != cut {
		t.Errorf("the end is lifted: %+v", got)
	}
	d.End = &start
	if got, ok = d.Again(&open, false); ok {
		t.Errorf("the end is at the start: %+v", got)
	}
}
